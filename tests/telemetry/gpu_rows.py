"""Readings of GPUs for tests, of jobs of one day."""

from principals.models import ClusterUser, Lab
from telemetry.engine.gpu_use import GpuReading
from telemetry.models import Job
from tests.telemetry.job_rows import DAY_0, make_job

GIB = 2**30
HOUR = 3600
ENDED = DAY_0 + 3 * HOUR
A100 = "NVIDIA A100-SXM4-80GB"


def gpu_job(user: ClusterUser, lab: Lab, raw_id: int, *, gpus: int = 1, start: int = DAY_0 + HOUR, **fields) -> Job:
    """A job that ran two hours on GPUs."""
    defaults = {"partition": "gpu", "gpus": gpus, "end": start + 2 * HOUR} | fields
    return make_job(user, lab, submit=start - 60, start=start, raw_id=raw_id, **defaults)


def reading(raw_id: int, compute: float = 20, memory: float = 10, *, gpu: str = "g1:0", at: int = ENDED, **fields):
    """A reading of an A100 at the job's end; its peak is its mean memory and one GiB."""
    peak = int(80 * GIB * memory / 100)
    return GpuReading(raw_id, gpu, compute, memory, at, peak, 80 * GIB, A100)._replace(**fields)
