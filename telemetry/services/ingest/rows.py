"""Job records as table rows: what is stored already, and the statements that insert and update.

`bulk_create(update_conflicts=True)` spends most of its time on building model instances and SQL text; one prepared
statement with `executemany` is several times as fast and the same on SQLite and PostgreSQL.
"""

import io
import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from django.db import connection

from portal.core import clock
from principals.models import Cluster
from telemetry.engine.attribution import Attribution
from telemetry.engine.plain import plain
from telemetry.engine.redaction import is_secretless
from telemetry.engine.reports import Known
from telemetry.engine.slurm.records import EARLIEST_S, LARGEST_COUNT, LONGEST_S, JobRecord
from telemetry.engine.touched import Footprint
from telemetry.engine.usage import DAY_S
from telemetry.services.attribution import OWN_CAMPAIGN
from telemetry.services.ingest.quarantine import OTHER_CLUSTER

if TYPE_CHECKING:
    import polars as pl

Key = tuple[int, int]  # raw job id, submit time
Row = tuple[Any, ...]

KEY: Final = ("cluster_id", "raw_id", "submit")
VALUES: Final = (
    "job_id", "array_job_id", "array_tasks", "cluster_user_id", "account_id", "lab_id", "partition", "qos", "state",
    "reason", "eligible", "start", "end", "usage_end", "elapsed_s", "timelimit_s", "nodes", "cpus", "gpus",
    "mem_bytes", "exit_code", "exit_signal", "cancelled_by_uid", "restarts", "job_name", "node_list", "submit_line",
    "work_dir", "campaign", "extra", "actor", "actor_method", "actor_confidence", "harness", "session_id", "agent_id",
    "digest", "changed", "batch_id",
)  # fmt: skip


_COLUMNS: Final = ", ".join(f'"{name}"' for name in (*KEY, *VALUES))
_PLACES: Final = ", ".join(["%s"] * (len(KEY) + len(VALUES)))
_CHANGES: Final = ", ".join(f'"{name}" = excluded."{name}"' for name in VALUES)
_COPY: Final = f"COPY telemetry_job ({_COLUMNS}) FROM STDIN"
_ESCAPES: Final = {"\\": "\\\\", "\t": "\\t", "\r": "\\r", "\n": "\\n"}
_INSERT: Final = f"INSERT INTO telemetry_job ({_COLUMNS}) VALUES ({_PLACES})"  # noqa: S608 - names, no values
_UPSERT: Final = f"{_INSERT} ON CONFLICT (cluster_id, raw_id, submit) DO UPDATE SET {_CHANGES}"
_SELECT: Final = (
    "SELECT raw_id, submit, digest, state, cluster_user_id, start, usage_end, elapsed_s, lab_id, partition, qos, "
    "actor, harness, nodes, cpus, gpus, array_tasks FROM telemetry_job WHERE cluster_id = %s AND raw_id IN ("
)
_ANY_BETWEEN: Final = "SELECT 1 FROM telemetry_job WHERE cluster_id = %s AND raw_id BETWEEN %s AND %s LIMIT 1"
_DIGESTS: Final = "SELECT raw_id, submit, digest FROM telemetry_job WHERE cluster_id = %s AND raw_id IN ("
_IDS_A_QUERY: Final = 5000
NO_LONG_ABOVE: Final = 2**63 - 1
NAME_LENGTH: Final = 64


def find_known(cluster_id: int, raw_ids: Iterable[int]) -> dict[Key, Known]:
    """Return what is stored under some raw job ids: one query."""
    ids = sorted(set(raw_ids))
    if not ids:
        return {}
    places = ", ".join(["%s"] * len(ids))
    with connection.cursor() as cursor:
        cursor.execute(f"{_SELECT}{places})", [cluster_id, *ids])
        return {
            (row[0], row[1]): Known(row[2], row[3], Footprint(row[4], row[1], row[5], row[6], row[7], row[8:]))
            for row in cursor.fetchall()
        }


