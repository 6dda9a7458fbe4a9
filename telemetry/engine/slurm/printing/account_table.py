"""The answer to a command line of `sacct -X` from what the portal knows of somebody's own jobs.

Which records there are, in which order, and how each is written is sacct's of 22.05: those of a span that were eligible
in it, of each job id the one that was submitted last, by submit time, array, task and id.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from telemetry.engine.slurm.printing.account_asked import AskedAccounts
from telemetry.engine.slurm.printing.account_fields import FACTS, AccountField
from telemetry.engine.slurm.printing.errors import PassedOn
from telemetry.engine.slurm.printing.options import AskedJob
from telemetry.engine.slurm.printing.queue_table import Printed
from telemetry.engine.slurm.printing.times import write_time

NO_TASK: Final = 2**32 - 2  # what stands for no task, in Slurm's order too
_ROUND: Final = 1000  # from here on a count of nodes is written in thousands
Fact = Mapping[str, Any]


@dataclass(frozen=True)
class Accounts:
    """What is known of somebody's own records, each a row of `FACTS`.

    `login` is whose they are; `known` the ids asked about of which every record is told; `behind` those of jobs in the
    queue that accounting, or the portal, does not know yet. All that was in a span since `since_s` is told.
    """

    rows: Sequence[Sequence[Any]]
    login: str
    known: Collection[int] = ()
    behind: Collection[int] = ()
    since_s: int | None = None


def print_accounts(asked: AskedAccounts, accounts: Accounts, *, login: str, now_s: int) -> Printed:
    """Print what sacct would print for the user `login`, whose records `accounts` tells, now. Errors: `PassedOn`."""
    if login != accounts.login or asked.user not in {"", login} or login == "root":
        raise PassedOn("other_user")
    _require_told(asked, accounts)
    records = [dict(zip(FACTS, row, strict=True)) for row in accounts.rows]
    if not all(any(_is_job(each, record) for record in records) for each in asked.jobs):
        raise PassedOn("array")  # a task that still stands in a line with others
    chosen = _newest(record for record in records if _is_asked(asked, record, now_s))
    if not all(record["is_sure"] for record in chosen):
        raise PassedOn("accounting")
    lines = [_header(asked)] if asked.has_header else []
    lines += [_line(asked, record, now_s) for record in chosen]
    return Printed(b"".join(lines))


def _require_told(asked: AskedAccounts, accounts: Accounts) -> None:
    """Refuse what may be about jobs that nobody told of yet."""
    if asked.jobs:
        if {each.job for each in asked.jobs} & set(accounts.behind):
            raise PassedOn("unknown_job")
        if not {each.job for each in asked.jobs} <= set(accounts.known):
            raise PassedOn("unknown_job")
        return
    if accounts.since_s is None or asked.since_s < accounts.since_s:
        raise PassedOn("old")
    if accounts.behind:
        raise PassedOn("unknown_job")


def _is_asked(asked: AskedAccounts, record: Fact, now_s: int) -> bool:
    end, until_s = record["end"], now_s + 1 if asked.until_s is None else asked.until_s
    if end is not None and end < asked.since_s:
        return False
    if not asked.jobs:
        eligible = record["eligible"]
        return eligible is not None and bool(eligible < until_s)
    return bool(record["submit"] < until_s) and any(_is_job(each, record) for each in asked.jobs)


def _is_job(asked: AskedJob, record: Fact) -> bool:
    if asked.task is None:
        return asked.job in {record["raw_id"], record["array_job"]}
    return (asked.job, asked.task) == (record["array_job"], record["task"])


def _newest(records: Iterable[Fact]) -> list[Fact]:
    newest: dict[int, Fact] = {}
    for record in sorted(records, key=lambda each: each["submit"]):
        newest[record["raw_id"]] = record
    return sorted(newest.values(), key=_order)


def _order(record: Fact) -> tuple[int, int, int, int]:
    task = NO_TASK if record["task"] is None else record["task"]
    return record["submit"], record["array_job"] or 0, task, record["raw_id"]


def _header(asked: AskedAccounts) -> bytes:
    names = [field.header.encode() for field in asked.fields]
    if asked.is_parsable:
        return b"|".join(names) + b"\n"
    widths = [field.width for field in asked.fields]
    cells = [_pad(name[: abs(width)], width) for name, width in zip(names, widths, strict=True)]
    return b"".join(cells) + b"\n" + b"".join(b"-" * abs(width) + b" " for width in widths) + b"\n"


def _line(asked: AskedAccounts, record: Fact, now_s: int) -> bytes:
    texts = [(field, _written(field, record, now_s).encode()) for field in asked.fields]
    if asked.is_parsable:
        return b"|".join(text for _, text in texts) + b"\n"
    return b"".join(_pad(_cut(field, text), field.width) for field, text in texts) + b"\n"


def _cut(field: AccountField, text: bytes) -> bytes:
    width = abs(field.width)
    return text if field.is_number or len(text) <= width else text[: width - 1] + b"+"


def _pad(text: bytes, width: int) -> bytes:
    return (text.ljust(-width) if width < 0 else text.rjust(width)) + b" "


def _written(field: AccountField, record: Fact, now_s: int) -> str:
    return _WRITERS[field.header](record, now_s)


def _known(record: Fact, name: str) -> Any:
    value = record[name]
    if value is None:
        raise PassedOn("withheld")
    return value


def _text(name: str) -> "Writer":
    return lambda record, now_s: str(_known(record, name))


def _time(name: str) -> "Writer":
    def write(record: Fact, now_s: int) -> str:
        seconds = record[name]
        return "Unknown" if seconds is None else write_time(str(seconds))

    return write


def _start(record: Fact, now_s: int) -> str:
    if record["start"] is None and record["end"] is not None:  # it ended and never ran
        return "None"
    return _time("start")(record, now_s)


def _state(record: Fact, now_s: int) -> str:
    by = record["cancelled_by"]
    return f"{_known(record, 'state')}" + (f" by {by}" if by is not None else "")


def _exit_code(record: Fact, now_s: int) -> str:
    return f"{record['exit_code'] or 0}:{record['exit_signal'] or 0}"


def _elapsed_s(record: Fact, now_s: int) -> int:
    if record["runs"]:
        return max(0, now_s - int(_known(record, "start")))
    return int(_known(record, "elapsed_s"))


def _nodes(record: Fact, now_s: int) -> str:
    nodes = _known(record, "nodes")
    if nodes >= _ROUND:
        raise PassedOn("withheld")
    return str(nodes)


def write_span(seconds: int) -> str:
    """Write a span of time as sacct does: `00:01:05`, `1-00:00:00`."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return (f"{days}-" if days else "") + f"{hour:02}:{minute:02}:{second:02}"


