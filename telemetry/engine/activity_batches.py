"""A batch of a collector: its parts, and what is wrong with one by itself. Whom it may name is the portal's to say."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final, Literal, NamedTuple, TypeAlias

from telemetry.engine.activity import ALL, CATEGORY, CONNECTION, MEASURES

Driver: TypeAlias = Literal["agent", "human", "unknown"]
SessionKind: TypeAlias = Literal["agent", "interactive"]
Place: TypeAlias = Literal["login", "job", "ssh", "gateway", "agent_host"]

KIND_OF_DRIVER: Final[Mapping[str, SessionKind]] = {"agent": "agent", "human": "interactive"}
LARGEST_COUNT: Final = 1_000_000_000
EDGE: Final = timedelta(seconds=2)  # clocks are read to whole seconds at a batch's edges
CLOCKS_DIFFER: Final = timedelta(minutes=5)
# A collector's spool holds less; the days of older minutes are no longer added up anew.
TAKEN_FOR: Final = timedelta(days=25)
_MINUTE: Final = timedelta(minutes=1)
_DAY: Final = timedelta(days=1)
_LONGEST: Final = timedelta(days=366)  # no loop is longer
REMEDIES: Final = {
    "session_id_invalid": "Name a session by its root's process id and start in ticks: `812-99731`.",
    "session_unknown": "Send the session with the batch in which it is named.",
    "session_on_unknown": "Leave the session out: what nobody is known to drive belongs to none.",
    "session_missing": "Name the session that it belongs to.",
    "job_elsewhere": "Name the job of a session whose place is `job` alone.",
    "evidence_elsewhere": "Send the evidence `ssh_key`, and whose it is, of agents' sessions over SSH alone.",
    "ssh_contradicts": "Send no more keys or clients of a day than pairs of them, and no more pairs than connections "
    "that something was logged of.",
    "ssh_twice": "Send a day once.",
    "place_of_gateways": "Send what collectors see; of gateways their access logs tell (manage.py import_gateway_log).",
    "minute_not_whole": "Send the minute's first second.",
    "minute_twice": "Send a minute of a session once; add its counts up.",
    "outside_batch": "Send what lies between the batch's `from` and `to`.",
    "counts_empty": "Leave out minutes in which nothing was counted.",
    "measure_unknown": "Send the portal's measures alone; the collector may be newer than the portal.",
    "count_out_of_range": "Send whole counts from 1 on.",
    "counts_contradict": "Count each command as such, in one category, and at most once for each other measure.",
    "end_before_start": "Send times in their order.",
    "future_date": "Send times that are past; check the clock of the host.",
    "too_old": f"Send within {TAKEN_FOR.days} days; older minutes are not kept long enough to be added up.",
    "queries_out_of_range": "Send loops of two queries or more, with the seconds between them.",
    "no_study": "People are observed in a baseline study alone: operators start one with manage.py baseline_study, "
    "and the collector names it.",
}
_SESSION_ID: Final = re.compile(r"\d{1,10}-\d{1,20}\Z", re.ASCII)
_KNOWN: Final = frozenset(MEASURES)


class SessionPart(NamedTuple):
    """A session that began, ended or was active."""

    id: str
    kind: SessionKind
    harness: str
    user: str
    start: datetime
    last: datetime
    end: datetime | None
    place: Place = "login"
    job: int | None = None  # the raw id of the job that it runs in
    evidence: str = ""
    agent: str = ""  # the registered one that the evidence names


class MinutePart(NamedTuple):
    """What one driver did in one minute, of a session or of the node (""); a session's is at the session's place."""

    session: str
    driver: Driver
    minute: datetime
    counts: Mapping[str, int]
    place: Place = "login"


class SubmissionPart(NamedTuple):
    """An sbatch, srun or salloc that started."""

    session: str
    at: datetime


class PollingPart(NamedTuple):
    """A loop of the same query."""

    session: str
    first: datetime
    last: datetime
    queries: int
    period_s: float


class LoopPart(NamedTuple):
    """A submission and the next one, with a look or an edit in between."""

    session: str
    submitted: datetime
    again: datetime


class SshPart(NamedTuple):
    """Connections of a day by SSH, without a terminal, that are no agent's: sums since the collector's start.

    Of `untold` nothing was logged; the others came by so many different keys, from so many clients.
    """

    day: date
    connections: int
    untold: int
    keys: int
    clients: int
    pairs: int


class Health(NamedTuple):
    """How the collector did meanwhile."""

    events: int
    lost: int
    argv_missed: int
    vanished: int
    sampled_share: float
    cpu_s: float
    memory_bytes: int
    processes: int
    clock_ahead_s: int = 0  # of the node's clock to the portal's, by the last answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What a collector on one node gathered from `since` to `until`. Times are aware."""

    host: str
    boot: str
    run: str
    batch: str
    collector: str
    mode: str
    study: str
    since: datetime
    until: datetime
    health: Health
    sessions: Sequence[SessionPart] = ()
    minutes: Sequence[MinutePart] = ()
    submissions: Sequence[SubmissionPart] = ()
    polling: Sequence[PollingPart] = ()
    loops: Sequence[LoopPart] = ()
    ssh: Sequence[SshPart] = ()

    def process_of(self, session: str) -> str:
        """Return what a session's root process is known by: of its boot, for process ids and ticks start anew."""
        return f"{self.boot}/{session}"