def write(new: Sequence[Row], known: Sequence[Row]) -> None:
    """Insert rows of `make_row` whose key is new, and update those whose key is known.

    Call it with the cluster's row locked, so that what is new stays new. On SQLite the plain insert takes little more
    than half the time of one that is ready to update (measured: 45 and 80 µs a row).
    """
    with connection.cursor() as cursor:
        if new and connection.vendor == "postgresql":  # a third of the time of a statement a row
            with cursor.copy(_COPY) as copy:
                for row in new:
                    copy.write_row(row)
        elif new:
            cursor.executemany(_INSERT, new)
        if known:
            cursor.executemany(_UPSERT, known)


def find_digests(cluster_id: int, raw_ids: Sequence[int]) -> dict[Key, int]:
    """Return the digests of what is stored under some raw job ids; nothing but one query where all of them are new."""
    found: dict[Key, int] = {}
    if not raw_ids:
        return found
    with connection.cursor() as cursor:
        cursor.execute(_ANY_BETWEEN, [cluster_id, min(raw_ids), max(raw_ids)])
        if cursor.fetchone() is None:
            return found
        for first in range(0, len(raw_ids), _IDS_A_QUERY):
            ids = raw_ids[first : first + _IDS_A_QUERY]
            places = ", ".join(["%s"] * len(ids))
            cursor.execute(f"{_DIGESTS}{places})", [cluster_id, *ids])
            found |= {(raw_id, submit): digest for raw_id, submit, digest in cursor.fetchall()}
    return found


def insert_frame(frame: "pl.DataFrame") -> None:
    """Insert rows given in columns as `KEY` and `VALUES` name them; all of them are new. PostgreSQL takes a copy."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.executemany(_INSERT, frame.rows())
        return
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        copy.write(_copy_text(frame))


def _copy_text(frame: "pl.DataFrame") -> bytes:
    """Write rows in the text format of COPY (PostgreSQL manual, "COPY"), which the server reads faster than CSV."""
    import polars as pl

    texts = pl.col(pl.String)
    if frame.select(pl.concat_str(texts).str.contains(r"[\\\t\r\n]").any()).item():  # few blocks have any
        frame = frame.with_columns(texts.str.replace_many(_ESCAPES))
    text = io.BytesIO()
    frame.write_csv(text, include_header=False, separator="\t", quote_style="never", null_value="\\N")
    return text.getvalue()


def find_fault(record: JobRecord, cluster: str) -> tuple[str, str] | None:
    """Say why a record is no row of `cluster`: a reason's code and its words; None where it is one."""
    if misnamed := find_misnamed(record.user, record.account, record.group, named=record.cluster, cluster=cluster):
        return misnamed
    if misfit := _find_misfit(record):
        return "out_of_range", misfit
    return _find_mistimed(record)


@lru_cache(maxsize=4096)  # names repeat
def find_misnamed(*names: str, named: str, cluster: str) -> tuple[str, str] | None:
    """Say why user, account and group of a record of the cluster `named` cannot be kept for `cluster`."""
    if named and named != cluster and (other := _find_other(named, cluster)):
        return OTHER_CLUSTER, other
    if max(map(len, names)) > NAME_LENGTH:
        return "out_of_range", f"A user, account or group of more than {NAME_LENGTH} characters"
    secretless = all(map(is_secretless, names))
    return None if secretless else ("out_of_range", "A user, account or group that looks like a secret")


def _find_other(named: str, cluster: str) -> str:
    """Say that a record names another cluster than it was sent for; Slurm takes names in any case for the same."""
    if Cluster(name=cluster).is_named(named):
        return ""
    shown = plain(named)[:NAME_LENGTH]
    return (
        f"The record is of cluster {shown}, not of {cluster}. Send it again for cluster {shown}, or leave the Cluster "
        "column out."
    )


def _find_mistimed(record: JobRecord) -> tuple[str, str] | None:
    """Say which time of a record cannot be: each day on which a job ran is computed anew, and Slurm knows no others."""
    start, until = start_of(record), usage_end_of(record)
    first = record.submit_s if start is None else min(record.submit_s, start)
    if first < EARLIEST_S or (until is not None and until < EARLIEST_S):
        return "past_date", "Submitted, started or ended before 2000: is the clock wrong?"
    if until is not None and until > clock.now_s() + DAY_S:
        return "future_date", "Ran until more than a day from now: is the clock or zone wrong?"
    longest = LONGEST_S if start is None or until is None else until - start + DAY_S
    if record.elapsed_s > longest:
        return "out_of_range", "Ran longer than from its start to its end"
    return None


