"""Figures of how agents' jobs differ from people's (paper §III-B, §IV-A, Figures 4a and 5b)."""

from collections.abc import Callable

from telemetry.engine import usage
from telemetry.engine.cells import enough
from telemetry.figures.kinds import Column, Figure, Measured, Number, Row, Section, Unit
from telemetry.figures.load import GROUP_COLUMNS, JOB_WORDS, LABELS, SUPPRESSED, group_rows
from telemetry.figures.readings import Readings
from telemetry.models import Actor
from telemetry.selectors import MIN_PEOPLE, Runtimes, SessionAges, Totals, over_representation, ratio

DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
ENDED_WORDS = "jobs that ended in the period, whether or not they had started"
RAN_WORDS = "jobs that ended in the period after having started"
HIDDEN = f"Sessions of fewer than {MIN_PEOPLE} people are left out."
BY_JOB = "Agents’ and people’s by the job’s own attribution."

Pair = tuple[Number | None, int]


def compare(
    readings: Readings, title: str, unit: Unit, of: Callable[[str], Pair], query: dict[str, str] | None = None
) -> Measured:
    """Put one number of agents, people and the rest side by side, each with the number of jobs it is of."""
    found = {actor: of(actor.value) for actor in Actor}
    total = sum(jobs for _, jobs in found.values())
    rows = tuple(
        Row(actor.value, LABELS[actor], found[actor], {"actor": actor.value} | (query or {})) for actor in Actor
    )
    columns = (Column("value", title, unit), Column("jobs", "Jobs", Unit.JOBS, adds_up=True))
    return Measured(found[Actor.AGENT][0], columns, rows, unknown_share=ratio(found[Actor.UNKNOWN][1], total))


def _outside(readings: Readings) -> Measured:
    week = readings.week
    found = compare(
        readings, "Outside working hours", Unit.SHARE, lambda actor: (week.outside_share(actor), week.total(actor))
    )
    return Measured(found.value, found.columns, found.rows, found.unknown_share, note=f"Times in {week.zone}.")


def _week(readings: Readings) -> Measured:
    week = readings.week
    columns = tuple(Column(actor, label, Unit.SUBMISSIONS, adds_up=True) for actor, label in LABELS.items())
    rows = tuple(
        Row(f"{day}-{hour:02}", f"{DAY_NAMES[day]} {hour:02}:00", tuple(week.counts[a][day][hour] for a in LABELS))
        for day in range(7)
        for hour in range(24)
    )
    total = sum(week.total(actor) for actor in LABELS)
    unknown = ratio(week.total(Actor.UNKNOWN), total)
    return Measured(week.outside_share(Actor.AGENT), columns, rows, unknown, note=f"Times in {week.zone}.")


def _runtime(title: str, unit: Unit, of: Callable[[Runtimes], Number | None],
             query: dict[str, str] | None = None) -> Callable[[Readings], Measured]:  # fmt: skip
    def measured(readings: Readings) -> Measured:
        found = readings.runtimes
        return compare(readings, title, unit, lambda actor: (of(found[actor]), found[actor].jobs), query)

    return measured


