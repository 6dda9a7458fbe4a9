"""Figures of what jobs use of their GPUs and what they leave idle (paper, §IV-B, Figure 4b)."""

from collections.abc import Callable

from telemetry.engine.gpu_use import FITS_WITHIN, SPLIT_WORDS, STRANDED_WORDS, UNUSED_PERCENT, Quadrant
from telemetry.figures.kinds import Column, Figure, Measured, Row, Section, Unit
from telemetry.figures.load import LABELS, SUPPRESSED
from telemetry.figures.readings import Readings
from telemetry.models import Actor, JobGpuUse
from telemetry.selectors import GpuGroups, GpuSum, ratio

POPULATION = "jobs with GPUs that ended in the period after having started, those that somebody measured"
UNMEASURED = "unmeasured"
_QUADRANTS = {one.value: str(one.label) for one in JobGpuUse.Quadrant}
_FITS = {one.value: str(one.label) for one in JobGpuUse.Fit}
_SHARES = tuple(Column(key, label, Unit.SHARE) for key, label in _QUADRANTS.items())


def coverage(whole: GpuSum) -> str:
    """Say how many of the jobs were measured, and of how many memory is a peak."""
    said = f"Measured: {whole.measured_jobs:,} of {whole.jobs:,} jobs."
    if whole.peaks:
        said += f" Of {whole.peaks:,} memory is the peak, for their source knows no mean."
    return said


def _quadrants(readings: Readings) -> Measured:
    split = readings.gpus
    whole = split.of()
    columns = (
        Column("share", "Share", Unit.SHARE), Column("jobs", "Jobs", Unit.JOBS, adds_up=True),
        *(Column(actor, label, Unit.JOBS, adds_up=True) for actor, label in LABELS.items()),
    )  # fmt: skip

    def counts(quadrant: str) -> tuple[int, ...]:
        return tuple(split.of(actor=actor, quadrant=quadrant).jobs for actor in ("", *LABELS))

    rows = [Row(key, label, (split.share(key), *counts(key)), {"gpu_use": key}) for key, label in _QUADRANTS.items()]
    rows.append(Row(UNMEASURED, "Not measured", (None, *counts("")), {"gpu_use": UNMEASURED}))
    unknown = ratio(split.of(actor=Actor.UNKNOWN).measured_jobs, whole.measured_jobs)
    return Measured(split.partly_unused_share, columns, tuple(rows), unknown, coverage(whole))


def _by_actor(readings: Readings) -> Measured:
    split = readings.gpus
    columns = (
        *_SHARES, Column("jobs", "Jobs", Unit.JOBS, adds_up=True),
        Column(UNMEASURED, "Not measured", Unit.JOBS, adds_up=True),
    )  # fmt: skip
    rows = []
    for actor, label in LABELS.items():
        own = split.of(actor=actor)
        shares = tuple(split.share(quadrant, actor) for quadrant in _QUADRANTS)
        rows.append(Row(actor, label, (*shares, own.measured_jobs, own.unmeasured_jobs), {"actor": actor}))
    unknown = ratio(split.of(actor=Actor.UNKNOWN).measured_jobs, split.of().measured_jobs)
    both = split.share(Quadrant.BOTH, Actor.AGENT)
    return Measured(None if both is None else 1 - both, columns, tuple(rows), unknown, coverage(split.of()))


_HOURS = (
    Column("stranded", "Stranded hours", Unit.GPU_HOURS, adds_up=True),
    Column("measured", "Measured hours", Unit.GPU_HOURS, adds_up=True),
    Column("share", "Share", Unit.SHARE),
)


def _hours(sums: GpuSum) -> tuple[float | None, ...]:
    return sums.stranded_hours, sums.measured_hours, sums.stranded_share


def _stranded(readings: Readings) -> Measured:
    split = readings.gpus
    whole = split.of()
    rows = tuple(Row(actor, label, _hours(split.of(actor=actor)), {"actor": actor}) for actor, label in LABELS.items())
    unknown = ratio(split.of(actor=Actor.UNKNOWN).stranded_s, whole.stranded_s)
    return Measured(whole.stranded_hours if whole.measured_jobs else None, _HOURS, rows, unknown, coverage(whole))


