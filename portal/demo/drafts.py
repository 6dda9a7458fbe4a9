"""A job while the facility is being thought up: changed freely until it becomes a record."""

from dataclasses import dataclass
from typing import NamedTuple


class SessionPlan(NamedTuple):
    """A declared session: of an agent's harness or, with kind `interactive`, of a person at a shell."""

    login: str
    host: str
    kind: str
    harness: str
    started_s: int
    ended_s: int | None
    campaign: str = ""


class Batch(NamedTuple):
    """What one submission puts into the queue: a single job or the tasks of an array."""

    login: str
    submit_s: int
    size: int
    next_s: int | None  # when the same loop submits again; None at its end
    campaign: str = ""


class Shape(NamedTuple):
    """What each job of a batch asks for."""

    partition: str
    qos: str
    nodes: int
    cpus: int
    gpus: int
    mem_gib: int


@dataclass(slots=True)
class Draft:
    """One job. Times in seconds; `wait_s` from submit to start, or to its cancellation where it never starts."""

    actor: str
    harness: str
    batch: Batch
    task: int
    shape: Shape
    state: str
    wait_s: int
    runtime_s: int
    starts: bool = True
    limit_s: int = 0
    restarts: int = 0

    @property
    def start_s(self) -> int:
        return self.batch.submit_s + self.wait_s

    @property
    def end_s(self) -> int:
        return self.start_s + (self.runtime_s if self.starts else 0)

    def used_s(self, now_s: int) -> int:
        """Return the seconds it has run until `now_s`."""
        return max(0, min(self.runtime_s, now_s - self.start_s)) if self.starts else 0
