"""What the block reader makes of a text, in the order of its lines, to be held against the row reader."""

import io
from collections.abc import Iterable

from telemetry.engine.slurm.bulk import Block, BulkReader
from telemetry.engine.slurm.records import JobRecord, Outcome, Rejected, StepSeen, content_digest
from telemetry.engine.slurm.sacct_text import SacctReader


def read_in_blocks(
    data: bytes, *, now_s: int, block_bytes: int, block_rows: int = 1000
) -> list[JobRecord | Rejected | str]:
    """Read a text in blocks of a size; a step is told as "step", for blocks only count them."""
    reader = BulkReader(io.BytesIO(data), now_s=now_s, block_bytes=block_bytes, block_rows=block_rows)
    return [outcome for block in reader for outcome in _told(block)]


def read_by_rows(data: bytes, *, now_s: int) -> list[JobRecord | Rejected | str]:
    """Read a text row by row, told as `read_in_blocks` tells it."""
    return tell(SacctReader(io.BytesIO(data), now_s=now_s))


def tell(outcomes: Iterable[Outcome]) -> list[JobRecord | Rejected | str]:
    """Name steps "step"."""
    return ["step" if isinstance(outcome, StepSeen) else outcome for outcome in outcomes]


def _told(block: Block) -> list[JobRecord | Rejected | str]:
    found: list[tuple[int, JobRecord | Rejected | str]] = []
    if block.columns is not None:
        jobs, records = block.columns.jobs, block.columns.records()
        found += zip(jobs["line"].to_list(), records, strict=True)
        assert block.columns.digests(jobs).to_list() == [content_digest(record) for record in records]
        found += [(line, "step") for line in block.columns.steps]
    lines = [line for line, _ in block.odd]
    found += zip(lines, tell(outcome for _, outcome in block.odd), strict=True)
    return [outcome for _, outcome in sorted(found, key=lambda each: each[0])]
