"""The Celery app. It lives here, not in `portal/__init__.py`, so that the `gatehouse` command stays light."""

import os

from celery import Celery

from portal.core.broker import use_whole_files

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

use_whole_files()
app = Celery("gatehouse")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.autodiscover_tasks(["portal.realtime"])
