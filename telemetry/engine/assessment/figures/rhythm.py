"""When jobs come and how long they run (paper §III-B, Figure 4a)."""

from collections.abc import Sequence
from typing import Final

from telemetry.engine import usage
from telemetry.engine.assessment.figures.kinds import RAN, SUBMITTED, Reading, class_columns, compare, ratio, share_of
from telemetry.engine.assessment.sums import SHORT_S, UTC, WEEK_HOURS
from telemetry.engine.report_content import Figure, Row
from telemetry.engine.tallies import Tally

_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_OPENS, _CLOSES, _WORKDAYS = 8, 18, 5


def figures(reading: Reading) -> list[Figure]:
    """Return the hours of the week and the runtimes."""
    short = [_short(reading, "a minute", "within_minute"), _short(reading, "five minutes", "within_five")]
    return [_outside(reading), *short, _median(reading), _week(reading), _curve(reading)]


def histogram(tally: Tally, agent: bool | None = None) -> list[int]:
    """Return the counts of a class, or of all, by the buckets of `usage.RUNTIME_EDGES_S`."""
    counts = [0] * usage.RUNTIME_BUCKETS
    for bucket, of_agent, jobs in tally.table().iter_rows():
        if agent is None or agent is of_agent:
            counts[bucket] += jobs
    return counts


def _hours(reading: Reading, agent: bool | None = None) -> list[int]:
    counts = [0] * WEEK_HOURS
    for hour, of_agent, submissions in reading.found.sums.week.table().iter_rows():
        if agent is None or agent is of_agent:
            counts[hour] += submissions
    return counts


def _outside_share(counts: Sequence[int]) -> float | None:
    inside = sum(
        count for hour, count in enumerate(counts) if hour // 24 < _WORKDAYS and _OPENS <= hour % 24 < _CLOSES
    )  # fmt: skip
    return ratio(sum(counts) - inside, sum(counts))


def _outside(reading: Reading) -> Figure:
    zone = reading.found.sums.zone
    figure = Figure(
        "outside-working-hours", "Submissions outside working hours",
        f"Outside Monday to Friday, 08:00 to 18:00 {zone}, as a share of each one’s own.", SUBMITTED, "share",
        note="Dumps do not say the facility’s zone (--zone does): hours are UTC." if zone == UTC else "",
    )  # fmt: skip
    return compare(reading, figure, "Outside", lambda agent: _outside_share(_hours(reading, agent)), "submissions")


def _short(reading: Reading, words: str, name: str) -> Figure:
    figure = Figure(
        f"runtime-{name.replace('_', '-')}", f"Jobs that end within {words}", f"Ran at most {SHORT_S[name]} s.", RAN,
        "share",
    )  # fmt: skip
    return compare(reading, figure, f"Within {words}", share_of(reading, name, "ran"), "ran")


def _median(reading: Reading) -> Figure:
    runtimes = reading.found.sums.runtimes
    figure = Figure(
        "runtime-median", "Median run time", "Interpolated inside the bucket of the histogram that holds it.", RAN, "s"
    )
    return compare(reading, figure, "Median", lambda agent: usage.histogram_median(histogram(runtimes, agent)), "ran")


def _week(reading: Reading) -> Figure:
    counts = {agent: _hours(reading, agent) for agent in reading.classes}
    rows = tuple(
        Row(f"{hour // 24}-{hour % 24:02}", f"{_DAYS[hour // 24]} {hour % 24:02}:00",
            tuple(counts[agent][hour] for agent in reading.classes))
        for hour in range(WEEK_HOURS)
    )  # fmt: skip
    whole = _hours(reading)
    busiest = _DAYS[whole.index(max(whole)) // 24], whole.index(max(whole)) % 24
    return Figure(
        "hour-of-week", "Submissions by hour of the week",
        f"All weeks of the period laid upon one, on the clocks of {reading.found.sums.zone}. The headline is the "
        "busiest hour.", SUBMITTED, "submissions",
        max(whole), reading.unknown("submissions"), note=f"The busiest hour is {busiest[0]} {busiest[1]:02}:00.",
        columns=class_columns("submissions", reading.classes), rows=rows,
    )  # fmt: skip


def _curve(reading: Reading) -> Figure:
    runtimes = reading.found.sums.runtimes
    counts = {agent: histogram(runtimes, agent) for agent in reading.classes}
    rows = tuple(
        Row(str(edge), _length(edge), tuple(usage.share_within(counts[agent], edge) for agent in reading.classes))
        for edge in usage.RUNTIME_EDGES_S
    )
    return Figure(
        "runtime-distribution", "Run times within an hour",
        "Share of jobs that ran at most so long. The headline is the share of all within an hour.", RAN, "share",
        usage.share_within(histogram(runtimes), usage.HOUR_S), reading.unknown("ran"),
        columns=class_columns("share", reading.classes), rows=rows,
    )  # fmt: skip


def _length(seconds: int) -> str:
    """Write a length in the largest unit that it is a whole number of: 45 s, 90 s, 7 min, 36 h, 60 d."""
    for unit, size in (("d", usage.DAY_S), ("h", usage.HOUR_S), ("min", 60)):
        if seconds >= 2 * size and seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
