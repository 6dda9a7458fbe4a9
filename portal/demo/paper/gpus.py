"""What jobs used of their GPUs, as a site's DCGM exporter writes it: a line a GPU (Figure 4b)."""

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Final

from portal.demo.paper import published
from portal.demo.paper.drawing import Lot
from portal.demo.paper.jobs import Batch, Run

HEADER: Final = "timestamp,hpc_job,UUID,modelName,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_FB_USED,DCGM_FI_DEV_FB_TOTAL\n"
_MODEL: Final = "NVIDIA H100 80GB HBM3"
_TOTAL_MIB: Final = 81_559
_HEAVY: Final = (55.0, 97.0)  # percent; the paper names no threshold, so nothing lies near the half
_LIGHT: Final = (2.0, 44.0)


class GpuExports:
    """Write the lines of jobs with GPUs that ran and that somebody measured."""

    def __init__(self, rng: Random, quadrants: Counter[str], start_s: int, end_s: int) -> None:
        self._rng, self._counted, self._start_s, self._end_s = rng, quadrants, start_s, end_s
        self._quadrants = Lot(published.GPU_QUADRANTS, rng)
        self._measured = Lot({True: published.GPU_MEASURED, False: 1 - published.GPU_MEASURED}, rng)

    def lines(self, batch: Batch, runs: list[Run], ids: list[tuple[int, str]]) -> Iterator[str]:
        """Yield the lines of a submission, and count each job measured that ended in the window."""
        if not batch.gpus:
            return
        for run, (raw, _) in zip(runs, ids, strict=True):
            if run.start_s is None or not self._measured.draw():
                continue
            quadrant = self._quadrants.draw()
            self._counted[quadrant] += self._start_s <= run.end_s < self._end_s
            compute, memory = (self._percent(heavy=heavy) for heavy in published.HEAVY_ON[quadrant])
            for number in range(batch.gpus):
                used = round(memory * _TOTAL_MIB / 100)
                yield f"{run.end_s},{raw},GPU-{raw:x}-{number},{_MODEL},{compute:.1f},{used},{_TOTAL_MIB}\n"

    def _percent(self, *, heavy: bool) -> float:
        return self._rng.uniform(*(_HEAVY if heavy else _LIGHT))
