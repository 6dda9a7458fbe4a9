"""Drive a feed from its place to its end, chunk by chunk, and say how far it is."""

import gc
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Final

from django.db import connection

from portal.core import stopping
from portal.core.actors import ActorRef
from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.lines import Source
from telemetry.models import DataGeneration, IngestBatch
from telemetry.services import job_indexes, rollups
from telemetry.services.ingest.batches import finish_batch
from telemetry.services.ingest.chunks import Prepared, prepare_chunk, write_chunk
from telemetry.services.ingest.feed import Feed
from telemetry.services.ingest.reading import BLOCK_ROWS, Chunk, Place, cut_blocks, cut_stream, open_reader

# From here on text is read in columns: a good third faster on SQLite, several times on PostgreSQL. Below, the library
# for columns would cost more to load than it saves.
MANY_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a batch is: records seen (by this run and those before), bytes read, bytes of all where known."""

    rows: int
    offset: int
    bytes_total: int | None


Report = Callable[[Progress], None]


def place_of(batch: IngestBatch) -> Place:
    """Return where a batch goes on."""
    return Place(batch.offset, batch.line or 1, batch.header)


def read_chunks(batch: IngestBatch, source: Source, *, now_s: int) -> Iterable[Chunk]:
    """Yield the rest of a batch; `source` stands at its place. Errors: `FormatError`, also for a stream that is empty.

    An empty stream in the headerless form would otherwise pass for a file without jobs.
    """
    place = place_of(batch)
    if batch.format == "sacct" and (batch.bytes_total or 0) > MANY_BYTES:
        yield from cut_blocks(source, place=place, now_s=now_s, size=BLOCK_ROWS[connection.vendor])
        return
    reader = open_reader(source, format=batch.format, place=place, now_s=now_s)
    yield from cut_stream(reader)
    if reader.offset == 0:
        raise FormatError("empty_file", "There is nothing in this file.")


def run_feed(
    feed: Feed, chunks: Iterable[Chunk], ref: ActorRef, report: Report | None = None, *, ahead: bool = False
) -> None:
    """Write every chunk, finish the batch and recompute what it touched.

    `ahead`: `chunks` come from where reading neither waits nor needs the database. PostgreSQL, a process of its own,
    then takes one chunk while a thread prepares the next, and a large load into an empty table builds its indexes at
    the end.

    Errors: `FormatError`, `LeaseLost`, `Stopping`, those of the database.
    """
    batch = feed.batch
    _collect_rarely()
    with _rolled_up(feed) if ahead else nullcontext():
        prepared = (prepare_chunk(feed.cluster, chunk) for chunk in chunks)
        for chunk in _one_ahead(prepared) if ahead and connection.vendor == "postgresql" else prepared:
            stopping.check()
            write_chunk(feed, chunk)
            if feed.load is not None:
                feed.load.go_on()
            if report is not None:
                report(Progress(batch.total_rows, batch.offset, batch.bytes_total))
        finish_batch(feed, ref)
        if feed.load is not None:
            feed.load.begin_last()
        job_indexes.build_missing()
        if feed.load is not None and not job_indexes.is_loading():  # else `catch_up` waits for the indexes
            feed.load.finish()
    # What is interrupted here stays marked for the next time.
    rollups.catch_up(cluster=feed.cluster, gpus=False)


@contextmanager
def _rolled_up(feed: Feed) -> Iterator[None]:
    """Have a large load into an empty table go without indexes, and rolled up while it goes on."""
    generation = DataGeneration.objects.of(feed.cluster)
    if not job_indexes.drop_for_load(feed.batch.bytes_total):
        yield
        return
    from telemetry.services.ingest.load_rollups import LoadRollups

    feed.load = LoadRollups(feed.cluster, generation)
    try:
        yield
    finally:
        feed.load.close()
        feed.load = None


def _one_ahead(chunks: Iterator[Prepared]) -> Iterator[Prepared]:
    """Yield chunks, the next one being made in a thread while the caller works on one."""
    with ThreadPoolExecutor(1, thread_name_prefix="read-ahead") as thread:
        coming = thread.submit(next, chunks, None)
        while (chunk := coming.result()) is not None:
            coming = thread.submit(next, chunks, None)
            yield chunk


def _collect_rarely() -> None:
    """Let this process look for cycles rarely from now on: thousands of tuples live for a chunk, none in a cycle."""
    youngest, *others = gc.get_threshold()
    gc.set_threshold(max(youngest, 50_000), *others)
