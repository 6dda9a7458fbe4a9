"""What a changed job record means: which change is news, its name, and how to say it in plain words."""

from typing import Final, NamedTuple

from telemetry.engine.slurm.values import ENDED_STATES

NEWS_AGE_S: Final = 900  # a change that is older when it arrives is history: it is stored, not announced

SUBMITTED: Final = "job.submitted"
STARTED: Final = "job.started"
ENDED: Final = "job.ended"
REQUEUED: Final = "job.requeued"
SUSPENDED: Final = "job.suspended"
RESUMED: Final = "job.resumed"
ARRAY: Final = "job.array"  # of an array's tasks: how many are in which state

WAITING_STATES: Final = frozenset(
    {
        "PENDING",
        "CONFIGURING",
        "REQUEUE_HOLD",
        "REQUEUE_FED",
        "RESV_DEL_HOLD",
        "SPECIAL_EXIT",
        "POWER_UP_NODE",
    }
)
REQUEUED_STATES: Final = frozenset({"REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"})
PAUSED_STATES: Final = frozenset({"SUSPENDED", "STOPPED"})

SIGNALS: Final = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    10: "SIGUSR1",
    11: "SIGSEGV",
    12: "SIGUSR2",
    13: "SIGPIPE",
    14: "SIGALRM",
    15: "SIGTERM",
    24: "SIGXCPU",
    25: "SIGXFSZ",
    125: "a Slurm limit",  # sacct reports 0:125 for jobs that the out-of-memory handler ended
}
_OUTCOMES: Final = {
    "BOOT_FAIL": "a node failed to boot for it",
    "CANCELLED": "cancelled",
    "COMPLETED": "completed",
    "DEADLINE": "stopped at its deadline",
    "FAILED": "failed",
    "LAUNCH_FAILED": "could not be launched",
    "NODE_FAIL": "lost a node",
    "OUT_OF_MEMORY": "ran out of memory",
    "PREEMPTED": "preempted by another job",
    "REVOKED": "taken over by another cluster of the federation",
    "TIMEOUT": "reached its time limit",
    "PENDING": "waiting",
    "RUNNING": "running",
    "COMPLETING": "finishing",
    "CONFIGURING": "waiting for its nodes to get ready",
    "REQUEUED": "put back in the queue",
    "REQUEUE_HOLD": "put back in the queue and held",
    "SPECIAL_EXIT": "put back in the queue and held, by its exit code",
    "RESIZING": "changing its size",
    "SUSPENDED": "suspended",
    "STOPPED": "stopped, still holding its nodes",
}


class Transition(NamedTuple):
    """A change worth telling: the event's name and when it happened (UTC epoch seconds)."""

    event: str
    at_s: int


def supersedes(old_state: str | None, new_state: str) -> bool:
    """Say whether a report of `new_state` may replace `old_state` of the same record (job and submit time).

    Reports come late and twice. A record that has ended stays ended: a live state after it is an older
    report. A requeue gives the job a new record with a new submit time, so it needs no way back.
    """
    return old_state not in ENDED_STATES or new_state in ENDED_STATES


def name_transition(old_state: str | None, new_state: str) -> str | None:
    """Name the event of a change of state; None when it is no news. `old_state` None: the job is new to us.

    A job first seen running or ended gives that event alone: its start is not news any more.
    """
    if old_state == new_state or not supersedes(old_state, new_state):
        return None
    if new_state in ENDED_STATES:
        return None if old_state in ENDED_STATES else ENDED
    if new_state in REQUEUED_STATES:
        return REQUEUED if old_state not in REQUEUED_STATES else None
    if new_state in PAUSED_STATES:
        return SUSPENDED if old_state not in PAUSED_STATES else None
    if new_state in WAITING_STATES:
        return _to_waiting(old_state)
    return _to_running(old_state)


def _to_waiting(old_state: str | None) -> str | None:
    if old_state is None:
        return SUBMITTED
    return None if old_state in WAITING_STATES | REQUEUED_STATES else REQUEUED


def _to_running(old_state: str | None) -> str | None:
    if old_state in PAUSED_STATES:
        return RESUMED
    return STARTED if old_state is None or old_state in WAITING_STATES | REQUEUED_STATES else None


def find_news(old_state: str | None, new_state: str, *, happened_s: int, now_s: int) -> Transition | None:
    """Decide whether a change is to be announced: a named transition at most NEWS_AGE_S old.

    `happened_s` is the record's time of the change (submit, start or end), see `moment_of`.
    """
    event = name_transition(old_state, new_state)
    if event is None or now_s - happened_s > NEWS_AGE_S:
        return None
    return Transition(event, happened_s)


def moment_of(event: str, *, submit_s: int, start_s: int | None, end_s: int | None, seen_s: int) -> int:
    """Choose the time at which an event happened; `seen_s` where the record holds none (a suspension)."""
    if event == SUBMITTED:
        return submit_s
    if event == STARTED:
        return start_s if start_s is not None else seen_s
    if event in (ENDED, REQUEUED):
        return end_s if end_s is not None else seen_s
    return seen_s


def describe_outcome(state: str, exit_code: int = 0, exit_signal: int = 0) -> str:
    """Say in plain words how a job stands: state, then signal or exit code where they tell more."""
    words = _OUTCOMES.get(state, state.replace("_", " ").lower())
    if exit_signal:
        name = SIGNALS.get(exit_signal, f"signal {exit_signal}")
        return f"{words}, ended by {name}" + (f" ({exit_signal})" if name.startswith("SIG") else "")
    if exit_code > 128 and exit_code - 128 in SIGNALS and exit_code < 160:
        return f"{words}, exit code {exit_code} (a process ended by {SIGNALS[exit_code - 128]})"
    return f"{words}, exit code {exit_code}" if exit_code else words


_PLAIN_CHANGES: Final = {REQUEUED: "put back in the queue", SUSPENDED: "suspended", RESUMED: "resumed"}


def describe_change(event: str, *, outcome: str, elapsed_s: int, nodes: int, cpus: int, gpus: int) -> str:
    """Say a change in a few words for a line of news: "started on 8 nodes", "completed after 41 s"."""
    if event == SUBMITTED:
        return f"submitted, {_counted(gpus, 'GPU') if gpus else _counted(cpus, 'core')}"
    if event == STARTED:
        return f"started on {_counted(nodes, 'node')}"
    if event == ENDED:
        return f"{outcome} after {_about(elapsed_s)}" if elapsed_s else outcome
    return _PLAIN_CHANGES.get(event, outcome)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _about(seconds: int) -> str:
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
