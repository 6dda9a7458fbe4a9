"""Figures of how much is done, and by whom (paper §III-A, Figure 2)."""

from collections.abc import Callable

from principals.engine.harnesses import harness_name
from telemetry.engine.cells import withhold
from telemetry.figures.kinds import Column, Figure, Measured, Number, Row, Section, Unit
from telemetry.figures.readings import Readings
from telemetry.models import Actor
from telemetry.selectors import MIN_PEOPLE, Definition, GroupLoads, HarnessLoad, ratio
from telemetry.selectors.totals import HOUR_S

PEOPLE_WORDS = "login names that submitted, ran or ended a job in the period"
JOB_WORDS = "jobs submitted in the period, each array task counted"
USE_WORDS = "jobs that ran in the period, by the part of their time within it"

# measure: (title, unit, population, seconds in an hour where it is one)
MEASURES: dict[str, tuple[str, Unit, str, int]] = {
    "users": ("people", Unit.PEOPLE, PEOPLE_WORDS, 1),
    "submissions": ("submissions", Unit.SUBMISSIONS, JOB_WORDS, 1),
    "core_s": ("core-hours", Unit.CORE_HOURS, USE_WORDS, HOUR_S),
    "gpu_s": ("GPU-hours", Unit.GPU_HOURS, USE_WORDS, HOUR_S),
}
LABELS = {Actor.AGENT: "Agents", Actor.HUMAN: "People", Actor.UNKNOWN: "Not attributed"}
_BY = {Definition.ACCOUNT: "by account", Definition.JOB: "by job"}
SUPPRESSED = f"Rows about fewer than {MIN_PEOPLE} people are added to the rest."
OTHER_HARNESSES = "Agents, all other harnesses"


def harness_row(slug: str) -> tuple[str, str]:
    """Return key and label of a harness's row among agents' rows; "" is of agents whose harness is not known."""
    return f"harness-{slug or 'unknown'}", f"Agents, {harness_name(slug) if slug else 'harness not known'}"


def sentence_case(words: str) -> str:
    """Begin with a capital and leave the rest, for GPU-hours stay GPU-hours."""
    return words[0].upper() + words[1:]


def amount(measure: str, raw: int) -> Number:
    """Return a sum of a measure in its unit."""
    per = MEASURES[measure][3]
    return raw / per if per > 1 else raw


def _total(measure: str) -> Callable[[Readings], Measured]:
    name = "people" if measure == "users" else measure
    return lambda readings: Measured(amount(measure, getattr(readings.totals, name)))


def _share(measure: str, definition: Definition) -> Callable[[Readings], Measured]:
    title, unit, _, _ = MEASURES[measure]
    columns = (Column("amount", sentence_case(title), unit, adds_up=True), Column("share", "Share", Unit.SHARE))

    def measured(readings: Readings) -> Measured:
        split = getattr(readings.shares[definition], measure)
        # The job list filters by a job's own attribution: it can show the rows of that definition alone.
        rows = tuple(
            Row(
                actor.value, LABELS[actor], (amount(measure, split.of(actor)), split.share(actor)),
                {"actor": actor.value} if definition is Definition.JOB else None,
            )
            for actor in Actor
        )  # fmt: skip
        return Measured(split.share(), columns, rows, unknown_share=split.share(Actor.UNKNOWN))

    return measured


def _totals() -> list[Figure]:
    return [
        Figure(
            f"total-{title}", Section.LOAD, sentence_case(title), f"All {title} of the period, whoever made them.",
            population, unit, _total(measure),
        )
        for measure, (title, unit, population, _) in MEASURES.items()
    ]  # fmt: skip


def _shares() -> list[Figure]:
    return [
        Figure(
            f"share-{title}-{definition}", Section.LOAD, f"Agents’ share of {title}, {_BY[definition]}",
            definition.sentence, population,
            Unit.SHARE, _share(measure, definition), query={"actor": "agent"} if definition is Definition.JOB else {},
        )
        for definition in (Definition.ACCOUNT, Definition.JOB)
        for measure, (title, _, population, _) in MEASURES.items()
    ]  # fmt: skip


HARNESS_COLUMNS = tuple(
    Column(measure, sentence_case(title), unit, adds_up=True) for measure, (title, unit, _, _) in MEASURES.items()
)


