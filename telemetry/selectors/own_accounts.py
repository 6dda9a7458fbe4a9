"""What accounting said of somebody's own jobs, read back for one cluster to be printed as sacct prints it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db.models import Q

from portal.core import clock
from portal.core.errors import NotAllowed
from principals.actors import Actor
from principals.models import Cluster
from telemetry.engine.slurm.job_ids import parse_job_id
from telemetry.engine.slurm.printing import FACTS, KEYS, PassedOn
from telemetry.engine.slurm.printing.times import read_duration
from telemetry.models import Job, QuarantinedRow, QueueSheet, SlurmReader
from telemetry.selectors.queue_sheets import queue_not_kept, require_fresh, require_own_cluster

SOURCE: Final = "slurm_reader"  # whose records hold every column as sacct printed it
DEEP: Final = timedelta(hours=48)  # so far back the reader reads again, once a day
KEPT: Final = timedelta(days=4)  # twice as far back as anybody is told of all
SWEPT: Final = timedelta(minutes=15)  # so long ago accounting may have been swept at most
MOST_ROWS: Final = 2000
_AT: Final = {key: at for at, key in enumerate(KEYS)}
_CUT: Final = 64  # letters of a name that is stored cut
_MARKS: Final = (
    "[REDACTED:",
    "\N{REPLACEMENT CHARACTER}",
)  # of what is not stored, or cannot be read
_CLOSED: Final = frozenset({"REQUEUED", "RESIZING"})  # another record of the same job comes after
_READ: Final = (
    "raw_id", "job_id", "array_job_id", "cluster_user_id", "cluster_user__login", "account__name", "partition", "qos",
    "job_name", "state", "cancelled_by_uid", "exit_code", "exit_signal", "submit", "eligible", "start", "end",
    "elapsed_s", "timelimit_s", "nodes", "cpus", "node_list", "work_dir", "submit_line", "batch__source",
)  # fmt: skip
Row = Mapping[str, Any]
Sheet = Sequence[str | None]


@dataclass(frozen=True)
class OwnAccounts:
    """Rows of `FACTS` of one login name's records; `known`, `behind` and `since` as `Accounts` has them."""

    cluster: Cluster
    login: str
    shown: datetime
    rows: Sequence[Sequence[Any]]
    known: Sequence[int]
    behind: Sequence[int]
    since: int | None


def own_accounts(
    actor: Actor, *, cluster_name: str, login: str, jobs: Collection[int], since_s: int | None
) -> OwnAccounts:
    """Return what accounting said of the jobs of one of the actor's login names: of `jobs`, or since a time.

    Errors: those of `require_own_cluster`, `NotAllowed` for another's name, `QueueUnknown` where it is not known well.
    """
    cluster, logins = require_own_cluster(actor, cluster_name)
    if login not in logins:
        raise NotAllowed("That is no login name of yours.", code="no_login_name", remedy="Ask for your own jobs.")
    reader = SlurmReader.objects.filter(cluster=cluster).first()
    shown = require_fresh(reader)
    sheet = QueueSheet.objects.visible_to(actor).filter(cluster_user=logins[login]).values_list("rows", flat=True)
    queue = sheet.first()
    if queue is None:
        raise queue_not_kept()
    standing: dict[int, Sheet] = {int(row[_AT["jobid"]] or 0): row for row in queue}
    rows = _of_jobs(cluster, jobs) if jobs else _since(cluster, logins[login], since_s or 0)
    if len(rows) > MOST_ROWS:
        raise queue_not_kept()
    since = None if _is_any_set_aside(cluster, login) else _swept_since(reader, shown)
    newest = {row["raw_id"]: row for row in rows}  # in the order of their submission
    sure = {raw_id for raw_id, row in newest.items() if _agree(row, standing.get(raw_id))}
    behind = _behind(cluster, standing, newest, jobs)
    told = []
    for row in (row for row in rows if row["cluster_user_id"] == logins[login]):
        is_newest = row is newest[row["raw_id"]]
        told.append(_facts(row, standing.get(row["raw_id"]), is_sure=not is_newest or row["raw_id"] in sure))
    return OwnAccounts(
        cluster=cluster, login=login, shown=shown, rows=told, known=sorted(_known(jobs, rows, logins[login], since)),
        behind=sorted(behind), since=since,
    )  # fmt: skip


def _swept_since(reader: SlurmReader | None, shown: datetime) -> int | None:
    """Return since when every record of the cluster is known, None where no time is."""
    if reader is None or reader.deep_swept is None or reader.swept_until is None:
        return None
    return int((reader.deep_swept - DEEP).timestamp()) if shown - reader.swept_until <= SWEPT else None


def _is_any_set_aside(cluster: Cluster, login: str) -> bool:
    """Say whether a record that may be of a login name could not be read: there are more than are stored."""
    lately = QuarantinedRow.objects.filter(batch__cluster=cluster, batch__source=SOURCE, at__gte=clock.now() - KEPT)
    return lately.filter(raw__contains=login).exists()


def _of_jobs(cluster: Cluster, jobs: Collection[int]) -> list[Row]:
    """Return all records of some ids, whoever's they are: an id is given again."""
    return _read(Job.objects.filter(Q(raw_id__in=jobs) | Q(array_job_id__in=jobs), cluster=cluster))


def _since(cluster: Cluster, user_id: int, since_s: int) -> list[Row]:
    own = Job.objects.filter(cluster=cluster, cluster_user=user_id)
    since = datetime.fromtimestamp(since_s, UTC)
    return sorted([*_read(own.filter(end__gte=since, usage_end__gte=since)), *_read(own.filter(end=None))],
                  key=lambda row: row["submit"])  # fmt: skip


