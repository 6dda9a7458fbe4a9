"""The indexes of jobs while a facility's history is loaded into an empty PostgreSQL: dropped before, built after.

Each row that is inserted costs its place in ten indexes; all rows at once cost a sort each. The key stays, for it says
what is known, and so do those that few jobs of a history are in, for to build one reads the whole table. Should the
load be killed, the sweep of ingest batches builds what is missing.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import connection, models, transaction

from portal.core import clock
from telemetry.models import IngestBatch, Job

FROM_BYTES: Final = 64 * 1024 * 1024  # of sacct text: some 200,000 jobs; for fewer it does not pay
_OF_FEW: Final = frozenset(
    f"telemetry_job_{name}" for name in ("active", "long", "array", "session", "agent")
)  # fmt: skip
_BUILDING: Final = 0x6A6F6273  # the key of the lock that says that somebody builds
_SORT_MEMORY: Final = "256MB"
_log = logging.getLogger(__name__)


def drop_for_load(bytes_total: int | None) -> bool:
    """Drop the indexes of jobs before a large load, where there are no jobs yet; say whether they were dropped."""
    if connection.vendor != "postgresql" or (bytes_total or 0) < FROM_BYTES or Job.objects.exists():
        return False
    with transaction.atomic(), connection.schema_editor() as editor:
        for index in _indexes(missing=False):
            if index.name not in _OF_FEW:
                editor.remove_index(Job, index)
    return True


def build_missing() -> int:
    """Build the indexes of jobs that are missing, unless somebody else does or a load goes on; return how many.

    Nobody writes jobs meanwhile: some seconds for each million.
    """
    if connection.vendor != "postgresql" or not _indexes(missing=True) or is_loading():
        return 0
    with _alone() as alone:
        missing = _indexes(missing=True) if alone else []
        for index in missing:
            _log.info("Building the index %s of jobs.", index.name)
            with transaction.atomic():
                with connection.cursor() as cursor:
                    cursor.execute(f"SET LOCAL maintenance_work_mem = '{_SORT_MEMORY}'")
                with connection.schema_editor() as editor:
                    editor.add_index(Job, index)
        if missing:
            with connection.cursor() as cursor:
                cursor.execute(f"ANALYZE telemetry_job ({_short_columns()})")
    return len(missing)


def _short_columns() -> str:
    """Return the columns that queries look for: statistics of long texts would cost as much as an index."""
    texts = {"job_name", "node_list", "submit_line", "work_dir", "extra"}
    columns = (field.column for field in Job._meta.local_concrete_fields if field.name not in texts)
    return ", ".join(connection.ops.quote_name(column) for column in columns if column)


def is_loading() -> bool:
    """Say whether a large load goes on for which the indexes were dropped: queries by them would read all jobs."""
    large = IngestBatch.objects.filter(
        state=IngestBatch.State.RUNNING, leased_until__gte=clock.now(), bytes_total__gte=FROM_BYTES
    )
    return connection.vendor == "postgresql" and large.exists() and bool(_indexes(missing=True))


@contextmanager
def _alone() -> Iterator[bool]:
    """Say whether nobody else builds, to the end of a block.

    A lock of the server's, no lease: it ends with whoever holds it, and however long an index takes, not before.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [_BUILDING])
        alone = bool(cursor.fetchone()[0])
    try:
        yield alone
    finally:
        if alone:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [_BUILDING])


def _indexes(*, missing: bool) -> list[models.Index]:
    """Return the indexes of the model that are missing in the database, or those that are there."""
    with connection.cursor() as cursor:
        there = connection.introspection.get_constraints(cursor, Job._meta.db_table)
    return [index for index in Job._meta.indexes if (index.name not in there) is missing]
