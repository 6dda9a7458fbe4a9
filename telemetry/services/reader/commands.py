"""Slurm's own commands, as a source: run with a limit of time, in UTC, and believed only where they say no more."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from telemetry.engine.slurm import asking, identity
from telemetry.engine.slurm.identity import Identity
from telemetry.engine.slurm.inventory import Association, Node, Partition, Qos, Reading, sacctmgr_text, scontrol_text
from telemetry.engine.slurm.queue import FORMAT, Queue, read_queue
from telemetry.engine.slurm.records import Outcome
from telemetry.engine.slurm.sacct_text import SacctReader
from telemetry.engine.slurm.statistics import Statistics, read_statistics
from telemetry.services.reader.asking import Asker, refuse_unless_quiet


@dataclass
class Commands(Asker):
    """The commands of one Slurm: a `SlurmSource`. Errors of each: `SlurmUnavailable`, `FormatError`."""

    def identify(self) -> Identity:
        """Ask the controller which cluster it is."""
        return identity.read_identity(self._text(*identity.COMMAND))

    def look(self) -> Queue:
        """Ask the controller who is in the queue."""
        return read_queue(self._text("squeue", "--all", "--noheader", "--Format", FORMAT))

    def account_for(self, jobs: Sequence[int], *, now_s: int) -> list[Outcome]:
        """Ask accounting for every record of some jobs, whenever they were."""
        return self._sacct("--jobs", ",".join(map(str, jobs)), now_s=now_s)

    def account_between(self, first: datetime, last: datetime, *, now_s: int) -> list[Outcome]:
        """Ask accounting for what stood or ended in a span of time.

        What was cancelled before it became eligible is in no span of time: only `account_for` finds it.
        """
        return self._sacct(*asking.between(first, last), now_s=now_s)

    def count(self) -> Statistics:
        """Ask the controller who asked it what."""
        return read_statistics(self._text("sdiag"))

    def nodes(self) -> Reading[Node]:
        """Ask the controller about every node."""
        return scontrol_text.read_nodes(self._text(*scontrol_text.NODES_COMMAND))

    def partitions(self) -> Reading[Partition]:
        """Ask the controller about every partition."""
        return scontrol_text.read_partitions(self._text(*scontrol_text.PARTITIONS_COMMAND))

    def qos(self) -> Reading[Qos]:
        """Ask accounting about every QoS."""
        return sacctmgr_text.read_qos(self._text(*sacctmgr_text.QOS_COMMAND))

    def associations(self, cluster: str) -> Reading[Association]:
        """Ask accounting about every association of one cluster, and which account is each user's default."""
        only = f"cluster={cluster}"
        told = self._text(*sacctmgr_text.ASSOCIATIONS_COMMAND, only)
        return sacctmgr_text.read_associations(told, self._text(*sacctmgr_text.DEFAULTS_COMMAND, only))

    def _sacct(self, *which: str, now_s: int) -> list[Outcome]:
        printed = self._run(*asking.sacct_command(*which))
        return list(SacctReader(io.BytesIO(printed), now_s=now_s))

    def _text(self, *command: str) -> str:
        return self._run(*command).decode(errors="replace")

    def _run(self, *command: str) -> bytes:
        ran = self.run(*command, name=command[0])
        refuse_unless_quiet(command[0], ran)
        return ran.out