def _read(jobs: Any) -> list[Row]:
    return list(jobs.order_by("submit", "pk").values(*_READ)[: MOST_ROWS + 1])


def _known(jobs: Collection[int], rows: Iterable[Row], user_id: int, since: int | None) -> set[int]:
    """Return the ids asked about under which everything is known, and the user's own."""
    told: dict[int, list[Row]] = {}
    for row in rows:
        for job in {row["raw_id"], row["array_job_id"]} & set(jobs):
            told.setdefault(job, []).append(row)
    return {job for job, known in told.items() if _is_whole(known, user_id, since)}


def _is_whole(rows: Sequence[Row], user_id: int, since: int | None) -> bool:
    """Say whether nothing is missing under an id: no task of an array, no part of a job, no later record."""
    if any(row["cluster_user_id"] != user_id or "+" in row["job_id"] for row in rows):
        return False
    if any(row["state"] in _CLOSED for row in {row["raw_id"]: row for row in rows}.values()):
        return False
    is_array = any(row["array_job_id"] is not None for row in rows)
    return not is_array or (since is not None and rows[0]["submit"].timestamp() >= since)


def _behind(
    cluster: Cluster, standing: Mapping[int, Sheet], newest: Mapping[int, Row], jobs: Collection[int]
) -> set[int]:
    """Return the ids of jobs in the queue of which nothing is stored: those asked about, or any."""
    missing = {raw_id: row for raw_id, row in standing.items() if raw_id not in newest}
    if jobs:
        missing = {raw_id: row for raw_id, row in missing.items() if _ids(raw_id, row) & set(jobs)}
    else:  # what ended before the span is stored, and is none of it
        missing = {raw_id: missing[raw_id] for raw_id in missing.keys() - _stored(cluster, missing)}
    return {job for raw_id, row in missing.items() for job in _ids(raw_id, row)}


def _stored(cluster: Cluster, standing: Mapping[int, Sheet]) -> set[int]:
    if not standing:
        return set()
    submits = {raw_id: row[_AT["submittime"]] for raw_id, row in standing.items()}
    told = Job.objects.filter(cluster=cluster, raw_id__in=submits, end__isnull=False).values_list("raw_id", "submit")
    return {raw_id for raw_id, submit in told if submits[raw_id] == _seconds(submit)}


def _ids(raw_id: int, row: Sheet) -> set[int]:
    array = row[_AT["arrayjobid"]] or ""
    return {raw_id} | ({int(array)} if array.isdigit() else set())


def _agree(row: Row, told: Sheet | None) -> bool:
    """Say whether accounting said what is stored, and the queue, where it has the job, says the same."""
    if row["batch__source"] != SOURCE:
        return False
    if told is None:
        return row["end"] is not None
    text = {key: told[at] for key, at in _AT.items()}
    same: list[tuple[object, object]] = [(text["state"], row["state"]), (text["submittime"], _seconds(row["submit"]))]
    if row["end"] is None:
        same += [
            (text["jobarrayid"], row["job_id"]), (text["name"], row["job_name"]), (text["qos"], row["qos"]),
            (text["partition"], row["partition"]), (text["account"], row["account__name"]),
            (text["numcpus"], str(row["cpus"])), (_limit_s(text["timelimit"]), row["timelimit_s"]),
        ]  # fmt: skip
        if row["start"] is not None:
            same.append((text["starttime"], _seconds(row["start"])))
    return all(queue == stored for queue, stored in same)


def _limit_s(text: str | None) -> int | None:
    try:
        return read_duration(text or "")
    except PassedOn:  # none, or the partition's
        return None


def _seconds(instant: datetime | None) -> str:
    return "" if instant is None else str(int(instant.timestamp()))


def _facts(row: Row, told: Sheet | None, *, is_sure: bool) -> list[Any]:
    """Return a row of `FACTS`."""
    has_ended, has_run = row["end"] is not None, row["start"] is not None
    runs = not has_ended and has_run and told is not None and told[_AT["timeused"]] == ""
    facts = {
        "raw_id": row["raw_id"], "job_id": _whole(row["job_id"]), "array_job": row["array_job_id"],
        "task": parse_job_id(row["job_id"]).array_task if row["array_job_id"] is not None else None,
        "user": row["cluster_user__login"], "account": row["account__name"] or "",
        "partition": _whole(row["partition"]), "qos": _whole(row["qos"]), "name": _shown(row["job_name"]),
        "state": row["state"], "cancelled_by": row["cancelled_by_uid"], "exit_code": row["exit_code"],
        "exit_signal": row["exit_signal"],
        **{name: None if row[name] is None else int(row[name].timestamp())
           for name in ("submit", "eligible", "start", "end")},
        "elapsed_s": row["elapsed_s"] if has_ended else None if has_run else 0, "limit_s": row["timelimit_s"],
        "nodes": row["nodes"] if has_run else None, "cpus": row["cpus"], "node_list": _shown(row["node_list"]),
        "work_dir": _shown(row["work_dir"]), "submit_line": _shown(row["submit_line"]), "runs": runs,
        "is_sure": is_sure and row["batch__source"] == SOURCE,
    }  # fmt: skip
    return [facts[name] for name in FACTS]


def _shown(text: str) -> str | None:
    return None if any(mark in text for mark in _MARKS) else text


def _whole(text: str) -> str | None:
    return _shown(text) if len(text) < _CUT else None