def is_session_id(text: str) -> bool:
    """Say whether a text names a session: a process id and its start in ticks."""
    return bool(_SESSION_ID.match(text))


def find_session_fault(part: SessionPart, now: datetime) -> str:
    """Say why a session cannot be taken, as far as a collector alone sends it; "" where it can."""
    if not is_session_id(part.id):
        return "session_id_invalid"
    if part.job is not None and part.place != "job":
        return "job_elsewhere"
    if part.place == "gateway":
        return "place_of_gateways"
    if (part.evidence or part.agent) and not (part.evidence and (part.kind, part.place) == ("agent", "ssh")):
        return "evidence_elsewhere"
    return "end_before_start" if part.last < part.start else "future_date" if part.last > now + CLOCKS_DIFFER else ""


def find_minute_fault(part: MinutePart, batch: Batch, now: datetime) -> str:
    """Say why a minute cannot be taken; "" where it can."""
    if part.session and part.driver == "unknown":
        return "session_on_unknown"
    if part.place == "gateway":
        return "place_of_gateways"
    if part.minute.second or part.minute.microsecond:
        return "minute_not_whole"
    if not batch.since - EDGE - _MINUTE < part.minute < batch.until + EDGE:
        return "outside_batch"
    return _find_count_fault(part.counts) or _find_age_fault(part.minute, part.minute, now)


def _find_count_fault(counts: Mapping[str, int]) -> str:
    if not counts:
        return "counts_empty"
    if not _KNOWN.issuperset(counts):
        return "measure_unknown"
    if not all(1 <= number <= LARGEST_COUNT for number in counts.values()):
        return "count_out_of_range"
    # Each command counts once as such, in one category, and at most once for anything else. Connections are none.
    commands = counts.get(ALL, 0)
    categories = sum(number for name, number in counts.items() if name.startswith(CATEGORY))
    most = max((number for name, number in counts.items() if name != CONNECTION), default=0)
    return "" if max(categories, most) <= commands else "counts_contradict"


def find_submission_fault(part: SubmissionPart, batch: Batch, now: datetime) -> str:
    """Say why a submission cannot be taken; "" where it can."""
    if not part.session:
        return "session_missing"
    if not batch.since - EDGE <= part.at <= batch.until + EDGE:
        return "outside_batch"
    return _find_age_fault(part.at, part.at, now)


def find_polling_fault(part: PollingPart, now: datetime) -> str:
    """Say why a loop of queries cannot be taken; "" where it can. It may have begun before its batch."""
    if not part.session:
        return "session_missing"
    if not (2 <= part.queries <= LARGEST_COUNT and 0 <= part.period_s <= LARGEST_COUNT):
        return "queries_out_of_range"
    return _find_age_fault(part.first, part.last, now)


def find_loop_fault(part: LoopPart, now: datetime) -> str:
    """Say why a loop of submissions cannot be taken; "" where it can."""
    return _find_age_fault(part.submitted, part.again, now) if part.session else "session_missing"


def find_ssh_fault(part: SshPart, batch: Batch, now: datetime) -> str:
    """Say why a day's connections cannot be taken; "" where they can. What is told late is of the day before."""
    if not (batch.since - _DAY).date() <= part.day <= batch.until.date():
        return "outside_batch"
    if part.day < (now - TAKEN_FOR).date():
        return "too_old"
    told = part.connections - part.untold
    return "" if max(part.keys, part.clients) <= part.pairs <= told else "ssh_contradicts"


def _find_age_fault(first: datetime, last: datetime, now: datetime) -> str:
    if last < first:
        return "end_before_start"
    if last > now + CLOCKS_DIFFER:
        return "future_date"
    return "too_old" if last < now - TAKEN_FOR or first < now - _LONGEST else ""
