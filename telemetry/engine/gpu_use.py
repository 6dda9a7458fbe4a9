"""What a job does with its GPUs: which of compute and memory it uses, what it leaves idle, what would have done.

The four-way split is that of the published measurement (paper, §IV-B, Figure 4b). The paper names no threshold; ours is
`HEAVY_PERCENT`, and every figure says so.
"""

import re
from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from telemetry.engine.accelerators import Accelerator

HEAVY_PERCENT: Final = 50.0  # a mean of so much and more is heavy use
UNUSED_PERCENT: Final = 1.0  # a GPU whose mean compute and memory both stay below was not used at all
FITS_WITHIN: Final = 0.9  # of what a slice or another GPU has; the rest is room for peaks of what is a mean
THRESHOLD_WORDS: Final = f"heavy is a mean of {HEAVY_PERCENT:.0f}\u202f% and more over the job"
SPLIT_WORDS: Final = f"Means over a job and its GPUs, of compute and of memory held; {THRESHOLD_WORDS}."
CLOCKS_DIFFER_S: Final = 300  # between who measured and Slurm
STRANDED_WORDS: Final = (
    "GPU-hours times the share that neither compute nor memory used: 1 minus the larger of the two means."
)
MAX_BYTES: Final = 2**50
_NUMBERED: Final = re.compile(r"(?:[A-Za-z]+_?)?[0-9]{1,4}(?:/.*)?")  # 0, gpu0, nvidia0, slice 0/7


class Quadrant(StrEnum):
    """How a job uses its GPUs."""

    BOTH = "both"
    COMPUTE = "compute"
    MEMORY = "memory"
    LOW = "low"


QUADRANT_NAMES: Final = {
    Quadrant.BOTH: "Compute and memory", Quadrant.COMPUTE: "Compute only", Quadrant.MEMORY: "Memory only",
    Quadrant.LOW: "Neither",
}  # fmt: skip


class Fit(StrEnum):
    """What would have done for a job."""

    MIG = "mig"
    SMALLER = "smaller"
    SHARED = "shared"
    FEWER = "fewer"
    WHOLE = "whole"
    UNKNOWN = "unknown"


class GpuReading(NamedTuple):
    """What one GPU did for one job, over its whole time: the normal form of every source.

    `gpu` names the GPU within the job: a UUID, or `node:index`. Means in percent of the device; memory is what was
    held, not bandwidth, and where a source knows only its peak (`memory_is_peak`) it is that. `measured_s` is the end
    of what was measured, UTC epoch seconds; sizes in bytes.
    """

    raw_job_id: int
    gpu: str
    compute_percent: float
    memory_percent: float
    measured_s: int
    peak_memory_bytes: int | None = None
    total_memory_bytes: int | None = None
    model: str = ""
    memory_is_peak: bool = False

    @property
    def used_percent(self) -> float:
        """The share of the device that was needed: of compute and memory the larger."""
        return max(self.compute_percent, self.memory_percent)


class JobUse(NamedTuple):
    """A job's GPUs taken together. Means are over its measured GPUs; `peak_memory_bytes` is the largest of one."""

    gpus: int
    compute_percent: float
    memory_percent: float
    used_percent: float
    peak_memory_bytes: int | None
    unused_gpus: int
    quadrant: Quadrant
    memory_is_peak: bool


def classify(compute_percent: float, memory_percent: float) -> Quadrant:
    """Place two means in one of the four quadrants; a mean of exactly the threshold is heavy."""
    if compute_percent >= HEAVY_PERCENT:
        return Quadrant.BOTH if memory_percent >= HEAVY_PERCENT else Quadrant.COMPUTE
    return Quadrant.MEMORY if memory_percent >= HEAVY_PERCENT else Quadrant.LOW


