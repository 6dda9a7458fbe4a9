"""One chunk, one transaction: jobs, quarantined rows, days to recompute, news, and the batch's place and counts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, get_args

from django.db import transaction
from django.db.models import F

from portal.core import clock, live
from principals.models import Cluster
from telemetry.engine.receipts import receipts_of
from telemetry.engine.redaction import redact_record
from telemetry.engine.reports import Known, Verdict, judge_report
from telemetry.engine.slurm.records import JobRecord, Outcome, Rejected, content_digest
from telemetry.engine.touched import as_date, touched_days
from telemetry.models import IngestBatch
from telemetry.services import rollups
from telemetry.services.attribution import Attributor
from telemetry.services.ingest import news, quarantine, rows
from telemetry.services.ingest.feed import Counts, Feed, Ids, redaction_key
from telemetry.services.ingest.reading import Chunk, Place
from telemetry.services.sources import note_source

if TYPE_CHECKING:
    from telemetry.engine.slurm.bulk import Block
    from telemetry.services.ingest.plain import Plain

LEASE: Final = timedelta(seconds=60)


class LeaseLost(Exception):
    """Another process took the batch over: what we had in hand was not written."""


@dataclass(slots=True)
class Prepared:
    """A chunk before its transaction: records redacted and digested, plain jobs in columns, the rest counted."""

    place: Place
    plain: "Plain | None" = None
    records: list[tuple[JobRecord, int]] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)


def prepare_chunk(cluster: Cluster, chunk: Chunk) -> Prepared:
    """Redact and digest what will be stored; this needs no database and holds no lock."""
    plain, outcomes = (None, chunk.outcomes) if chunk.block is None else _open_block(cluster, chunk.block)
    prepared = Prepared(chunk.place, plain)
    _take_outcomes(prepared, outcomes, cluster.name)
    if plain is not None:
        prepared.counts.step_rows += len(plain.columns.steps)
    return prepared


def _take_outcomes(prepared: Prepared, outcomes: Iterable[tuple[int, Outcome]], cluster: str) -> None:
    key = redaction_key()
    for line, outcome in outcomes:
        if isinstance(outcome, JobRecord):
            if fault := rows.find_fault(outcome, cluster):
                prepared.rejected.append(Rejected(line, *fault, _name(outcome)))
                continue
            record, secrets = redact_record(outcome, key=key)
            prepared.counts.redactions += secrets
            # Digested as stored: a digest of the text as it came would let a secret be guessed.
            prepared.records.append((record, content_digest(record)))
        elif isinstance(outcome, Rejected):
            prepared.rejected.append(outcome)
        else:
            prepared.counts.step_rows += 1
    prepared.counts.rejected_rows = len(prepared.rejected)


def _name(record: JobRecord) -> str:
    """Say which record was set aside after it was read: its own text is not at hand any more."""
    submit = datetime.fromtimestamp(record.submit_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return (
        f"job {record.job_id} (JobIDRaw {record.raw_job_id}) of {record.user}, {record.state}, submitted {submit} UTC"
    )


def write_chunk(feed: Feed, prepared: Prepared, told_by: Mapping[int, str] | None = None) -> Counts:
    """Write a chunk and move the batch on, or nothing at all. Errors: `LeaseLost`, those of the database.

    `told_by` names who spoke first of some jobs, by raw id; of the others the batch's own source did.
    """
    counts = prepared.counts
    with transaction.atomic():
        # Jobs and sessions of a cluster are written one after the other, so that each sees the other's rows.
        Cluster.objects.select_for_update(no_key=True).get(pk=feed.cluster.pk)
        if prepared.plain is not None:
            # What is plain passed every check that sets a record aside, and is free of secrets.
            _take_outcomes(prepared, prepared.plain.write(feed, counts), feed.cluster.name)
        _Writer(feed, prepared, told_by or {}).write()
        counts.redactions += quarantine.set_aside(feed.batch, prepared.rejected, before=feed.batch.rejected_rows)
        _note_source(feed)
        lease = move_on(feed, prepared.place, counts)
    feed.advance(prepared.place, counts, lease)
    return counts


def write_records(feed: Feed, records: Sequence[JobRecord], told_by: Mapping[int, str]) -> None:
    """Write records that are of no batch: they are as they are stored, but for what somebody else told of them.

    Call it in a transaction that has the cluster's row locked.
    """
    _Writer(feed, Prepared(Place(), records=[(each, content_digest(each)) for each in records]), told_by).write()


def _open_block(cluster: Cluster, block: "Block") -> "tuple[Plain | None, Sequence[tuple[int, Outcome]]]":
    """Return the jobs of a block that are written in columns, and the outcomes that go one by one."""
    if block.columns is None:
        return None, block.odd
    from telemetry.services.ingest.plain import part

    return part(cluster, block.columns, block.odd)


def _note_source(feed: Feed) -> None:
    """Say that the source is alive: a stream's batch stays open for an hour, which must not look like silence."""
    newest = datetime.fromtimestamp(feed.newest_s, UTC) if feed.newest_s else None
    note_source(cluster=feed.cluster, name=feed.batch.source, kind=feed.batch.kind, newest=newest)


