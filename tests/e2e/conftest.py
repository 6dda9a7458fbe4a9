"""One headless Chromium for the browser tests, and one small demo facility served to it; they reach nothing else."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.support import demo
from tests.support.capabilities import CHROMIUM

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # The browser's driver runs an event loop in this thread; the rows a test makes are still made in order.
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield opened
        opened.close()
    if before is None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="session")
def facility(tmp_path_factory: pytest.TempPathFactory) -> Iterator[demo.Portal]:
    """A demo facility that stands still, served as `make run` serves it."""
    data = demo.demo_folder(tmp_path_factory.mktemp("facility") / "var")
    with demo.portal(data, DEMO="0") as running:
        running.wait_for(running.ready_line)
        yield running
