"""PySlurm, as a source: each question is a process of its own, whose end is its own.

PySlurm asks accounting without duplicates, and tells of a job that was requeued its last stretch alone. Of those, and
of no others, `sacct` is asked as well: what was used before a requeue was used.
"""

import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Final

from portal.core.running import Ran
from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.identity import Identity, read_identity_dump, series_of
from telemetry.engine.slurm.inventory import Association, Node, Partition, Qos, Reading, pyslurm_dumps
from telemetry.engine.slurm.pyslurm_jobs import JOB_FIELDS, read_pyslurm_jobs
from telemetry.engine.slurm.queue import NOTE_FIELDS, QUEUE_FIELDS, Queue, read_notes_dump, read_queue_dump
from telemetry.engine.slurm.records import JobRecord, Outcome, Rejected
from telemetry.engine.slurm.statistics import STATISTICS_FIELDS, Statistics, read_statistics_dump
from telemetry.services.reader.asking import IDS_A_CALL, Asker, SlurmUnavailable, refuse_unless_quiet
from telemetry.services.reader.commands import Commands

PROGRAM: Final = Path(__file__).with_name("alone") / "ask_pyslurm.py"
SERIES: Final = "25.11"  # whose objects are known; PySlurm's series is that of the Slurm it is built for
CONFIG_FIELDS: Final = ("cluster_name", "version")
_NAME: Final = "PySlurm"
_MISSING, _UNFIT = 3, 4


@dataclass
class PySlurm(Asker):
    """PySlurm of a Python interpreter: a `SlurmSource`. Errors of each: `SlurmUnavailable`, `FormatError`."""

    install: ClassVar[str] = "Say with --pyslurm-python which interpreter has PySlurm."

    python: str = sys.executable
    sacct: Commands = field(default_factory=Commands)  # asked about jobs that were requeued

    def identify(self) -> Identity:
        """Ask the controller which cluster it is, and whether it is of PySlurm's series."""
        found = read_identity_dump(self._ask("config", CONFIG_FIELDS))
        if series_of(found.release) != SERIES:
            raise _unfit(f"PySlurm {SERIES} does not match this Slurm, which is {found.release}")
        return found

    def look(self) -> Queue:
        """Ask the controller who is in the queue."""
        told = self._ask("queue", (*QUEUE_FIELDS, *NOTE_FIELDS[1:]))
        queue = read_queue_dump(told)
        self.notes = read_notes_dump(told)
        return queue

    def account_for(self, jobs: Sequence[int], *, now_s: int) -> list[Outcome]:
        """Ask accounting for every record of some jobs, whenever they were."""
        return self._account(now_s, ids=list(jobs))

    def account_between(self, first: datetime, last: datetime, *, now_s: int) -> list[Outcome]:
        """Ask accounting for what stood or ended in a span of time."""
        return self._account(now_s, first=int(first.timestamp()), last=int(last.timestamp()))

    def count(self) -> Statistics:
        """Ask the controller who asked it what."""
        return read_statistics_dump(self._ask("statistics", STATISTICS_FIELDS))

    def nodes(self) -> Reading[Node]:
        """Ask the controller about every node."""
        return pyslurm_dumps.read_nodes(self._ask("nodes", pyslurm_dumps.NODE_FIELDS))

    def partitions(self) -> Reading[Partition]:
        """Ask the controller about every partition."""
        return pyslurm_dumps.read_partitions(self._ask("partitions", pyslurm_dumps.PARTITION_FIELDS))

    def qos(self) -> Reading[Qos]:
        """Ask accounting about every QoS: their names."""
        return pyslurm_dumps.read_qos(self._ask("qos", pyslurm_dumps.QOS_FIELDS))

    def associations(self, cluster: str) -> Reading[Association]:
        """Ask accounting about every association, and choose those of one cluster."""
        told = pyslurm_dumps.read_associations(self._ask("associations", pyslurm_dumps.ASSOCIATION_FIELDS))
        rows = tuple(each for each in told.rows if each.cluster == cluster)
        if not rows:
            raise FormatError("empty_inventory", f"PySlurm named no association of {cluster}.")
        return told._replace(rows=rows)

    def _account(self, now_s: int, **which: Any) -> list[Outcome]:
        told = list(read_pyslurm_jobs(self._ask("accounting", JOB_FIELDS, **which), now_s=now_s))
        requeued = {each.raw_job_id for each in told if isinstance(each, JobRecord) and each.restarts}
        whole = [each for each in told if isinstance(each, Rejected) or each.raw_job_id not in requeued]
        asked = sorted(requeued)
        for first in range(0, len(asked), IDS_A_CALL):
            whole += self._ask_sacct(asked[first : first + IDS_A_CALL], now_s)
        return whole

    def _ask_sacct(self, jobs: list[int], now_s: int) -> list[Outcome]:
        sacct = self.sacct
        try:
            return sacct.account_for(jobs, now_s=now_s)
        finally:
            self.calls, self.busy_s = self.calls + sacct.calls, self.busy_s + sacct.busy_s
            sacct.calls, sacct.busy_s = 0, 0.0

    def _ask(self, question: str, fields: Sequence[str], **which: Any) -> Any:
        request = json.dumps({"question": question, "fields": list(fields)} | which)
        ran = self.run(self.python, str(PROGRAM), request, name=_NAME)
        _refuse_failure(ran, self.python)
        refuse_unless_quiet(_NAME, ran)
        try:
            said = json.loads(ran.out)
            version, answer = str(said["pyslurm"]), said["answer"]
        except (ValueError, RecursionError, LookupError, TypeError) as error:
            raise FormatError("not_pyslurm", "What PySlurm's process printed is no answer.") from error
        if series_of(version) != SERIES:
            raise _unfit(f"This is PySlurm {version}, and what is known is {SERIES}")
        return answer


def _refuse_failure(ran: Ran, python: str) -> None:
    """Raise `SlurmUnavailable` where PySlurm crashed, is missing or does not fit."""
    words = (ran.complaint.decode(errors="replace").strip().splitlines() or [""])[-1]
    if ran.status < 0:
        name = next((each.name for each in signal.Signals if each == -ran.status), f"signal {-ran.status}")
        raise SlurmUnavailable(
            f"PySlurm's process was ended by {name}.", code="pyslurm_crashed",
            remedy="Nothing is lost, it is asked again. If it goes on: is PySlurm built for the Slurm that is "
            "installed? --source commands does without it.",
        )  # fmt: skip
    if ran.status == _MISSING:
        raise SlurmUnavailable(
            f"{python} has no PySlurm.", code="pyslurm_missing",
            remedy=f"Install pyslurm {SERIES} for it (the extra slurm), name another interpreter with "
            "--pyslurm-python, or read with --source commands.",
        )  # fmt: skip
    if ran.status == _UNFIT:
        raise _unfit(f"PySlurm does not fit: {words}")


def _unfit(words: str) -> SlurmUnavailable:
    return SlurmUnavailable(
        f"{words}.", code="pyslurm_mismatch",
        remedy=f"PySlurm {SERIES} reads Slurm {SERIES} alone: install what belongs together, or read with --source "
        "commands.",
    )  # fmt: skip
