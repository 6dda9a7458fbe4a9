"""Experimentation loops: a submission, then a look at something or an edit, then another submission (paper §III-B)."""

from typing import Final, Literal, NamedTuple, TypeAlias

from telemetry.engine.collector.facts import Key
from telemetry.engine.commands import Command, traits

Step: TypeAlias = Literal["submit", "between", ""]

_BETWEEN_TOOLS: Final = frozenset({"head", "tail", "cat", "sed", "awk", "grep", "find", "wc", "less", "vim"})
_BETWEEN_CATEGORIES: Final = frozenset({"editors"})


class ExperimentLoop(NamedTuple):
    """Two submissions of a session with an inspection or edit in between."""

    root: Key
    submitted_s: float
    again_s: float

    @property
    def seconds(self) -> float:
        return self.again_s - self.submitted_s


def step_of(command: Command) -> Step:
    """Say what a command is in a loop: a submission, monitoring, inspecting or editing, or nothing."""
    if traits.SUBMISSION in command.traits:
        return "submit"
    looks = command.tool in _BETWEEN_TOOLS or command.category in _BETWEEN_CATEGORIES
    return "between" if looks or command.traits & {traits.QUERY, traits.EDIT} else ""


class Experiments:
    """Find the loops of sessions, from their commands in the order of their times."""

    def __init__(self) -> None:
        self._open: dict[Key, tuple[float, bool]] = {}  # last submission, and whether anything was done since

    def command(self, root: Key, command: Command, at_s: float) -> ExperimentLoop | None:
        """Take a command of a session; return the loop that it closes."""
        step, known = step_of(command), self._open.get(root)
        if step == "submit":
            self._open[root] = (at_s, False)
            return ExperimentLoop(root, known[0], at_s) if known and known[1] else None
        if step == "between" and known:
            self._open[root] = (known[0], True)
        return None

    def forget(self, root: Key) -> None:
        """Forget a session that ended."""
        self._open.pop(root, None)