def move_on(feed: Feed, place: Place, counts: Counts) -> datetime:
    """Note place, counts and a longer lease, which is returned; the row decides whether the batch is still ours.

    Call it in the transaction of what is counted, and `Feed.advance` behind it. Errors: `LeaseLost`.
    """
    lease = clock.now() + LEASE
    held = IngestBatch.objects.filter(
        pk=feed.batch.pk, state=IngestBatch.State.RUNNING, leased_until=feed.lease, offset=feed.batch.offset
    )
    moved = held.update(
        offset=place.offset,
        line=place.line,
        header=place.header,
        leased_until=lease,
        attempts=0,  # attempts since the last progress
        **{name: F(name) + number for name, number in counts.as_dict().items()},
    )
    if not moved:
        raise LeaseLost
    return lease


class _Writer:
    """Writes the records of one chunk, inside its transaction."""

    def __init__(self, feed: Feed, prepared: Prepared, told_by: Mapping[int, str]) -> None:
        self.feed = feed
        self.told_by = told_by
        self.prepared = prepared
        self.batch_id = feed.batch.pk
        self.now_s = clock.now_s()
        self.pending: dict[rows.Key, rows.Row] = {}
        self.pairs: set[tuple[int, int]] = set()
        self.changes: list[news.JobChange] = []

    def write(self) -> None:
        """Decide on each record, then write all that is new."""
        records = self.prepared.records
        if not records:
            return
        feed, counts = self.feed, self.prepared.counts
        known = rows.find_known(feed.cluster.pk, (record.raw_job_id for record, _ in records))
        fresh: list[tuple[JobRecord, int]] = []
        stored = frozenset(known)
        seen = {key: row.digest for key, row in known.items()}
        for record, digest in records:
            # What is stored already needs neither names nor sessions: a file sent twice costs little.
            if seen.get((record.raw_job_id, record.submit_s)) == digest:
                counts.duplicate_rows += 1
                continue
            seen.pop((record.raw_job_id, record.submit_s), None)
            fresh.append((record, digest))
        if fresh:
            self._take(fresh, known)
        new = [row for key, row in self.pending.items() if key not in stored]
        rows.write(new, [row for key, row in self.pending.items() if key in stored])
        if self.pairs:
            pairs = {(as_date(day), user) for day, user in self.pairs}
            rollups.mark_dirty(feed.cluster, pairs)
            if feed.load is not None:
                feed.load.note_rows(new, pairs, certain=len(new) == len(self.pending))
        if self.changes:
            live.announce(news.tell(feed.cluster, self.changes))

    def _take(self, fresh: list[tuple[JobRecord, int]], known: dict[rows.Key, Known]) -> None:
        feed, counts = self.feed, self.prepared.counts
        ids = [feed.ids_of(record.user, record.account, record.group) for record, _ in fresh]
        submits = [record.submit_s for record, _ in fresh]
        feed.newest_s = max(feed.newest_s, *submits, *(record.end_s or 0 for record, _ in fresh))
        named = {name for record, _ in fresh for name in receipts_of(record.comment, record.extra)}
        attributor = Attributor(feed.cluster, {each[1] for each in ids}, min(submits), max(submits), named)
        tally = dict.fromkeys(get_args(Verdict), 0)
        for (record, digest), names in zip(fresh, ids, strict=True):
            key = record.raw_job_id, record.submit_s
            old = known.get(key)
            outcome = judge_report(
                old, digest=digest, state=record.state, start_s=rows.start_of(record), elapsed_s=record.elapsed_s
            )
            tally[outcome] += 1
            if outcome in ("created", "updated"):
                known[key] = self._put(record, digest, names, old, attributor)
        for outcome, number in tally.items():
            counts.add(outcome, number)

    def _put(
        self,
        record: JobRecord,
        digest: int,
        ids: Ids,
        old: Known | None,
        attributor: Attributor,
    ) -> Known:
        user_id, lab_id = ids[1], ids[3]
        found, campaign = attributor.attribute(
            user_id, record.submit_s, campaign=record.campaign[:100], comment=record.comment, extra=record.extra
        )
        footprint = rows.footprint_of(record, user_id, lab_id, found)
        self.pending[record.raw_job_id, record.submit_s] = rows.make_row(
            record, footprint, digest=digest, ids=ids, found=found, campaign=campaign, changed_s=self.now_s,
            batch_id=self.batch_id,
        )  # fmt: skip
        self.pairs |= touched_days(old.footprint if old else None, footprint)
        old_state = old.state if old else None
        transition = news.find_transition(record, old_state, now_s=self.now_s)
        if transition is not None:
            source = self.told_by.get(record.raw_job_id, self.feed.batch.source)
            self.changes.append(
                news.JobChange(
                    record, transition, old_state, user_id, lab_id, found.actor, found.harness, campaign, source
                )
            )  # fmt: skip
        return Known(digest, record.state, footprint)
