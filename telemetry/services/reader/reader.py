"""The reader of one cluster: looks at the queue, asks accounting about what changed, and sweeps what no look saw."""

import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import F

from portal.core import clock
from principals.actors import Actor
from principals.models import Cluster
from principals.services import Directory
from telemetry.engine.slurm.queue import Queue, Standing, find_changed, find_unsettled
from telemetry.engine.slurm.records import JobRecord, Outcome
from telemetry.engine.slurm.sacct_text import SacctReader
from telemetry.engine.slurm.statistics import Asked, Statistics, asked_between
from telemetry.models import ACTIVE_STATES, IngestBatch, Job, SchedulerCalls, SlurmReader
from telemetry.services.ingest.streams import RecordStream
from telemetry.services.reader.commands import IDS_A_CALL, Commands
from telemetry.services.sources import note_source

SOURCE: Final = "slurm_reader"
FIRST_SWEEP: Final = timedelta(days=1)
OVERLAP: Final = timedelta(minutes=15)  # slurmdbd may be told of an end that much later than it happened
AHEAD: Final = timedelta(days=30)
SLICE: Final = timedelta(hours=1)  # of a long sweep: each is read whole into memory
DEEP_EVERY: Final = timedelta(days=1)
DEEP: Final = timedelta(hours=48)
PATIENCE: Final = 60  # looks; what accounting does not know by then, a sweep will find or nobody
KNOWN: Final = timedelta(days=7)  # of these the jobs that are stored as active are asked about after a start


class Reader:
    """Reads one Slurm into one cluster. `look` and `sweep` may be called at any time; each call stands for itself.

    What it has to remember stands in `SlurmReader` and `Job`: a reader that was killed goes on where it was.
    """

    def __init__(self, *, actor: Actor, cluster: Cluster, commands: Commands) -> None:
        """Take over the queue as it is stored. Errors: `NotAllowed`."""
        self.cluster, self.commands = cluster, commands
        self.stream = RecordStream(actor=actor, cluster=cluster, source=SOURCE)
        self.row = SlurmReader.objects.get_or_create(cluster=cluster)[0]
        self.queue = _stored_queue(cluster)
        self.unsettled: dict[int, int] = {}  # jobs that accounting lags behind with, and how often it was asked

    def look(self) -> int:
        """Look at the queue and ask accounting about what changed; return how many jobs it asked about.

        Errors: `SlurmUnavailable`, `FormatError`; then nothing is forgotten and the next look tells.
        """
        queue = self.commands.look()
        asked = self.unsettled | dict.fromkeys(find_changed(self.queue, queue), 0)
        self.queue, self.unsettled = queue, dict(asked)
        for part in _parts(sorted(asked)):
            states = self._store(self.commands.account_for(part))
            for job in set(part) - find_unsettled(set(part), queue, states):
                del self.unsettled[job]
        self.unsettled = {job: tries + 1 for job, tries in self.unsettled.items() if tries < PATIENCE}
        note_source(cluster=self.cluster, name=SOURCE, kind=IngestBatch.Kind.JOBS)  # also where nothing changed
        self._note(looked=clock.now())
        return len(asked)

    def sweep(self) -> None:
        """Read accounting since the last sweep, and once a day the last two days again.

        Errors: `SlurmUnavailable`, `FormatError`; what was read is stored, and the next sweep goes on there.
        """
        now = clock.now()
        since = self.row.swept_until or now - FIRST_SWEEP
        is_deep = self.row.deep_swept is None or now - self.row.deep_swept > DEEP_EVERY
        if is_deep:  # its calls are counted a day at a time
            self.row.calls, self.row.busy_s, self.row.counted = 0, 0.0, now
        first = min(since, now - DEEP) if is_deep and self.row.swept_until else since - OVERLAP
        for start, end in _slices(first, now):
            # A job that was cancelled before its `--begin` is listed where it would have become eligible.
            self._store(self.commands.account_between(start, end if end < now else end + AHEAD))
            self._note(swept_until=max(end, since))
        if is_deep:
            self._note(deep_swept=now)

    def count(self) -> int:
        """Add what users asked the controller since the last count; return how many calls. Errors: as `look`.

        The counters that were read stand in the same transaction as the sums, so that no call counts twice. Before the
        first count, nobody knows for how long they have counted: it adds nothing.
        """
        after, row = self.commands.count(), self.row
        before = None
        if row.counters_since is not None:
            before = Statistics(row.counters_since, {user: Asked(*both) for user, both in row.counters.items()})
        asked, day = asked_between(before, after), clock.now().astimezone(UTC).date()
        directory = Directory(self.cluster)
        with transaction.atomic():
            for user, each in asked.items():
                sums, _ = SchedulerCalls.objects.get_or_create(
                    cluster=self.cluster, day=day, cluster_user_id=directory.user_id(user)
                )
                SchedulerCalls.objects.filter(pk=sums.pk).update(
                    calls=F("calls") + each.calls, busy_us=F("busy_us") + each.busy_us
                )
            row.counters, row.counters_since = {user: list(each) for user, each in after.by_user.items()}, after.since_s
            self._note()
        return sum(each.calls for each in asked.values())

    def fail(self, problem: str) -> None:
        """Note why a look or a sweep was in vain; the next one that works takes the note away."""
        self._note(problem=problem[:300])

    def close(self) -> None:
        """Finish the open batch."""
        self.stream.close()

    def _store(self, text: bytes) -> dict[int, list[str]]:
        """Store what accounting said; return the states of each job's records."""
        outcomes: list[Outcome] = list(SacctReader(io.BytesIO(text), now_s=clock.now_s()))
        if outcomes:
            self.stream.write(outcomes)
        states: dict[int, list[str]] = {}
        for each in outcomes:
            if isinstance(each, JobRecord):
                states.setdefault(each.raw_job_id, []).append(each.state)
        return states

    def _note(self, **changes: datetime | str) -> None:
        row, commands = self.row, self.commands
        row.calls, row.busy_s = row.calls + commands.calls, row.busy_s + commands.busy_s
        commands.calls, commands.busy_s = 0, 0.0
        row.unsettled = len(self.unsettled)
        for name, value in ({"problem": ""} | changes).items():
            setattr(row, name, value)
        row.save()


def _stored_queue(cluster: Cluster) -> Queue:
    """Return the jobs that are stored as active: those that left while no reader looked are then seen to have left."""
    active = Job.objects.filter(cluster=cluster, state__in=ACTIVE_STATES, submit__gte=clock.now() - KNOWN)
    return {
        raw_id: Standing(state, restarts)
        for raw_id, state, restarts in active.order_by("submit").values_list("raw_id", "state", "restarts")
    }


def _parts(jobs: list[int]) -> Iterator[list[int]]:
    for first in range(0, len(jobs), IDS_A_CALL):
        yield jobs[first : first + IDS_A_CALL]


def _slices(first: datetime, last: datetime) -> Iterator[tuple[datetime, datetime]]:
    while first < last:
        end = min(first + SLICE, last)
        yield first, end
        first = end
