"""The answer to a command line of `squeue` from what the portal knows of somebody's own jobs."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from telemetry.engine.slurm.printing.asked import ALL, STATES, Asked
from telemetry.engine.slurm.printing.errors import PassedOn
from telemetry.engine.slurm.printing.fields import KEYS, Kind
from telemetry.engine.slurm.printing.layout import Column, lay_out, lay_out_header
from telemetry.engine.slurm.printing.times import read_duration, write_duration, write_time

GONE: Final = "slurm_load_jobs error: Invalid job id specified\n"
QUEUED: Final = frozenset({"PD", "R", "S", "CG", "CF"})  # what squeue shows unless it is asked for states
FLAGS: Final = frozenset({"CG", "CF"})  # they stand for a state behind them that squeue does not name
UNSURE: Final = "?"  # a duration that is not known for sure
_AT: Final = {key: at for at, key in enumerate(KEYS)}
_SORTED_BY: Final = tuple(_AT[key] for key in ("partition", "statecompact", "prioritylong", "starttime"))
Row = Sequence[str | None]


@dataclass(frozen=True)
class Queue:
    """What is known of somebody's own jobs, in the order in which squeue lists them: of each the texts of `KEYS`.

    `logins` are the names that they are of; `ended` the ids of own jobs asked about that Slurm's queue no longer has;
    `open` the partitions whose jobs squeue shows to everybody, also without `--all`.
    """

    rows: Sequence[Row]
    logins: Collection[str]
    ended: Collection[int] = ()
    open: Collection[str] = ()


class Printed(NamedTuple):
    """What the command prints, and its exit code."""

    out: bytes
    complaint: str = ""
    status: int = 0


def print_queue(asked: Asked, queue: Queue, *, login: str, now_s: int) -> Printed:
    """Print what squeue would print for the user `login`, whose own jobs `queue` tells, now. Errors: `PassedOn`."""
    _require_own(asked, queue, login)
    if len(asked.jobs) == 1 and not _rows_of(asked.jobs[0].job, queue):
        return Printed(b"", GONE, 1)  # asked about one job, the controller says that it knows it no more
    rows = [row for row in queue.rows if _is_asked(asked, row, queue, login)]
    _require_order(asked, rows)
    out = [lay_out_header(asked.layout)] if asked.has_header else []
    out += [lay_out(asked.layout, [_text(column, row, now_s) for column in asked.layout.columns]) for row in rows]
    return Printed(b"".join(out))


def _require_order(asked: Asked, rows: Sequence[Row]) -> None:
    """Refuse rows whose order is not known.

    Nobody kept how those of one login name stand among those of another. Asked about one job, the controller tells of
    an array's tasks in an order of its own, which squeue keeps where all that it sorts by is the same.
    """
    if len({row[_AT["username"]] for row in rows}) > 1:
        raise PassedOn("order")
    if len(asked.jobs) == 1 and len({tuple(row[at] for at in _SORTED_BY) for row in rows}) < len(rows):
        raise PassedOn("order")


def _require_own(asked: Asked, queue: Queue, login: str) -> None:
    """Refuse what may concern anybody else's jobs, or jobs that nobody told of yet."""
    if asked.me and login not in queue.logins:
        raise PassedOn("other_user")
    if not set(asked.users) <= set(queue.logins):
        raise PassedOn("other_user")
    if not (asked.me or asked.users or asked.jobs):
        raise PassedOn("all_users")
    for job in {each.job for each in asked.jobs}:
        if not _rows_of(job, queue) and job not in queue.ended:
            raise PassedOn("unknown_job")


def _rows_of(job: int, queue: Queue) -> list[Row]:
    return [row for row in queue.rows if job in _ids(row)]


def _ids(row: Row) -> set[int]:
    """Return the ids that a row is asked for by: its own, its array's, and that of the job it is a component of."""
    texts = (row[_AT["jobid"]], row[_AT["arrayjobid"]], (row[_AT["jobarrayid"]] or "").partition("+")[0])
    return {int(text) for text in texts if text and text.isascii() and text.isdigit()}


def _known(row: Row, key: str) -> str:
    text = row[_AT[key]]
    if text is None:
        raise PassedOn("withheld")
    return text


def _is_asked(asked: Asked, row: Row, queue: Queue, login: str) -> bool:
    users = (login,) if asked.me else asked.users
    if users and _known(row, "username") not in users:
        return False
    if asked.jobs and not any(_is_job(each.job, each.task, row) for each in asked.jobs):
        return False
    if asked.accounts and not _is_one(asked.accounts, _known(row, "account"), str.lower):
        return False
    if asked.names and not _is_one(asked.names, _known(row, "name"), str.lower):
        return False
    in_partitions = _known(row, "partition").split(",")
    if asked.partitions and not set(asked.partitions) & set(in_partitions):
        return False
    if not (asked.wants_hidden or set(in_partitions) <= set(queue.open)):
        raise PassedOn("hidden")
    return _is_in_state(asked, _known(row, "statecompact"))


def _is_one(wanted: Sequence[str], text: str, fold: Callable[[str], str]) -> bool:
    if not all(each.isascii() for each in wanted):
        return text in wanted or _raise("folding")
    if not text.isascii():  # letters are compared as bytes
        return False
    return fold(text) in {fold(each) for each in wanted}


def _raise(reason: str) -> bool:
    raise PassedOn(reason)


def _is_job(job: int, task: int | None, row: Row) -> bool:
    if job not in _ids(row):
        return False
    if task is None:
        return True
    number = _known(row, "arraytaskid")
    if number == "N/A":
        raise PassedOn("array")
    if not number.isdigit():  # several tasks in one line, of which squeue would print those that were asked for
        raise PassedOn("array")
    return int(number) == task and _known(row, "arrayjobid") == str(job)


def _is_in_state(asked: Asked, state: str) -> bool:
    if asked.states == ALL:
        return True
    if state not in STATES:
        raise PassedOn("job_state")
    if asked.states is None:
        return state in QUEUED
    if state in asked.states:
        return True
    return state in FLAGS and _raise("job_state")


def _text(column: Column, row: Row, now_s: int) -> str | None:
    field = column.field
    if field.kind is Kind.LEFT:
        limit = _known(row, "timelimit")
        return limit if limit.isupper() else write_duration(read_duration(limit) - _used_s(row, now_s))
    if field.kind is Kind.USED:
        return write_duration(_used_s(row, now_s))
    text = row[_AT[field.key]]
    return write_time(text) if field.kind is Kind.TIME and text is not None else text


def _used_s(row: Row, now_s: int) -> int:
    used = _known(row, "timeused")
    if used == UNSURE:
        raise PassedOn("time")
    return read_duration(used) if used else now_s - int(_known(row, "starttime"))
