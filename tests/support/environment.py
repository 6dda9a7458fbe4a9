"""Loaded before Django's settings: gives every test run a data folder of its own."""

import atexit
import os
import shutil
import tempfile

if "GATEHOUSE_TEST_RUN" not in os.environ:
    # Workers of pytest-xdist inherit the folder of the process that started them; that one removes it.
    _folder = tempfile.mkdtemp(prefix="gatehouse-test-")
    os.environ["GATEHOUSE_TEST_RUN"] = _folder
    os.environ["GATEHOUSE_DATA"] = _folder
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)
for _name in ("GATEHOUSE_PROFILE", "SECRET_KEY", "TOKEN_PEPPERS", "REDIS_URL", "CELERY_BROKER_URL", "METRICS_TOKEN"):
    os.environ.pop(_name, None)
os.environ["LOG_LEVEL"] = "ERROR"