def _harness_row(key: str, label: str, loads: list[HarnessLoad]) -> Row:
    values = tuple(amount(measure, sum(getattr(load, measure) for load in loads)) for measure in MEASURES)
    return Row(key, label, values, {"harness": key} if key else None)


def _harnesses(readings: Readings) -> Measured:
    loads = readings.harnesses
    shown, rest = withhold(loads, limit=20, people_in=lambda some: sum(load.users for load in some))
    rows = [_harness_row(load.harness, load.name, [load]) for load in shown]
    if rest:
        rows.append(_harness_row("", "All others", rest))
    total = sum(load.submissions for load in loads)
    leading = ratio(shown[0].submissions, total) if shown else None
    return Measured(leading, HARNESS_COLUMNS, tuple(rows), note=SUPPRESSED if rest else "")


GROUP_COLUMNS = (
    Column("agent_submissions", "Agents’ submissions", Unit.SUBMISSIONS, adds_up=True),
    Column("submissions", "All submissions", Unit.SUBMISSIONS, adds_up=True),
    Column("share", "Agents’ share", Unit.SHARE),
    Column("unknown_share", "Not attributed", Unit.SHARE),
    Column("agent_core_hours", "Agents’ core-hours", Unit.CORE_HOURS, adds_up=True),
    Column("agent_gpu_hours", "Agents’ GPU-hours", Unit.GPU_HOURS, adds_up=True),
    Column("agent_cancelled", "Agents’ jobs cancelled", Unit.SHARE),
)


def group_rows(loads: GroupLoads, filter_name: str) -> tuple[Row, ...]:
    """Return the rows of `GROUP_COLUMNS`; the job list shows those of one lab or partition."""
    return tuple(
        Row(
            load.key, load.title,
            (load.agent.submissions, load.total.submissions, load.share, load.unknown_share, load.agent.core_hours,
             load.agent.gpu_hours, load.agent.cancelled_share),
            {filter_name: load.key} if load.key else None,
        )
        for load in loads.all_rows
    )  # fmt: skip


def _labs(readings: Readings) -> Measured:
    loads = readings.labs
    agents = readings.by_actor[Actor.AGENT].submissions
    leading = ratio(loads.rows[0].agent.submissions, agents) if loads.rows else None
    return Measured(leading, GROUP_COLUMNS, group_rows(loads, "lab"), note=SUPPRESSED if loads.withheld else "")


DAY_COLUMNS = tuple(
    Column(f"{actor}_{measure}", f"{label}, {MEASURES[measure][0]}", MEASURES[measure][1], adds_up=True)
    for measure in ("submissions", "core_s", "gpu_s")
    for actor, label in LABELS.items()
)


def _days(readings: Readings) -> Measured:
    rows = []
    for load in readings.days:
        values = tuple(
            amount(measure, getattr(load, measure).of(actor))
            for measure in ("submissions", "core_s", "gpu_s")
            for actor in LABELS
        )
        day = load.day.isoformat()
        rows.append(Row(day, day, values, {"from": day, "to": day}))
    split = readings.shares[Definition.JOB].submissions
    return Measured(split.share(), DAY_COLUMNS, tuple(rows), unknown_share=split.share(Actor.UNKNOWN))


LIMIT = (
    "Agents and people share accounts: attribution is inferred, and a job that no evidence covers is not attributed."
)
FIGURES = [
    *_totals(),
    *_shares(),
    Figure(
        "harnesses", Section.LOAD, "Agents’ load by harness",
        "Jobs attributed to an agent, by its harness. A person with several counts under the one with most "
        "submissions. The headline is the leading harness’s share of agents’ submissions.",
        "jobs attributed to agents", Unit.SHARE, _harnesses, query={"actor": "agent"},
    ),
    Figure(
        "labs", Section.LOAD, "Labs with most agent submissions",
        "Jobs attributed to an agent, by the lab that is charged. The headline is the first lab’s share of agents’ "
        "submissions.",
        JOB_WORDS, Unit.SHARE, _labs, query={"actor": "agent"},
    ),
    Figure(
        "daily", Section.LOAD, "Load by day",
        f"{Definition.JOB.sentence} Days are UTC days. The headline is agents’ share of submissions.",
        JOB_WORDS, Unit.SHARE, _days,
    ),
]  # fmt: skip
