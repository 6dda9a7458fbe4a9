"""Ingest of a file or a pipe in the caller's process."""

import hashlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from io import SEEK_END
from typing import BinaryIO, Final

from django.db import DatabaseError

from portal.core import clock
from portal.core.errors import Invalid
from principals.actors import Actor
from principals.models import Cluster
from telemetry import permissions
from telemetry.engine.slurm.errors import FormatError
from telemetry.models import IngestBatch
from telemetry.services import job_indexes
from telemetry.services.ingest import batches
from telemetry.services.ingest.feed import Feed
from telemetry.services.ingest.reading import FORMATS, Chunk
from telemetry.services.ingest.running import Report, read_chunks, run_feed

_READ_BYTES: Final = 1024 * 1024


def require_format(format: str) -> None:
    """Raise `Invalid` unless we read this format."""
    if format not in FORMATS:
        raise Invalid(
            f"There is no format {format[:20]!r}.", code="format_unknown", remedy=f"Formats: {', '.join(FORMATS)}."
        )


def ingest_file(
    *,
    actor: Actor,
    cluster: Cluster,
    stream: BinaryIO,
    format: str,
    source: str = "file",
    name: str = "",
    progress: Report | None = None,
) -> IngestBatch:
    """Ingest a stream in this process and return its batch, done or, where its format is not ours, failed.

    A seekable stream is digested first: one that was interrupted before goes on after its last committed chunk.
    Interrupted again (Ctrl-C, an error), the batch says so and the same call goes on from there. Errors: `Invalid`
    for an unknown format, `NotAllowed`, whatever reading or the database raises.
    """
    require_format(format)
    permissions.require_feed(actor, "jobs", cluster.name)
    digest, size = _measure(stream)
    batch, lease = _resume(cluster, format, digest) or _begin(
        actor=actor, cluster=cluster, format=format, source=source, name=name, digest=digest, size=size
    )
    if batch.offset:
        stream.seek(batch.offset)
    feed = Feed(batch, cluster, lease, group_is_lab=format == "xdmod")
    try:
        # What can be measured is a file; a pipe may wait for its writer.
        chunks = read_chunks(batch, stream, now_s=clock.now_s())
        if size is not None:
            chunks = _while_whole(chunks, stream, size)
        run_feed(feed, chunks, actor.ref, progress, ahead=size is not None)
    except FormatError as error:
        batches.fail_batch(batch, feed.lease, actor.ref, str(error))
        job_indexes.build_missing()
    except BaseException as error:
        _note_interruption(feed, actor, error)
        raise
    return batch


def _begin(
    *, actor: Actor, cluster: Cluster, format: str, source: str, name: str, digest: str, size: int | None
) -> tuple[IngestBatch, datetime]:
    batch = batches.start_batch(
        actor=actor, cluster=cluster, format=format, source=source, name=name, digest=digest, bytes_total=size
    )
    return batch, batches.lease_of(batch)


def _resume(cluster: Cluster, format: str, digest: str) -> tuple[IngestBatch, datetime] | None:
    batch = batches.find_interrupted(cluster=cluster, format=format, digest=digest)
    lease = batches.take_lease(batch, resume_failed=True) if batch else None
    return (batch, lease) if batch and lease else None


def _note_interruption(feed: Feed, actor: Actor, error: BaseException) -> None:
    batch = feed.batch
    why = "Interrupted" if isinstance(error, KeyboardInterrupt) else f"Stopped by {type(error).__name__}"
    text = f"{why} before line {batch.line}; all before it is stored. Run the same command again to go on."
    batches.fail_batch(batch, feed.lease, actor.ref, text)
    if not isinstance(error, DatabaseError):
        job_indexes.build_missing()


def _while_whole(chunks: Iterable[Chunk], stream: BinaryIO, size: int) -> Iterator[Chunk]:
    """Yield the chunks of a file of some size; `FormatError` once it is shorter than when it was measured.

    Half a file would otherwise pass for one that was read whole. The chunk in which it broke off is not yielded, so
    that the same file, whole again, goes on at the begin of a line.
    """
    for chunk in chunks:
        place = stream.tell()
        left = stream.seek(0, SEEK_END)
        if left < size:
            detail = f"The file became shorter while it was read: {left} bytes of {size} are left."
            raise FormatError("file_changed", detail, remedy="Run the same command again once it is whole.")
        stream.seek(place)
        yield chunk


def _measure(stream: BinaryIO) -> tuple[str, int | None]:
    """Return the sha256 and size of a stream that can be read twice, and stand at its start again; else "" and None."""
    if not stream.seekable():
        return "", None
    digest, size = hashlib.sha256(), 0
    while part := stream.read(_READ_BYTES):
        digest.update(part)
        size += len(part)
    stream.seek(0)
    return digest.hexdigest(), size
