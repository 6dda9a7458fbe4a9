"""Made-up exports of GPU use for the engine's tests."""

DCGM = "timestamp,Hostname,gpu,UUID,hpc_job,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_FB_USED,DCGM_FI_DEV_FB_TOTAL"
TOTAL = 80_000


def sample(job: int, gpu: str, compute: float, memory: float, at: str = "2026-07-01T11:05:00") -> str:
    """Write a sample of DCGM; compute and memory in percent."""
    return f"{at}Z,g1,0,GPU-{gpu},{job},{compute},{memory * TOTAL / 100},{TOTAL}"


def export(*lines: str) -> bytes:
    """Write a file of DCGM."""
    return "".join(f"{line}\n" for line in (DCGM, *lines)).encode()
