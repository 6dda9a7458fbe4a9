"""Slurm's own commands, as a source: run with a limit of time, in UTC, and believed only where they say no more."""

import io
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from portal.core import clock
from telemetry.engine.slurm import asking, identity, queue_texts
from telemetry.engine.slurm.identity import Identity
from telemetry.engine.slurm.inventory import Association, Node, Partition, Qos, Reading, sacctmgr_text, scontrol_text
from telemetry.engine.slurm.queue import FORMAT, Queue, read_queue
from telemetry.engine.slurm.records import Outcome
from telemetry.engine.slurm.sacct_text import SacctReader
from telemetry.engine.slurm.statistics import Statistics, read_statistics
from telemetry.services.reader.asking import Asker, refuse_unless_quiet

_UNKNOWN_FIELD = b"Invalid job format specification"


@dataclass
class Commands(Asker):
    """The commands of one Slurm: a `SlurmSource`. Errors of each: `SlurmUnavailable`, `FormatError`.

    `can_print` until this Slurm turns out not to know a field that is asked for.
    """

    can_print: bool = True

    def identify(self) -> Identity:
        """Ask the controller which cluster it is."""
        return identity.read_identity(self._text(*identity.COMMAND))

    def look(self) -> Queue:
        """Ask the controller who is in the queue, and for all that squeue prints of them where this one can."""
        self.texts, self.notes = None, {}
        if self.can_print:
            mark, asked_s = secrets.token_hex(4), clock.now_s()
            ran = self.run(*queue_texts.command(mark), name="squeue")
            if _UNKNOWN_FIELD not in ran.complaint:
                refuse_unless_quiet("squeue", ran)
                told = ran.out.decode(errors="replace")
                texts = queue_texts.read_texts(told, mark, asked_s=asked_s, told_s=clock.now_s())
                queue = queue_texts.queue_of(texts)
                self.texts, self.notes = texts, queue_texts.notes_of(texts)
                return queue
            self.can_print = False
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
