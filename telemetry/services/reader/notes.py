"""What a look at the queue tells of jobs beside their states, kept: why they wait, and where they write."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Final

from portal.core import clock
from principals.models import Cluster
from telemetry.engine.job_hints import LONGEST
from telemetry.engine.redaction import is_secretless
from telemetry.engine.slurm.queue import Notes, Queue, QueueNote
from telemetry.engine.slurm.records import JobRecord, Outcome
from telemetry.models import Job, JobOutput, JobState

_CHUNK: Final = 1000  # jobs a statement
_REASON: Final = Job._meta.get_field("reason").max_length or 0
NOTHING: Final = QueueNote()


class QueueNotes:
    """The notes of one cluster. It remembers what is stored, and writes what differs."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.notes: Notes = {}
        self._kept: set[int] | None = None  # jobs in the queue whose paths are stored; None: not read yet

    def add_to(self, outcome: Outcome) -> Outcome:
        """Give a record of a job that waits the reason, which accounting knows late or not at all."""
        if not isinstance(outcome, JobRecord) or outcome.state != JobState.PENDING:
            return outcome
        reason = self.notes.get(outcome.raw_job_id, NOTHING).reason
        return outcome._replace(reason=reason) if reason else outcome

    def keep(self, queue: Queue, notes: Notes) -> None:
        """Store where new jobs write, that those who left did, and why those wait whose reason is another one.

        Call it before the news of this look are told. A reason is written past the record: Slurm changes it often, and
        accounting need not be asked for that.
        """
        before, self.notes = self.notes, notes
        self._keep_reasons(
            (job, note.reason) for job, note in notes.items()
            if note.reason and job in queue and note.reason != before.get(job, NOTHING).reason
        )  # fmt: skip
        kept = self._read() if self._kept is None else self._kept
        self._kept = None  # until it is written
        paths = {job: _paths(notes.get(job, NOTHING)) for job in queue.keys() - kept}
        new = {job: both for job, both in paths.items() if any(both)}
        for part in _parts(list(new)):
            JobOutput.objects.bulk_create(
                [JobOutput(cluster=self.cluster, raw_id=job, stdout=new[job][0], stderr=new[job][1]) for job in part],
                update_conflicts=True, unique_fields=["cluster", "raw_id"], update_fields=["stdout", "stderr", "left"],
            )  # fmt: skip
        gone = kept - queue.keys()
        for part in _parts(list(gone)):
            JobOutput.objects.filter(cluster=self.cluster, raw_id__in=part).update(left=clock.now())
        self._kept = (kept | new.keys()) - gone

    def _keep_reasons(self, changed: Iterator[tuple[int, str]]) -> None:
        jobs_by_reason: dict[str, list[int]] = defaultdict(list)
        for job, reason in changed:
            jobs_by_reason[reason[:_REASON]].append(job)
        for reason, jobs in jobs_by_reason.items():
            for part in _parts(jobs):
                waiting = Job.objects.filter(cluster=self.cluster, raw_id__in=part, state=JobState.PENDING, end=None)
                waiting.exclude(reason=reason).update(reason=reason)

    def _read(self) -> set[int]:
        stored = JobOutput.objects.filter(cluster=self.cluster, left=None)
        return set(stored.values_list("raw_id", flat=True))


def _paths(note: QueueNote) -> tuple[str, str]:
    """Return what may be stored: no secret that stands in a path, and nothing too long to be one."""
    stdout, stderr = (
        path if len(path) <= LONGEST and is_secretless(path) else "" for path in (note.stdout, note.stderr)
    )
    return stdout, stderr


def _parts(jobs: Collection[int]) -> Iterator[list[int]]:
    ordered = sorted(jobs)
    for first in range(0, len(ordered), _CHUNK):
        yield ordered[first : first + _CHUNK]
