"""The reader of one cluster: looks at the queue, asks accounting about what changed, and sweeps what no look saw."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import transaction

from portal.core import clock
from principals.actors import Actor
from principals.models import Cluster
from telemetry.engine.slurm import queue_texts
from telemetry.engine.slurm.queue import Queue, Standing, find_changed, find_unsettled
from telemetry.engine.slurm.records import JobRecord, Outcome, Rejected
from telemetry.engine.slurm.source import SlurmSource
from telemetry.engine.slurm.statistics import Asked, Statistics, asked_between
from telemetry.models import IngestBatch, InventoryReading, Job, SlurmReader
from telemetry.services.ingest import hooks
from telemetry.services.ingest.rows import find_fault
from telemetry.services.ingest.streams import RecordStream
from telemetry.services.reader.asking import IDS_A_CALL
from telemetry.services.reader.inventory import take_inventory
from telemetry.services.reader.naming import require_named
from telemetry.services.reader.notes import QueueNotes
from telemetry.services.reader.sheets import Sheets
from telemetry.services.scheduler_calls import add_calls
from telemetry.services.sources import note_source

SOURCE: Final = "slurm_reader"
FIRST_SWEEP: Final = timedelta(days=1)
OVERLAP: Final = timedelta(minutes=15)  # slurmdbd may be told of an end that much later than it happened
AHEAD: Final = timedelta(days=30)
SLICE: Final = timedelta(hours=1)  # of a long sweep: each is read whole into memory
DEEP_EVERY: Final = timedelta(days=1)
DEEP: Final = timedelta(hours=48)
PATIENCE: Final = 60  # looks; what accounting does not know by then, a sweep will find or nobody
SILENCE: Final = timedelta(hours=1)
PROBLEM_KEPT: Final = 300  # letters, of `SlurmReader.problem`
NOTED: Final = ("calls", "given_up", "busy_s", "counted", "unsettled", "problem", "looked", "swept_until", "deep_swept")
KNOWN: Final = timedelta(days=7)  # of these the jobs that are stored as active are asked about after a start


class ReaderStopped(Exception):
    """The reader was told to end, or another process has its lease: what it had in hand is stored or asked again."""


class Reader:
    """Reads one Slurm into one cluster. `look` and `sweep` may be called at any time; each call stands for itself.

    What it has to remember stands in `SlurmReader` and `Job`: a reader that was killed goes on where it was.
    """

    def __init__(
        self, *, actor: Actor, cluster: Cluster, source: SlurmSource, slurm_name: str = "",
        goes_on: Callable[[], bool] = lambda: True,
    ) -> None:  # fmt: skip
        """Take over the queue as it is stored. `goes_on` is asked before each call to Slurm. Errors: `NotAllowed`.

        `slurm_name` is what Slurm calls the cluster, where that is not our name of it on purpose.
        """
        self.actor, self.cluster, self.source, self.goes_on = actor, cluster, source, goes_on
        self.slurm_name, self.is_met = slurm_name or cluster.name, False
        self.stream = RecordStream(actor=actor, cluster=cluster, source=SOURCE)
        self.row = SlurmReader.objects.get_or_create(cluster=cluster)[0]
        self.queue, self.sheets = _stored_queue(cluster), Sheets(cluster)
        self.notes = QueueNotes(cluster)
        self.prints = False  # whether this is a Slurm whose squeue is known to be printed as it prints
        self.asked_s = 0.0  # how long Slurm took to answer, since the start
        self.refused: set[int] = set()  # what was set aside: it is told once, not at every look
        self.facts: dict[int, int] | None = None  # what squeue said of each job at the last look, where it says enough
        self.altered: set[int] = set()
        self.unsettled: dict[int, int] = {}  # jobs that accounting lags behind with, and how often it was asked

    def meet(self) -> None:
        """Ask Slurm once which cluster it is, before anything of it is stored. Errors: `WrongCluster`, as `look`."""
        self._require_going()
        told = self.source.identify()
        require_named(expected=self.slurm_name, told=told.cluster)
        self.slurm_name, self.is_met = told.cluster, True
        self.prints = told.release.startswith(tuple(f"{release}." for release in settings.PRINTED_RELEASES))

    def look(self) -> int:
        """Look at the queue and ask accounting about what changed; return how many jobs it asked about.

        Errors: `SlurmUnavailable`, `FormatError`, `ReaderStopped`; then nothing is forgotten and the next look tells.
        """
        self._require_going()
        queue = self.source.look()
        self.sheets.keep(self.source.texts if self.prints else None)
        changed = find_changed(self.queue, queue) | self._find_altered()
        asked = self.unsettled | dict.fromkeys(changed, 0)
        self.notes.keep(queue, self.source.notes)
        self.queue, self.unsettled = queue, dict(asked)
        for part in _parts(sorted(asked)):
            self._require_going()
            states = self._store(self.source.account_for(part, now_s=clock.now_s()))
            for job in set(part) - find_unsettled(set(part), queue, states):
                del self.unsettled[job]
        asked_on = {job: tries + 1 for job, tries in self.unsettled.items() if tries < PATIENCE}
        self.row.given_up += len(self.unsettled) - len(asked_on)
        self.unsettled = asked_on
        self.stream.keep()
        note_source(cluster=self.cluster, name=SOURCE, kind=IngestBatch.Kind.JOBS)  # also where nothing changed
        self._note(looked=clock.now())
        return len(asked)

    def _find_altered(self) -> set[int]:
        """Return the jobs of which squeue says what it did not say before: altered, or come and gone between two looks.

        Each is named at two looks, for accounting may be a moment behind. After a start the first sweep finds them.
        """
        facts = queue_texts.facts_of(self.source.texts) if self.source.texts is not None else None
        before, again = self.facts, self.altered
        self.facts, self.altered = facts, set()
        if facts is None or before is None:
            return set()
        self.altered = {job for job, said in facts.items() if before.get(job) != said}
        return self.altered | again

    def answer_hooks(self, *, tries: int | None = None) -> int:
        """Ask accounting about the jobs that hooks told of and nobody knows enough about; return how many.

        `tries`: those alone of which it was asked less often than that. Errors: as `look`.
        """
        if not hooks.due_jobs(self.cluster, tries=tries):
            return 0
        hooks.settle_waiting(self.cluster, hooks.waiting_jobs(self.cluster))  # a look may have answered some
        told_by = hooks.due_jobs(self.cluster, tries=tries)
        for part in _parts(sorted(told_by)):
            self._require_going()
            self._store(self.source.account_for(part, now_s=clock.now_s()), told_by)
            hooks.settle_waiting(self.cluster, part, asked=True)
        if told_by:
            self._note()
        return len(told_by)

    def sweep(self) -> None:
        """Read accounting since the last sweep, and once a day, after that, the last two days again.

        Errors: as `look`; what was read is stored, and the next sweep goes on there.
        """
        now, row = clock.now(), self.row
        # A clock that was ahead and was put right has left times that are yet to come.
        since = min(row.swept_until or now - FIRST_SWEEP, now)
        for start, end in _slices(since - OVERLAP, now):
            self._sweep_slice(start, end, now)
            self._note(swept_until=max(end, since))
        if row.deep_swept is None or not timedelta(0) <= now - row.deep_swept <= DEEP_EVERY:
            row.calls, row.busy_s, row.given_up, row.counted = 0, 0.0, 0, now  # counted a day at a time
            for start, end in _slices(now - DEEP, since - OVERLAP):
                self._sweep_slice(start, end, now)
            self._note(deep_swept=now)

    def _sweep_slice(self, start: datetime, end: datetime, now: datetime) -> None:
        self._require_going()
        self.answer_hooks()  # a sweep of days takes a while, and what hooks tell is news
        # A job that was cancelled before its `--begin` is listed where it would have become eligible.
        self._store(self.source.account_between(start, end if end < now else end + AHEAD, now_s=clock.now_s()))

    def _require_going(self) -> None:
        """Keep what is ours while Slurm is asked: many questions in a row may take longer than a batch's lease."""
        if not self.goes_on():
            raise ReaderStopped
        self.stream.keep()

    def count(self) -> int:
        """Add what users asked the controller since the last count; return how many calls. Errors: as `look`.

        The counters that were read stand in the same transaction as the sums, so that no call counts twice. Before the
        first count, and after a long silence, nobody knows on which day they were made: it adds nothing.
        """
        self._require_going()
        after, now = self.source.count(), clock.now()
        with transaction.atomic():
            row = SlurmReader.objects.select_for_update(no_key=True).get(pk=self.row.pk)
            before = None
            silence = now - row.counters_read if row.counters_read else SILENCE
            if row.counters_since is not None and timedelta(0) <= silence < SILENCE:
                before = Statistics(row.counters_since, {user: Asked(*both) for user, both in row.counters.items()})
            asked, day = asked_between(before, after), now.astimezone(UTC).date()
            add_calls(actor=self.actor, cluster=self.cluster, day=day, asked=asked)
            SlurmReader.objects.filter(pk=row.pk).update(
                counters={user: list(each) for user, each in after.by_user.items()},
                counters_since=after.since_s, counters_read=now,
            )  # fmt: skip
        self._note()
        return sum(each.calls for each in asked.values())

    def take_inventory(self, kind: InventoryReading.Kind) -> int:
        """Ask for all nodes, partitions, QoS or associations; return how many there are. Errors: as `look`."""
        self._require_going()
        try:
            return take_inventory(
                actor=self.stream.actor, cluster=self.cluster, source=self.source, kind=kind, slurm_name=self.slurm_name
            )
        finally:
            self._count_calls()

    def fail(self, problem: str) -> None:
        """Note why and when a look or a sweep was in vain; the next one that works takes the note away."""
        at = f" (tried {clock.now().astimezone(UTC):%Y-%m-%d %H:%M} UTC)"
        self._note(problem=problem[: PROBLEM_KEPT - len(at)] + at)

    def close(self) -> None:
        """Finish the open batch."""
        self.stream.close()

    def _store(self, told: list[Outcome], told_by: Mapping[int, str] | None = None) -> dict[int, list[str]]:
        """Store what accounting said; return the states of each job's records. `told_by`: who spoke of a job before."""
        outcomes = [self.notes.add_to(each) for each in told]
        if not self.cluster.is_named(self.slurm_name):
            outcomes = [self._named(each) for each in outcomes]
        if news := [each for each in outcomes if self._is_news(each)]:
            self.stream.write(news, told_by=told_by)
        states: dict[int, list[str]] = {}
        for each in outcomes:
            if isinstance(each, JobRecord):
                states.setdefault(each.raw_job_id, []).append(each.state)
        return states

    def _named(self, outcome: Outcome) -> Outcome:
        """Give a record of this Slurm our name of the cluster."""
        if isinstance(outcome, JobRecord) and outcome.cluster == self.slurm_name:
            return outcome._replace(cluster=self.cluster.name)
        return outcome

    def _is_news(self, outcome: Outcome) -> bool:
        """Say whether an outcome is to be written: what was set aside once would be set aside at each look."""
        if isinstance(outcome, Rejected):
            key = hash((outcome.reason_code, outcome.raw))
        elif isinstance(outcome, JobRecord) and find_fault(outcome, self.cluster.name):
            key = hash((outcome.raw_job_id, outcome.submit_s, outcome.state))
        else:
            return True
        is_news = key not in self.refused
        self.refused.add(key)
        return is_news

    def _note(self, **changes: datetime | str) -> None:
        row = self.row
        self._count_calls()
        row.unsettled = len(self.unsettled)
        for name, value in ({"problem": ""} | changes).items():
            setattr(row, name, value)
        row.save(update_fields=NOTED)

    def _count_calls(self) -> None:
        """Add what was asked to what the row says with the next note."""
        row, source = self.row, self.source
        row.calls, row.busy_s = row.calls + source.calls, row.busy_s + source.busy_s
        self.asked_s += source.busy_s
        source.calls, source.busy_s = 0, 0.0


def _stored_queue(cluster: Cluster) -> Queue:
    """Return the jobs that are stored as active: those that left while no reader looked are then seen to have left."""
    active = Job.objects.active().filter(cluster=cluster, submit__gte=clock.now() - KNOWN)
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
