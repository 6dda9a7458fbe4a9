"""The figures that a facility accepts the whole by, those that telemetry measures: agents’ part, and how they poll."""

from typing import Final

from django.conf import settings

from telemetry.engine.cells import LEFT_OUT, enough
from telemetry.engine.medians import middle_of
from telemetry.figures import load, scheduler
from telemetry.figures.kinds import Column, Figure, Measured, Number, Row, Section, Unit
from telemetry.figures.load import JOB_WORDS, LABELS
from telemetry.figures.readings import Readings
from telemetry.figures.scheduler import BY_ACCOUNT, VOLUMES
from telemetry.models import Actor
from telemetry.selectors import Definition
from telemetry.selectors.scheduler import Asking

HIGH_VOLUME: Final = VOLUMES[-1][0]
_COLUMNS: Final = (
    Column("value", "Median for each job", Unit.RATIO), Column("low", "95 % from", Unit.RATIO),
    Column("high", "to", Unit.RATIO), Column("people", "People", Unit.PEOPLE),
)  # fmt: skip


def _labelled(readings: Readings) -> Measured:
    split = readings.shares[Definition.JOB].submissions
    columns = (
        Column("submissions", "Submissions", Unit.SUBMISSIONS, adds_up=True), Column("share", "Share", Unit.SHARE),
    )  # fmt: skip
    rows = tuple(
        Row(actor.value, LABELS[actor], (split.of(actor), split.share(actor)), {"actor": actor.value})
        for actor in Actor
    )
    share = split.share()
    return Measured(
        share, columns, rows, split.share(Actor.UNKNOWN), criterion="Measured, and published with this report",
        is_met=share is not None,
    )  # fmt: skip


def _polls(readings: Readings) -> Measured:
    limit = settings.POLLS_PER_JOB_LIMIT
    criterion = "No limit is agreed" if limit is None else f"At most {limit:g} for each job"
    if not readings.asking:
        return Measured(None, needs="the controller’s counts, which slurm_reader reads", criterion=criterion)
    high = [one for one in readings.asking if one.submissions >= HIGH_VOLUME]
    rows = tuple(
        Row(actor.value, LABELS[actor], _values([one for one in high if one.actor == actor])) for actor in Actor
    )
    value = rows[0].values[0]
    hidden = any(row.values[-1] is None for row in rows)
    return Measured(
        value, _COLUMNS, rows, note=LEFT_OUT if hidden else "", criterion=criterion,
        is_met=None if limit is None or value is None else value <= limit,
    )  # fmt: skip


def _values(people: list[Asking]) -> tuple[Number | None, ...]:
    if not enough(len(people)):
        return (None,) * len(_COLUMNS)
    middle = middle_of(one.calls / one.submissions for one in people)
    return (middle.median, middle.low, middle.high, len(people))


LIMIT = ""
FIGURES = [
    Figure(
        "acceptance-labelled", Section.ACCEPTANCE, "Submissions labelled as agents’",
        Definition.JOB.sentence, JOB_WORDS, Unit.SHARE, _labelled, query={"actor": "agent"},
        limit=load.LIMIT,
    ),
    Figure(
        "acceptance-polls", Section.ACCEPTANCE, "Scheduler queries for each job, of agent users with many jobs",
        "What a login name asked of the controller over what it submitted; the median over login names with agents "
        f"that submitted {HIGH_VOLUME:,} jobs and more in the period, with the bounds of its 95 % confidence interval. "
        f"{BY_ACCOUNT}",
        f"login names that submitted {HIGH_VOLUME:,} jobs and more, on days of which the controller’s counts were read",
        Unit.RATIO, _polls, facility_only=True, limit=scheduler.LIMIT,
    ),
]  # fmt: skip
