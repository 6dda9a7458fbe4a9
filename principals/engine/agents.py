"""An agent's life and its name."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

NAME_MIN = 3
NAME_MAX = 40
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")


class AgentStatus(Enum):
    """Where an agent stands."""

    REQUESTED = "requested"
    ACTIVE = "active"
    SUSPENDED = "suspended"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class Transition:
    """One allowed change of status and the verb people read on the button."""

    source: AgentStatus
    target: AgentStatus
    verb: str
    needs_reason: bool = False


TRANSITIONS = (
    Transition(AgentStatus.REQUESTED, AgentStatus.ACTIVE, "approve"),
    Transition(AgentStatus.REQUESTED, AgentStatus.RETIRED, "decline", needs_reason=True),
    Transition(AgentStatus.ACTIVE, AgentStatus.SUSPENDED, "suspend", needs_reason=True),
    Transition(AgentStatus.ACTIVE, AgentStatus.RETIRED, "retire"),
    Transition(AgentStatus.SUSPENDED, AgentStatus.ACTIVE, "reinstate", needs_reason=True),
    Transition(AgentStatus.SUSPENDED, AgentStatus.RETIRED, "retire"),
)


def allowed_transitions(status: AgentStatus) -> tuple[Transition, ...]:
    """List the changes a status allows; a retired agent never returns."""
    return tuple(step for step in TRANSITIONS if step.source is status)


def find_transition(source: AgentStatus, target: AgentStatus) -> Transition | None:
    """Find the change from one status to another; ``None`` when it is not allowed."""
    return next((step for step in allowed_transitions(source) if step.target is target), None)


def _name_fault(name: str) -> str | None:
    """Say the first thing wrong with the form of a name, most useful first."""
    checks = (
        (not name, "Give it a name."),
        (re.search(r"\s", name) is not None, "No spaces."),
        (name != name.lower(), "Lower case only."),
        (re.search(r"[^a-z0-9-]", name) is not None, "Letters a to z, digits and hyphens only."),
        (len(name) < NAME_MIN, f"At least {NAME_MIN} characters."),
        (len(name) > NAME_MAX, f"At most {NAME_MAX} characters."),
        (_NAME.fullmatch(name) is None, "Starts and ends with a letter or digit."),
    )
    return next((sentence for broken, sentence in checks if broken), None)


def suggest_name(name: str, taken: Collection[str], *, fallback: str = "agent") -> str:
    """Suggest a valid free name near the one wished for.

    ``taken`` are the names in use. Accents fall away with the letter that bears them; when nothing is left
    the ``fallback`` is used. A number is added when the name is in use.
    """
    base = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:NAME_MAX].strip("-")
    if len(base) < NAME_MIN:
        base = f"{base}-{fallback}".strip("-")
    candidate, number = base, 2
    while candidate in taken:
        suffix = f"-{number}"
        candidate = base[: NAME_MAX - len(suffix)].rstrip("-") + suffix
        number += 1
    return candidate


def name_problem(name: str, taken: Collection[str]) -> str | None:
    """Say what is wrong with a name and which one would do; ``None`` when it is fine and free."""
    fault = _name_fault(name)
    if fault is None:
        if name not in taken:
            return None
        fault = f"{name} is in use."
    if not name.strip():
        return fault
    return f"{fault} Try {suggest_name(name, taken)}, which is free."
