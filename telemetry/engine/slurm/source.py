"""What a reader asks of a Slurm, whoever asks it: Slurm's commands, or PySlurm. Each answers in the normal forms."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from telemetry.engine.slurm.identity import Identity
from telemetry.engine.slurm.inventory import Association, Node, Partition, Qos, Reading
from telemetry.engine.slurm.queue import Notes, Queue
from telemetry.engine.slurm.queue_texts import Texts
from telemetry.engine.slurm.records import Outcome
from telemetry.engine.slurm.statistics import Statistics


class SlurmSource(Protocol):
    """One Slurm. `calls` counts what was asked of its daemons, `busy_s` how long they took; a reader sets them back.

    Every question may fail with FormatError, or with an error of the adapter's that says what to do. Then nothing of
    the answer is to be believed.
    """

    calls: int
    busy_s: float
    notes: Notes  # what else the last look told of jobs
    texts: Texts | None  # what squeue printed at the last look; None where the source is no squeue, or an old one

    def identify(self) -> Identity:
        """Ask the controller which cluster it is."""

    def look(self) -> Queue:
        """Ask the controller who is in the queue."""

    def account_for(self, jobs: Sequence[int], *, now_s: int) -> list[Outcome]:
        """Ask accounting for every record of some jobs, whenever they were. `now_s`: UTC epoch seconds."""

    def account_between(self, first: datetime, last: datetime, *, now_s: int) -> list[Outcome]:
        """Ask accounting for what stood or ended in a span of time.

        What was cancelled before it became eligible is in no span of time: only `account_for` finds it.
        """

    def count(self) -> Statistics:
        """Ask the controller who asked it what."""

    def nodes(self) -> Reading[Node]:
        """Ask the controller about every node."""

    def partitions(self) -> Reading[Partition]:
        """Ask the controller about every partition."""

    def qos(self) -> Reading[Qos]:
        """Ask accounting about every QoS."""

    def associations(self, cluster: str) -> Reading[Association]:
        """Ask accounting about every association of one cluster, by Slurm's name of it."""
