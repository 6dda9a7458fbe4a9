"""The Celery app. It lives here, not in `portal/__init__.py`, so that the `gatehouse` command stays light."""

import os

from billiard import current_process
from celery import Celery
from celery.signals import beat_embedded_init, worker_ready, worker_shutting_down

from portal.core import stopping
from portal.core.broker import use_whole_files
from portal.supervisor.children import die_with_parent

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

use_whole_files()
app = Celery("gatehouse")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.autodiscover_tasks(["portal.realtime"])


@beat_embedded_init.connect
def _end_with_worker(**_: object) -> None:
    """A beat that outlived its worker would send every task beside the next worker's."""
    die_with_parent()
    if os.getppid() != current_process()._parent_pid:  # type: ignore[attr-defined]  # it ended before we asked
        raise SystemExit


@worker_shutting_down.connect
def _stop_long_work(**_: object) -> None:
    """Tasks in threads of this process end with their transaction, so that the next worker can go on at once.

    Where tasks run in processes of their own (`-P prefork`) those work on until they are done or killed.
    """
    stopping.ask()


@worker_ready.connect
def _take_up_what_was_left(**_: object) -> None:
    """What the last worker left need not wait for the next sweep."""
    app.send_task("telemetry.tasks.sweep_ingest_batches")
