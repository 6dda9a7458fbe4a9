"""Findings and incidents: kinds, severities, clocks, states, and which findings belong together."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum


class Severity(Enum):
    """How bad a finding is, from low to critical."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class Kind(Enum):
    """What was found."""

    EXPOSED_SECRET = "exposed_secret"  # noqa: S105  # a kind of finding
    UNSAFE_COMMAND = "unsafe_command"
    EXPOSED_SERVICE = "exposed_service"
    LOGIN_NODE_COMPUTE = "login_node_compute"
    SCRATCH_EVASION = "scratch_evasion"
    SANDBOX_WIDENING = "sandbox_widening"
    POLLING_LOOP = "polling_loop"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class KindFacts:
    """What people read of a kind, and how bad it is unless a detector knows better."""

    label: str
    severity: Severity
    first_step: str


KINDS = {
    Kind.EXPOSED_SECRET: KindFacts("Exposed key", Severity.HIGH, "Have its owner revoke it, then re-scan."),
    Kind.UNSAFE_COMMAND: KindFacts("Unsafe command", Severity.MEDIUM, "Ask its owner what it was for."),
    Kind.EXPOSED_SERVICE: KindFacts("Exposed service", Severity.HIGH, "Close the port or bind it to localhost."),
    Kind.LOGIN_NODE_COMPUTE: KindFacts("Computing on a login node", Severity.LOW, "Move the work into a job."),
    Kind.SCRATCH_EVASION: KindFacts("Scratch rules evaded", Severity.LOW, "Have the files moved or removed."),
    Kind.SANDBOX_WIDENING: KindFacts("Sandbox widened", Severity.MEDIUM, "Compare its settings with the site’s."),
    Kind.POLLING_LOOP: KindFacts("Tight polling", Severity.LOW, "Point its owner to job events."),
    Kind.OTHER: KindFacts("Other", Severity.MEDIUM, "Read the evidence."),
}


@dataclass(frozen=True, slots=True)
class Clock:
    """How long each step may take, in seconds from the incident's opening."""

    triage_s: int
    contain_s: int
    resolve_s: int


_HOUR, _DAY = 3600, 86400
CLOCKS = {
    Severity.CRITICAL: Clock(15 * 60, _HOUR, 2 * _DAY),
    Severity.HIGH: Clock(_HOUR, 4 * _HOUR, 7 * _DAY),
    Severity.MEDIUM: Clock(8 * _HOUR, 2 * _DAY, 14 * _DAY),
    Severity.LOW: Clock(3 * _DAY, 7 * _DAY, 30 * _DAY),
}


class State(Enum):
    """Where an incident stands."""

    NEW = "new"
    TRIAGED = "triaged"
    CONTAINED = "contained"
    RESOLVED = "resolved"
    FALSE_ALARM = "false_alarm"
    ACCEPTED = "accepted"
    REOPENED = "reopened"


OPEN_STATES = frozenset({State.NEW, State.TRIAGED, State.CONTAINED, State.REOPENED})


@dataclass(frozen=True, slots=True)
class Transition:
    """One allowed change of state and the words on its button; closing needs a reason."""

    source: State
    target: State
    verb: str

    @property
    def needs_reason(self) -> bool:
        """Say whether a reason is recorded: whenever the incident closes or opens again."""
        return self.target not in OPEN_STATES or self.target is State.REOPENED


def _leave(source: State) -> tuple[Transition, ...]:
    """List the ways an open incident closes without being contained first."""
    return (
        Transition(source, State.FALSE_ALARM, "Mark as false alarm"),
        Transition(source, State.ACCEPTED, "Accept risk"),
    )


TRANSITIONS: dict[State, tuple[Transition, ...]] = {
    State.NEW: (Transition(State.NEW, State.TRIAGED, "Mark as triaged"), *_leave(State.NEW)),
    State.TRIAGED: (Transition(State.TRIAGED, State.CONTAINED, "Mark as contained"), *_leave(State.TRIAGED)),
    State.CONTAINED: (
        Transition(State.CONTAINED, State.RESOLVED, "Resolve"),
        Transition(State.CONTAINED, State.TRIAGED, "Back to triaged"),
        *_leave(State.CONTAINED),
    ),
    State.REOPENED: (Transition(State.REOPENED, State.TRIAGED, "Mark as triaged"), *_leave(State.REOPENED)),
    **{
        closed: (Transition(closed, State.REOPENED, "Reopen"),)
        for closed in (State.RESOLVED, State.FALSE_ALARM, State.ACCEPTED)
    },
}


def allowed_transitions(state: State) -> tuple[Transition, ...]:
    """List the changes a state allows, the usual next one first."""
    return TRANSITIONS[state]


def find_transition(source: State, target: State) -> Transition | None:
    """Find the change from one state to another; ``None`` when it is not allowed."""
    return next((step for step in TRANSITIONS[source] if step.target is target), None)


def dedup_key(*, kind: Kind, cluster: str, subject: str, fingerprint: str = "", place: str = "") -> str:
    """Give the key by which repeated findings join one open incident: 64 hexadecimal digits.

    ``subject`` is who or what it is about, an agent or a login name. A secret's keyed ``fingerprint`` counts
    instead of its ``place``, since one key seen in three places is one incident.
    """
    parts = (kind.value, cluster, subject, "fp" if fingerprint else "at", fingerprint or place)
    # Lengths keep ("ab", "c") and ("a", "bc") apart.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()


def due_at(opened_at: datetime, allowed_s: int) -> datetime:
    """Give the moment a step is due."""
    return opened_at + timedelta(seconds=allowed_s)


def format_span(seconds: float) -> str:
    """Write a span in its two largest units, as in ``3 h 22 min`` or ``6 d 23 h``; never negative."""
    whole = max(0, int(seconds))
    units = (("d", _DAY), ("h", _HOUR), ("min", 60), ("s", 1))
    index = next((at for at, (_, size) in enumerate(units) if whole >= size), len(units) - 1)
    name, size = units[index]
    words = f"{whole // size} {name}"
    for small_name, small_size in units[index + 1 : index + 2]:
        small = whole % size // small_size
        width = "02d" if small_name in ("min", "s") else "d"
        words += f" {small:{width}} {small_name}" if small else ""
    return words


def next_deadline(severity: Severity, state: State, opened_at: datetime) -> datetime | None:
    """Give the moment the next step of an incident is due; ``None`` once it is closed."""
    clock = CLOCKS[severity]
    allowed_s = {
        State.NEW: clock.triage_s,
        State.REOPENED: clock.triage_s,
        State.TRIAGED: clock.contain_s,
        State.CONTAINED: clock.resolve_s,
    }.get(state)
    return None if allowed_s is None else due_at(opened_at, allowed_s)
