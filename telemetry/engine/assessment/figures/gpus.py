"""What jobs do with their GPUs, by the portal's own definitions (paper, §IV-B, Figure 4b)."""

from typing import Final

import polars as pl

from telemetry.engine.assessment.figures.kinds import LABELS, Reading, hours, ratio
from telemetry.engine.assessment.gpus import UNMEASURED, GpuUse
from telemetry.engine.gpu_use import QUADRANT_NAMES, SPLIT_WORDS, STRANDED_WORDS, Quadrant
from telemetry.engine.report_content import Column, Figure, Number, Row

_POPULATION: Final = "jobs with GPUs that ended after having started"
_ALL: Final = ("all", "All")


def figures(reading: Reading, use: GpuUse) -> list[Figure]:
    """Return the four-way split and what is stranded."""
    return [_split(reading, use), _stranded(reading, use)]


def _sum(use: GpuUse, name: str, agent: bool | None = None, quadrant: str | None = None) -> float:
    table = use.sums
    if agent is not None:
        table = table.filter(pl.col("agent") == agent)
    if quadrant is not None:
        table = table.filter(pl.col("quadrant") == quadrant)
    return float(table[name].sum())


def _measured(use: GpuUse, name: str, agent: bool | None = None) -> float:
    return _sum(use, name, agent) - _sum(use, name, agent, UNMEASURED)


def _rows(reading: Reading) -> list[tuple[tuple[str, str], bool | None]]:
    """Return the classes, and all where there are several: key and label of each."""
    classes: list[tuple[tuple[str, str], bool | None]] = [(LABELS[agent], agent) for agent in reading.classes]
    return [*classes, (_ALL, None)] if len(classes) > 1 else classes


def _split(reading: Reading, use: GpuUse) -> Figure:
    def share(quadrant: str, agent: bool | None) -> float | None:
        return ratio(_sum(use, "jobs", agent, quadrant), _measured(use, "jobs", agent))

    rows = []
    for (key, label), agent in _rows(reading):
        shares = [share(quadrant, agent) for quadrant in QUADRANT_NAMES]
        counts = int(_measured(use, "jobs", agent)), int(_sum(use, "jobs", agent, UNMEASURED))
        rows.append(Row(key, label, (*shares, *counts)))
    both = share(Quadrant.BOTH, None)
    columns = (
        *(Column(quadrant.value, name, "share") for quadrant, name in QUADRANT_NAMES.items()),
        Column("jobs", "Jobs", "jobs"), Column("unmeasured", "Not measured", "jobs"),
    )  # fmt: skip
    return Figure(
        "gpu-use", "Jobs that leave compute or memory of their GPUs unused", f"Not heavy on both. {SPLIT_WORDS}",
        f"{_POPULATION}, those that were measured", "share", None if both is None else 1 - both,
        ratio(_measured(use, "jobs", agent=False), _measured(use, "jobs")), note=_coverage(use), columns=columns,
        rows=tuple(rows),
    )  # fmt: skip


def _stranded(reading: Reading, use: GpuUse) -> Figure:
    def values(agent: bool | None) -> tuple[Number | None, ...]:
        stranded, measured = _sum(use, "stranded_s", agent), _sum(use, "measured_s", agent)
        return hours(stranded), hours(measured), ratio(stranded, measured), hours(_sum(use, "held_s", agent))

    columns = (
        Column("stranded", "Stranded hours", "GPU-hours"), Column("measured", "Measured hours", "GPU-hours"),
        Column("share", "Share", "share"), Column("held", "All hours", "GPU-hours"),
    )  # fmt: skip
    whole = _sum(use, "stranded_s")
    return Figure(
        "gpu-stranded", "GPU-hours stranded", f"Allocated and needed by nothing: {STRANDED_WORDS}",
        f"{_POPULATION}, those that were measured", "GPU-hours", hours(whole) if _measured(use, "jobs") else None,
        ratio(_sum(use, "stranded_s", agent=False), whole), note=_coverage(use), columns=columns,
        rows=tuple(Row(key, label, values(agent)) for (key, label), agent in _rows(reading)),
    )  # fmt: skip


def _coverage(use: GpuUse) -> str:
    """Say how many jobs were measured, of how many memory is a peak, and what of the exports was of no use."""
    measured, jobs = _measured(use, "jobs"), _sum(use, "jobs")
    said = [f"Measured: {measured:,.0f} of {jobs:,.0f} jobs ({ratio(measured, jobs) or 0:.1%})."]
    if peaks := _sum(use, "peaks"):
        said.append(f"Of {peaks:,.0f} memory is the peak, for their source knows no mean.")
    if use.unmatched:
        said.append(f"{use.unmatched:,} of {use.readings:,} readings are of no job of the dumps.")
    if aside := use.aside.total():
        reasons = ", ".join(f"{code.replace('_', ' ')} {count:,}" for code, count in use.aside.most_common(3))
        said.append(f"Lines of the exports set aside: {aside:,} ({reasons}).")
    return " ".join(said)
