"""The summary of a job that jobstats keeps in Slurm's AdminComment: `JS1:` and the base64 of gzipped JSON."""

import base64
import binascii
import json
import zlib
from collections.abc import Iterator
from typing import Any, Final

from telemetry.engine.slurm.errors import RowError

MARK: Final = "JS1:"
EMPTY: Final = ("JS1:None", "JS1:Short")  # nothing was sampled, or the job was too short for it
MAX_BYTES: Final = 2**22  # unpacked: a few hundred bytes a node
_GZIP: Final = 31  # zlib's window bits for a gzip header
_COLUMNS: Final = ("gpu_utilization", "gpu_used_memory", "gpu_total_memory")


def read_summary(text: str) -> Iterator[tuple[str, str, float, float, float]]:
    """Yield node, GPU index, mean compute (%), peak memory and total memory (bytes) of each GPU of a job.

    A job without GPUs yields nothing. Errors: `RowError` where the text is no such summary.
    """
    nodes = _unpack(text.removeprefix(MARK)).get("nodes")
    if not isinstance(nodes, dict):
        raise RowError("summary_malformed", "The summary names no nodes.")
    for node, facts in nodes.items():
        compute, used, total = (_column(facts, name) for name in _COLUMNS)
        for gpu in compute:
            yield str(node), str(gpu), _number(compute, gpu), _number(used, gpu), _number(total, gpu)


def _column(facts: object, name: str) -> dict[str, Any]:
    column = (facts.get(name) or {}) if isinstance(facts, dict) else None
    if not isinstance(column, dict):
        raise RowError("summary_malformed", f"A node has no object {name}.")
    return column


def _unpack(text: str) -> dict[str, Any]:
    try:
        packed = base64.b64decode(text, validate=True)
        unpacker = zlib.decompressobj(_GZIP)
        unpacked = unpacker.decompress(packed, MAX_BYTES)
        if unpacker.unconsumed_tail:
            raise RowError("summary_too_large", f"The summary unpacks to more than {MAX_BYTES} bytes.")
        found = json.loads(unpacked)
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        if isinstance(error, RowError):
            raise
        raise RowError("summary_malformed", f"{type(error).__name__}: {error}"[:200]) from None
    if not isinstance(found, dict):
        raise RowError("summary_malformed", "The summary is no object.")
    return found


def _number(column: dict[str, Any], gpu: str) -> float:
    value = column.get(gpu)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RowError("summary_malformed", f"GPU {str(gpu)[:40]} has no number.")
    try:
        return float(value)
    except OverflowError:
        raise RowError("summary_malformed", f"GPU {str(gpu)[:40]} has too large a number.") from None
