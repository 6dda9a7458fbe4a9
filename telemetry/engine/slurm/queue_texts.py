"""What `squeue` prints of every job, as texts to print again: asked in the one call that a look at the queue makes.

The format is the client's affair: the controller sends every job whole, whatever is printed of it. What people write
stands among the texts, so the marks between them are new at each call and nobody can write one into a name.

Sources: squeue(1), `--Format` with a suffix after each field, which no field is cut to; 22.05 live.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from telemetry.engine.slurm.errors import SHOWN, FieldError, FormatError
from telemetry.engine.slurm.printing import FIELDS, KEYS
from telemetry.engine.slurm.printing.errors import PassedOn
from telemetry.engine.slurm.printing.fields import Kind
from telemetry.engine.slurm.printing.queue_table import UNSURE
from telemetry.engine.slurm.printing.times import read_duration
from telemetry.engine.slurm.queue import Notes, Queue, QueueNote, Standing, said
from telemetry.engine.slurm.values import ENDED_STATES, parse_count, parse_state

_FIELD_END: Final = "\x1f"
_LINE_END: Final = "\x1e"
ASKED: Final = (*KEYS, "stdout", "stderr")  # what is not printed again comes last
_AT: Final = {key: at for at, key in enumerate(ASKED)}
_TIMES: Final = tuple(_AT[field.key] for field in FIELDS if field.kind is Kind.TIME)
_CHANGEABLE: Final = tuple(
    _AT[key] for key in ("jobarrayid", "name", "account", "partition", "qos", "timelimit", "numcpus")
)
_CANNOT_READ: Final = "\N{REPLACEMENT CHARACTER}"
_SLACK_S: Final = 2  # between the clock of this host and the controller's, and within one call
_STANDING: Final = frozenset({"PENDING", "SUSPENDED", "COMPLETING"}) | ENDED_STATES  # time does not go on in them


class Texts(NamedTuple):
    """What one call of `squeue` printed: a row a job, of `ASKED`. It was asked at `asked_s` and had answered at
    `told_s` (UTC, seconds since 1970)."""

    rows: Sequence[Sequence[str]]
    asked_s: int
    told_s: int


def command(mark: str) -> tuple[str, ...]:
    """Return the command; `mark` is a word of hexadecimal digits that nobody can know before."""
    ends = [_FIELD_END] * (len(ASKED) - 1) + [_LINE_END]
    wanted = ",".join(f"{key}:{end}{mark}" for key, end in zip(ASKED, ends, strict=True))
    return "squeue", "--all", "--states=all", "--noheader", "--Format", wanted


def read_texts(text: str, mark: str, *, asked_s: int, told_s: int) -> Texts:
    """Read what `command` printed. Errors: `FormatError`; one bad line spoils all."""
    lines = text.split(f"{_LINE_END}{mark}\n")
    rows = [line.split(f"{_FIELD_END}{mark}") for line in lines[:-1]]
    odd = next((line for line, row in zip(lines, rows, strict=False) if len(row) != len(ASKED)), lines[-1])
    if odd:
        raise FormatError("not_a_queue", f"squeue printed what is no queue: {odd.strip()[:SHOWN]!r}.")
    return Texts(rows, asked_s, told_s)


def queue_of(texts: Texts) -> Queue:
    """Return who stands in the queue, by raw job id; what ended is left out. Errors: `FormatError`."""
    queue: Queue = {}
    for row in texts.rows:
        try:
            number, state = parse_count(row[_AT["jobid"]]) or 0, parse_state(row[_AT["state"]]).name
            if not number:
                raise FieldError("bad_job_id", "a job without a number")
            standing = Standing(state, parse_count(row[_AT["restartcnt"]]) or 0)
        except FieldError as error:
            raise FormatError("not_a_queue", f"squeue printed what is no queue: {row!r:.{SHOWN}}.") from error
        if state not in ENDED_STATES:
            queue[number] = standing
    return queue


def facts_of(texts: Texts) -> dict[int, int]:
    """Return of every job, by raw id, a digest of what can be changed of it while its state stays; for this process."""
    return {int(row[_AT["jobid"]]): hash(tuple(row[at] for at in _CHANGEABLE)) for row in texts.rows}


def notes_of(texts: Texts) -> Notes:
    """Return why each job waits and where it writes, by raw job id. Call it once `queue_of` found all of them right."""
    return {parse_count(row[_AT["jobid"]]) or 0: _note(row) for row in texts.rows}


def _note(row: Sequence[str]) -> QueueNote:
    reason = said(row[_AT["reason"]]) if row[_AT["state"]] == "PENDING" else ""
    return QueueNote(reason, _path(row, "stdout"), _path(row, "stderr"))


def _path(row: Sequence[str], key: str) -> str:
    path = said(row[_AT[key]])
    # Of a task that names no file 22.05 says slurm-<its number>.out, and writes to slurm-<array>_<task>.out.
    is_wrong = row[_AT["arraytaskid"]] != "N/A" and path.endswith(f"/slurm-{row[_AT['jobid']]}.out")
    return "" if is_wrong else path


def sheets_of(texts: Texts, logins: Collection[str]) -> Mapping[str, list[list[str | None]]]:
    """Return the rows of some login names, in squeue's own order, ready to be kept: None for what cannot be told."""
    sheets: dict[str, list[list[str | None]]] = {}
    wanted = frozenset(logins)
    for row in texts.rows:
        if (login := row[_AT["username"]]) in wanted:
            sheets.setdefault(login, []).append(list(_kept(row, texts)))
    return sheets


def _kept(row: Sequence[str], texts: Texts) -> Iterator[str | None]:
    started = _epoch(row[_AT["starttime"]])
    for at, text in enumerate(row[: len(KEYS)]):
        if at in _TIMES:
            yield _epoch(text)
        elif at == _AT["timeused"]:
            yield _used(text, row[_AT["state"]], started, texts)
        else:
            yield None if _CANNOT_READ in text else text


def _epoch(text: str) -> str | None:
    """Return a time as seconds since 1970; words stay, and what is neither is None."""
    if not text[:1].isdigit():
        return text
    try:
        return str(int(datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC).timestamp()))
    except ValueError:
        return None


def _used(text: str, state: str, started: str | None, texts: Texts) -> str:
    """Return how long a job has run where that stands still, "" where it is the time since its start."""
    try:
        used_s = read_duration(text)
    except PassedOn:
        return UNSURE
    if state in _STANDING:
        return text
    if state == "RUNNING" and started and started.isdigit():
        first, last = texts.asked_s - int(started) - _SLACK_S, texts.told_s - int(started) + _SLACK_S
        if first <= used_s <= last:  # and was not suspended
            return ""
    return UNSURE