def sum_up(readings: Sequence[GpuReading]) -> JobUse:
    """Take the GPUs of one job together. Errors: ValueError without any."""
    number = len(readings)
    if not number:
        raise ValueError("A job without measured GPUs has no use.")
    compute = sum(each.compute_percent for each in readings) / number
    memory = sum(each.memory_percent for each in readings) / number
    peaks = [each.peak_memory_bytes for each in readings if each.peak_memory_bytes is not None]
    return JobUse(
        gpus=number, compute_percent=compute, memory_percent=memory,
        used_percent=sum(each.used_percent for each in readings) / number,
        peak_memory_bytes=max(peaks) if len(peaks) == number else None,
        unused_gpus=sum(each.used_percent < UNUSED_PERCENT for each in readings),
        quadrant=classify(compute, memory), memory_is_peak=any(each.memory_is_peak for each in readings),
    )  # fmt: skip


def find_fit(use: JobUse, accelerator: Accelerator | None, among: Collection[Accelerator] = ()) -> tuple[Fit, str]:
    """Say what would have done for a job, and its name: the least of it, in the order of what frees most.

    A job with unused GPUs needed fewer. One of a single GPU may fit a MIG slice. Any may fit a smaller GPU of the same
    vendor, of those `among` which the site has. Where two alike fit on one GPU, sharing would do. Memory is judged by
    its peak, compute by its mean scaled by dense FP16 throughput; where either is not known the answer is unknown.
    """
    if 0 < use.unused_gpus < use.gpus:
        return Fit.FEWER, f"{use.gpus - use.unused_gpus} of {use.gpus}"
    if accelerator is None or use.peak_memory_bytes is None:
        return Fit.UNKNOWN, ""
    if use.gpus == 1 and (profile := _slice_for(use, accelerator)):
        return Fit.MIG, profile
    if smaller := _smaller_for(use, accelerator, among):
        return Fit.SMALLER, smaller.name
    if use.gpus == 1 and _fits(use, accelerator.memory_bytes / 2, 0.5):
        return Fit.SHARED, "two to a GPU"
    return Fit.WHOLE, accelerator.name


def _fits(use: JobUse, memory_bytes: float, speed: float) -> bool:
    """Say whether a job fits a device of so much memory that is `speed` times as fast as its own."""
    peak = use.peak_memory_bytes or 0
    return peak <= memory_bytes * FITS_WITHIN and use.compute_percent <= 100 * speed * FITS_WITHIN


def _slice_for(use: JobUse, accelerator: Accelerator) -> str:
    for name, sevenths, eighths in sorted(accelerator.slices, key=lambda one: (one.eighths, one.sevenths)):
        if _fits(use, accelerator.memory_bytes * eighths / 8, sevenths / 7):
            return name
    return ""


def _smaller_for(use: JobUse, accelerator: Accelerator, among: Collection[Accelerator]) -> Accelerator | None:
    candidates = [
        one for one in among
        if one.vendor == accelerator.vendor and one.memory_gib < accelerator.memory_gib
        and _fits(use, one.memory_bytes, one.fp16_tflops / accelerator.fp16_tflops)
    ]  # fmt: skip
    return min(candidates, key=lambda one: (one.memory_gib, one.fp16_tflops), default=None)


def is_numbered(gpu: str) -> bool:
    """Say whether a GPU's name is its number on some node: every node has one of that name."""
    return _NUMBERED.fullmatch(gpu) is not None


def find_fault(reading: GpuReading) -> str:
    """Say why a reading cannot be taken, as a stable code; "" where it can."""
    peak, total = reading.peak_memory_bytes, reading.total_memory_bytes
    if not 0 < reading.raw_job_id < 2**63:
        return "job_invalid"
    if not 0 < len(reading.gpu) <= 100 or not reading.gpu.isprintable() or " " in reading.gpu:
        return "gpu_invalid"
    if is_numbered(reading.gpu):
        return "node_missing"
    if not (0 <= reading.compute_percent <= 100 and 0 <= reading.memory_percent <= 100):  # nor for NaN
        return "percent_out_of_range"
    if any(size is not None and not 0 <= size <= MAX_BYTES for size in (peak, total)):
        return "memory_out_of_range"
    if peak is not None and total is not None and peak > total:
        return "peak_over_total"
    if len(reading.model) > 100 or not reading.model.isprintable():
        return "model_invalid"
    return "" if 0 < reading.measured_s < 2**40 else "time_invalid"