Writer = Callable[[Fact, int], str]
_WRITERS: Final[dict[str, Writer]] = {
    "Account": _text("account"),
    "AllocCPUS": _text("cpus"),
    "CPUTime": lambda record, now_s: write_span(_elapsed_s(record, now_s) * int(_known(record, "cpus"))),
    "CPUTimeRAW": lambda record, now_s: str(_elapsed_s(record, now_s) * int(_known(record, "cpus"))),
    "Elapsed": lambda record, now_s: write_span(_elapsed_s(record, now_s)),
    "ElapsedRaw": lambda record, now_s: str(_elapsed_s(record, now_s)),
    "Eligible": _time("eligible"),
    "End": _time("end"),
    "ExitCode": _exit_code,
    "JobID": _text("job_id"),
    "JobIDRaw": _text("raw_id"),
    "JobName": _text("name"),
    "NCPUS": _text("cpus"),
    "NNodes": _nodes,
    "NodeList": _text("node_list"),
    "Partition": _text("partition"),
    "QOS": _text("qos"),
    "Start": _start,
    "State": _state,
    "Submit": _time("submit"),
    "SubmitLine": _text("submit_line"),
    "Timelimit": lambda record, now_s: write_span(int(_known(record, "limit_s"))),
    "TimelimitRaw": lambda record, now_s: str(int(_known(record, "limit_s")) // 60),
    "User": _text("user"),
    "WorkDir": _text("work_dir"),
}
