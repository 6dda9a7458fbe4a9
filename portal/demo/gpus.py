"""What the demo's jobs used of their GPUs, as a site's exporter would have told it when each job ended."""

from collections.abc import Iterator
from random import Random
from typing import Final

from portal.demo.facility import Facility
from portal.demo.history import Stage
from principals.actors import SYSTEM_ACTOR
from telemetry import services as telemetry_services
from telemetry.engine.gpu_use import UNUSED_PERCENT, GpuReading
from telemetry.engine.slurm.records import JobRecord

SOURCE: Final = "simulate"
_MEASURED: Final = 0.94  # of jobs; of the others the exporter lost its samples
_SHORTEST_S: Final = 300  # it samples every five minutes: shorter jobs it may never see
_ONE_USED: Final = 0.05  # of jobs with several GPUs, those that use only the first
_MODELS: Final = {"a100": "NVIDIA A100-SXM4-80GB", "h200": "NVIDIA H200"}
_MEMORY_MIB: Final = {"a100": 81_920, "h200": 143_771}
Span = tuple[float, float]
# How often a job uses both, compute, memory or neither (paper, Figure 4b), and the means (%) it has then.
_QUADRANTS: Final[dict[float, tuple[Span, Span]]] = {
    0.21: ((56, 96), (55, 94)), 0.22: ((55, 98), (6, 44)), 0.12: ((5, 42), (55, 93)), 0.45: ((1, 36), (2, 34)),
}  # fmt: skip


def tell_all(stage: Stage, facility: Facility, rng: Random) -> None:
    """Record the GPU use of every job that ended, through the service that a site's exporter feeds."""
    telemetry_services.record_gpu_utilisation(
        actor=SYSTEM_ACTOR, cluster=stage.cluster, source=SOURCE,
        readings=[reading for record in facility.records for reading in readings_of(rng, record)],
    )  # fmt: skip


def readings_of(rng: Random, record: JobRecord) -> Iterator[GpuReading]:
    """Draw what each GPU of a job did; nothing of a job without, still running, very short or not measured."""
    if not (record.gpus and record.started and record.end_s) or record.elapsed_s < _SHORTEST_S:
        return
    if rng.random() >= _MEASURED:
        return
    compute, memory = rng.choices(list(_QUADRANTS.values()), weights=list(_QUADRANTS))[0]
    means = rng.uniform(*compute), rng.uniform(*memory)
    used = 1 if record.gpus > 1 and rng.random() < _ONE_USED else record.gpus
    for number in range(record.gpus):
        yield _reading(rng, record, means if number < used else (0.0, UNUSED_PERCENT / 2))


def _reading(rng: Random, record: JobRecord, means: tuple[float, float]) -> GpuReading:
    kind = record.gpu_types[0]
    total = _MEMORY_MIB[kind] * 2**20
    compute, memory = (min(99.5, mean * rng.uniform(0.96, 1.04)) for mean in means)
    peak = min(0.99, memory / 100 * rng.uniform(1.02, 1.3)) * total
    return GpuReading(
        record.raw_job_id, f"GPU-{rng.getrandbits(64):016x}", round(compute, 1), round(memory, 1), record.end_s or 0,
        int(peak), total, _MODELS[kind],
    )  # fmt: skip