def _find_misfit(record: JobRecord) -> str:
    """Say which number of a record no column can hold; "" where all fit."""
    counts = max(
        record.nodes, record.cpus, record.gpus, record.array_tasks, record.restarts, record.exit_code,
        record.exit_signal,
    )  # fmt: skip
    if counts > LARGEST_COUNT:
        return f"A count above {LARGEST_COUNT}"
    longs = max(
        record.elapsed_s, record.mem_bytes or 0, record.timelimit_s or 0, record.array_job_id or 0,
        record.cancelled_by_uid or 0,
    )  # fmt: skip
    return f"A number above {NO_LONG_ABOVE}" if longs > NO_LONG_ABOVE else ""


def usage_end_of(record: JobRecord) -> int | None:
    """Return until when a record used its cores: its end, or for a running job the instant it was last seen."""
    if record.end_s is not None:
        return record.end_s
    return record.start_s + record.elapsed_s if record.started and record.start_s is not None else None


def start_of(record: JobRecord) -> int | None:
    """Return when a record got its nodes; None where it never did (Slurm writes a start time for those too)."""
    return record.start_s if record.started else None


def footprint_of(record: JobRecord, user_id: int, lab_id: int, found: Attribution) -> Footprint:
    """Return where a record counts; `shape` in the order of the columns of `find_known`."""
    shape = (
        lab_id, record.partition[:64], record.qos[:64], found.actor, found.harness, record.nodes, record.cpus,
        record.gpus, record.array_tasks,
    )  # fmt: skip
    return Footprint(user_id, record.submit_s, start_of(record), usage_end_of(record), record.elapsed_s, shape)


def make_row(
    record: JobRecord,
    footprint: Footprint,
    *,
    digest: int,
    ids: tuple[int, int, int | None, int],
    found: Attribution,
    campaign: str,
    changed_s: int,
    batch_id: int,
) -> Row:
    """Return the row of a record that counts at `footprint`; `ids` are cluster, user, account and lab."""
    cluster_id, user_id, account_id, lab_id = ids
    ended = record.end_s is not None
    return (
        cluster_id, record.raw_job_id, record.submit_s,
        record.job_id[:64], record.array_job_id, record.array_tasks, user_id, account_id, lab_id,
        footprint.shape[1], footprint.shape[2], record.state,
        record.reason[:100], record.eligible_s, footprint.start_s, record.end_s, footprint.usage_end_s,
        record.elapsed_s, record.timelimit_s, record.nodes, record.cpus, record.gpus,
        record.mem_bytes, record.exit_code if ended else None, record.exit_signal if ended else None,
        record.cancelled_by_uid, record.restarts, record.job_name, record.node_list, record.submit_line,
        record.work_dir, campaign, _extra(record), found.actor, found.method, found.confidence, found.harness,
        found.session_id, found.agent_id, digest, changed_s, batch_id,
    )  # fmt: skip


def _extra(record: JobRecord) -> str:
    """Return the JSON of what has no column: unknown columns, the comment, GPU types, the job's own campaign."""
    if not (record.extra or record.comment or record.gpu_types or record.campaign):
        return "{}"
    return extra_json(tuple(record.extra.items()), record.comment, record.gpu_types, record.campaign[:100])


@lru_cache(maxsize=4096)  # much the same for the jobs of a campaign; writing JSON costs more than all else of a row
def extra_json(unknown: tuple[tuple[str, str], ...], comment: str, gpu_types: tuple[str, ...], campaign: str) -> str:
    """Return the JSON of what a job has in no column: unknown columns, comment, GPU types, its own campaign."""
    extra: dict[str, object] = dict(unknown)
    if comment:
        extra["Comment"] = comment
    if gpu_types:
        extra["gpu_types"] = gpu_types
    if campaign:
        extra[OWN_CAMPAIGN] = campaign
    return json.dumps(extra, ensure_ascii=False)
