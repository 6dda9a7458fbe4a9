"""A stream of records: one batch that stays open while a reader or simulator sends what it sees, as it sees it."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from portal.core import clock
from principals.actors import Actor
from principals.models import Cluster
from telemetry import permissions
from telemetry.engine.slurm.records import Outcome
from telemetry.models import IngestBatch
from telemetry.services.ingest import batches
from telemetry.services.ingest.chunks import LeaseLost, prepare_chunk, write_chunk
from telemetry.services.ingest.feed import Counts, Feed
from telemetry.services.ingest.reading import CHUNK_ROWS, RECORDS, Chunk, Place

BATCH_SPAN: Final = timedelta(hours=1)


class RecordStream:
    """Writes records at once, each call in its own transaction, into a batch that is exchanged every hour.

    Rollups are not recomputed here: what a write touches is marked, and `refresh` or `catch_up` come when the caller
    wants them. A batch whose lease lapsed (a machine that slept) was closed by the sweep; the next write opens another.
    """

    def __init__(self, *, actor: Actor, cluster: Cluster, source: str, name: str = "") -> None:
        """Prepare a stream; its first batch is made with the first write. Errors: `NotAllowed`."""
        permissions.require_feed(actor, "jobs", cluster.name)
        self.actor, self.cluster, self.source, self.name = actor, cluster, source, name
        self._feed: Feed | None = None

    def write(self, records: Sequence[Outcome], *, told_by: Mapping[int, str] | None = None) -> Counts:
        """Store records, those already stored excepted, and set aside what could not be read; return the counts.

        `told_by` names who told us of some jobs before, by raw id: the news of them are that source's.
        """
        total = Counts()
        for first in range(0, len(records), CHUNK_ROWS):
            part = records[first : first + CHUNK_ROWS]
            try:
                counts = self._write(part, told_by)
            except LeaseLost:
                self._feed = None
                counts = self._write(part, told_by)
            for name, number in counts.as_dict().items():
                setattr(total, name, getattr(total, name) + number)
        return total

    def _write(self, records: Sequence[Outcome], told_by: Mapping[int, str] | None) -> Counts:
        feed = self._open()
        outcomes = list(enumerate(records, start=feed.batch.line))
        chunk = Chunk(outcomes, Place(line=feed.batch.line + len(records)))
        return write_chunk(feed, prepare_chunk(feed.cluster, chunk), told_by)

    def _open(self) -> Feed:
        feed = self._feed
        if feed is not None and feed.batch.created > clock.now() - BATCH_SPAN:
            return feed
        self.close()
        batch = batches.start_batch(
            actor=self.actor, cluster=self.cluster, format=RECORDS, source=self.source, name=self.name
        )
        self._feed = Feed(batch, self.cluster, batches.lease_of(batch), group_is_lab=False)
        return self._feed

    def keep(self) -> None:
        """Keep the open batch ours while there is nothing to write: its lease is shorter than a quiet hour."""
        if self._feed is not None and not batches.keep_lease(self._feed):
            self._feed = None

    @property
    def batch(self) -> IngestBatch | None:
        """The batch that is open now."""
        return self._feed.batch if self._feed else None

    def close(self) -> None:
        """Finish the open batch; writing again opens another."""
        if self._feed is None:
            return
        try:
            batches.finish_batch(self._feed, self.actor.ref)
        except LeaseLost:
            pass  # the sweep closed it; every record it took is stored
        finally:
            self._feed = None