def _groups(filter_name: str, of: Callable[[Readings], GpuGroups]) -> Callable[[Readings], Measured]:
    def measured(readings: Readings) -> Measured:
        groups = of(readings)
        columns = (
            *_HOURS, Column("held", "All hours", Unit.GPU_HOURS, adds_up=True),
            Column("jobs", "Jobs", Unit.JOBS, adds_up=True),
        )  # fmt: skip
        rows = tuple(
            Row(
                row.key, row.title, (*_hours(row.sums), row.sums.held_hours, row.sums.measured_jobs),
                {filter_name: row.key} if row.key else None,
            )
            for row in groups.rows
        )  # fmt: skip
        whole = sum((row.sums for row in groups.rows), GpuSum())
        named = [row for row in groups.rows if row.key]
        leading = ratio(named[0].sums.stranded_s, whole.stranded_s) if named else None
        return Measured(leading, columns, rows, note=SUPPRESSED if groups.withheld else "")

    return measured


def _fits(readings: Readings) -> Measured:
    fits = readings.gpu_fits
    columns = Column("jobs", "Jobs", Unit.JOBS, adds_up=True), _HOURS[0], _HOURS[2]
    rows = tuple(
        Row(
            key, label,
            (fits[key].jobs, fits[key].stranded_hours, fits[key].stranded_share),
            {"gpu_fit": key},
        )
        for key, label in _FITS.items()
    )  # fmt: skip
    measured = sum((fits[key].jobs for key in _FITS), 0)
    less = measured - fits["whole"].jobs - fits["unknown"].jobs
    return Measured(ratio(less, measured), columns, rows)


_MEASURED = {"gpu_use": "measured"}
LIMIT = "Of measured jobs alone; a mean over a job hides its phases."
FIGURES = [
    Figure(
        "gpu-utilisation", Section.GPUS, "Jobs that leave compute or memory of their GPUs unused",
        f"Not heavy on both. {SPLIT_WORDS}",
        POPULATION, Unit.SHARE, _quadrants, query=_MEASURED,
    ),
    Figure(
        "gpu-utilisation-by-actor", Section.GPUS, "Agents’ jobs that leave compute or memory of their GPUs unused",
        f"Heavy on compute and memory, on one, or on neither, as a share of each one’s own. {SPLIT_WORDS}",
        POPULATION, Unit.SHARE, _by_actor, query=_MEASURED,
    ),
    Figure(
        "gpu-stranded", Section.GPUS, "GPU-hours stranded",
        f"Allocated and needed by nothing: {STRANDED_WORDS}",
        POPULATION, Unit.GPU_HOURS, _stranded, query=_MEASURED,
    ),
    Figure(
        "gpu-would-fit", Section.GPUS, "Jobs that less would have done for",
        "The least that holds a job’s peak memory and mean compute within "
        f"{100 * FITS_WITHIN:.0f} % of what it has: fewer GPUs (some stayed below {UNUSED_PERCENT:.0f} % of both), a "
        "MIG slice, a smaller GPU of the same vendor, or half of the GPU shared. Compute is scaled by dense FP16 "
        "throughput.",
        POPULATION, Unit.SHARE, _fits, query=_MEASURED,
    ),
    Figure(
        "gpu-stranded-partitions", Section.GPUS, "Where GPU-hours are stranded, by partition",
        f"{STRANDED_WORDS} The headline is the first partition’s share of all.",
        POPULATION, Unit.SHARE, _groups("partition", lambda readings: readings.gpu_partitions), query=_MEASURED,
    ),
    Figure(
        "gpu-stranded-labs", Section.GPUS, "Where GPU-hours are stranded, by lab",
        f"{STRANDED_WORDS} The headline is the first lab’s share of all.",
        POPULATION, Unit.SHARE, _groups("lab", lambda readings: readings.gpu_labs), query=_MEASURED,
    ),
]  # fmt: skip