def words_of(edge_s: int) -> str:
    """Write a bound of run times in the largest unit that holds it whole: 90 s, 2 min, 36 h, 60 d."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if edge_s and edge_s % size == 0:
            return f"{edge_s // size} {unit}"
    return f"{edge_s} s"


def _curve(readings: Readings) -> Measured:
    found = readings.runtimes
    curves = {actor: dict(found[actor].cumulative()) for actor in LABELS}
    columns = tuple(Column(actor, label, Unit.SHARE) for actor, label in LABELS.items())
    rows = tuple(
        Row(str(edge), words_of(edge), tuple(curves[actor].get(edge) for actor in LABELS), {"max_elapsed_s": str(edge)})
        for edge in usage.RUNTIME_EDGES_S
    )
    total = sum(found[actor].jobs for actor in LABELS)
    unknown = ratio(found[Actor.UNKNOWN].jobs, total)
    return Measured(found[Actor.AGENT].share_within(60), columns, rows, unknown)


def _outcome(title: str, unit: Unit, of: Callable[[Totals], Pair],
             query: dict[str, str] | None = None) -> Callable[[Readings], Measured]:  # fmt: skip
    return lambda readings: compare(readings, title, unit, lambda actor: of(readings.by_actor[actor]), query)


def _partitions(readings: Readings) -> Measured:
    loads, agents = readings.partitions, readings.by_actor[Actor.AGENT]
    factors = [over_representation(load, readings.totals, agents) for load in loads.all_rows]
    rows = tuple(
        Row(row.key, row.label, (*row.values, factor), row.query)
        for row, factor in zip(group_rows(loads, "partition"), factors, strict=True)
    )
    columns = (*GROUP_COLUMNS, Column("over_representation", "Over-represented", Unit.RATIO))
    known = [factor for load, factor in zip(loads.rows, factors, strict=False) if factor is not None]
    return Measured(max(known, default=None), columns, rows, note=SUPPRESSED if loads.withheld else "")


def _ages(readings: Readings) -> Measured:
    words = {"agent": "Agent sessions", "interactive": "Interactive shells"}
    columns = (
        Column("median", "Median age", Unit.SECONDS),
        Column("sessions", "Sessions", Unit.SESSIONS, adds_up=True),
        Column("people", "People", Unit.PEOPLE),
    )
    # These come from process telemetry, not from accounting: a kind that few people have is left out whole.
    found = {kind: ages if enough(ages.people) else SessionAges(0, 0, None) for kind, ages in readings.ages.items()}
    rows = tuple(
        Row(kind, label, (found[kind].median_s, found[kind].sessions, found[kind].people))
        for kind, label in words.items()
    )
    hidden = found != readings.ages
    return Measured(found["agent"].median_s, columns, rows, note=HIDDEN if hidden else "")


LIMIT = "Agent users and others are different people: not every difference is caused by agents."
FIGURES = [
    Figure(
        "outside-working-hours", Section.RHYTHM, "Submissions outside working hours",
        "Submissions outside Monday to Friday, 08:00 to 18:00, in the facility’s zone, as a share of each one’s own. "
        f"{BY_JOB}",
        JOB_WORDS, Unit.SHARE, _outside, facility_only=True,
    ),
    Figure(
        "hour-of-week", Section.RHYTHM, "Submissions by hour of the week",
        f"Counted under the local hour that the UTC hour of submission begins in. {BY_JOB} The headline is agents’ "
        "share outside working hours.",
        JOB_WORDS, Unit.SHARE, _week, facility_only=True,
    ),
    Figure(
        "runtime-one-minute", Section.RHYTHM, "Jobs that end within a minute", f"Ran at most 60 s. {BY_JOB}",
        RAN_WORDS, Unit.SHARE,
        _runtime("Within a minute", Unit.SHARE, lambda r: r.share_within(60), {"max_elapsed_s": "60"}),
        query={"max_elapsed_s": "60"},
    ),
    Figure(
        "runtime-five-minutes", Section.RHYTHM, "Jobs that end within five minutes", f"Ran at most 300 s. {BY_JOB}",
        RAN_WORDS, Unit.SHARE,
        _runtime("Within five minutes", Unit.SHARE, lambda r: r.share_within(300), {"max_elapsed_s": "300"}),
        query={"max_elapsed_s": "300"},
    ),
    Figure(
        "runtime-median", Section.RHYTHM, "Median run time",
        f"Interpolated inside the bucket of the runtime histogram that holds it. {BY_JOB}",
        RAN_WORDS, Unit.SECONDS, _runtime("Median", Unit.SECONDS, lambda r: r.median_s),
    ),
    Figure(
        "runtime-distribution", Section.RHYTHM, "Run times",
        f"Share of jobs that ran at most so long. {BY_JOB} The headline is agents’ share within a minute.",
        RAN_WORDS, Unit.SHARE, _curve,
    ),
    Figure(
        "cancelled", Section.SCHEDULING, "Jobs cancelled",
        f"Ended as CANCELLED, queued or running, as a share of all that ended. {BY_JOB}",
        ENDED_WORDS, Unit.SHARE,
        _outcome("Cancelled", Unit.SHARE, lambda t: (t.cancelled_share, t.over), {"state": "CANCELLED"}),
        query={"state": "CANCELLED"},
    ),
    Figure(
        "failed", Section.SCHEDULING, "Jobs failed",
        f"Ended as failed, out of memory, by node or boot failure or past a deadline; time limits are apart. {BY_JOB}",
        ENDED_WORDS, Unit.SHARE, _outcome("Failed", Unit.SHARE, lambda t: (t.failed_share, t.over)),
    ),
    Figure(
        "timed-out", Section.SCHEDULING, "Jobs that reached their time limit", f"Ended as TIMEOUT. {BY_JOB}",
        ENDED_WORDS, Unit.SHARE,
        _outcome("Timed out", Unit.SHARE, lambda t: (ratio(t.ended_timeout, t.over), t.over), {"state": "TIMEOUT"}),
        query={"state": "TIMEOUT"},
    ),
    Figure(
        "core-time-lost", Section.SCHEDULING, "Core time of jobs that came to nothing",
        f"Core time of jobs that failed, timed out or were cancelled, as a share of that of all jobs ended. {BY_JOB}",
        RAN_WORDS, Unit.SHARE, _outcome("Lost", Unit.SHARE, lambda t: (t.lost_share, t.ended)),
    ),
    Figure(
        "mean-wait", Section.SCHEDULING, "Mean wait", f"Start minus submit. {BY_JOB}",
        RAN_WORDS, Unit.SECONDS, _outcome("Mean wait", Unit.SECONDS, lambda t: (t.mean_wait_s, t.waits)),
    ),
    Figure(
        "partitions", Section.SCHEDULING, "Where agents are over-represented",
        "Agents’ share of a partition’s submissions over their share of all submissions. The headline is the largest.",
        JOB_WORDS, Unit.RATIO, _partitions,
    ),
    Figure(
        "session-age", Section.STORAGE, "Median age of sessions",
        "From a session’s start to its end, or to the end of the period while it goes on.",
        "declared sessions alive in the period", Unit.SECONDS, _ages,
    ),
]  # fmt: skip
