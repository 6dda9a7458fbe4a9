"""What sessions and nodes did, added up over days: commands by category, queries, submissions, loops."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import BigIntegerField, Count, Q, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from principals.actors import Actor as Principal
from telemetry.engine.activity import ALL, CATEGORY, MEASURES
from telemetry.engine.commands import catalogue, traits
from telemetry.models import ActivityDay, ExperimentLoop, PollingLoop
from telemetry.selectors.scope import Period
from telemetry.selectors.totals import ratio

CATEGORIES: Final[Mapping[str, str]] = catalogue().titles
_ALIAS: Final = {measure: f"m{number}" for number, measure in enumerate(MEASURES)}


@dataclass(frozen=True, slots=True)
class Share:
    """One category of commands: how many, and their share of all."""

    slug: str
    title: str
    commands: int
    share: float | None


@dataclass(frozen=True, slots=True)
class Activity:
    """What some rows of `ActivityDay` say together. Minutes of two sessions at the same time are two."""

    minutes: int
    counts: Mapping[str, int]
    sessions: int

    @property
    def commands(self) -> int:
        return self.counts[ALL]

    @property
    def rate(self) -> float | None:
        """Commands for each minute in which a session started any; None where there is no minute."""
        return ratio(self.commands, self.minutes)

    @property
    def queries(self) -> int:
        return self.counts[traits.QUERY]

    @property
    def submissions(self) -> int:
        return self.counts[traits.SUBMISSION]

    @property
    def queries_per_submission(self) -> float | None:
        return ratio(self.queries, self.submissions)

    @property
    def categories(self) -> list[Share]:
        """Commands by category, in the order of the published measurement's Figure 3."""
        return [
            Share(slug, title, self.counts[CATEGORY + slug], ratio(self.counts[CATEGORY + slug], self.commands))
            for slug, title in CATEGORIES.items()
        ]


@dataclass(frozen=True, slots=True)
class Loops:
    """Loops that ended in a period: of the same query, and of submissions with a look or an edit in between."""

    polling: int
    polled: int  # queries in them
    experiments: int


def sums_of(measures: tuple[str, ...] = MEASURES) -> dict[str, Any]:
    """Return the aggregates of some measures, under names that `counts_of` reads."""
    return {
        _ALIAS[measure]: Sum(Cast(KeyTextTransform(measure, "counts"), BigIntegerField()), default=0)
        for measure in measures
    }


def counts_of(row: Mapping[str, Any], measures: tuple[str, ...] = MEASURES) -> dict[str, int]:
    """Return the counts by measure of a row with those aggregates."""
    return {measure: row[_ALIAS[measure]] for measure in measures}


def activity(days: QuerySet[ActivityDay]) -> Activity:
    """Add up rows of days: one query."""
    row = days.aggregate(
        minutes=Sum("minutes", default=0), sessions=Count("session", distinct=True), **sums_of()
    )  # fmt: skip
    return Activity(row["minutes"], counts_of(row), row["sessions"])


def days_of_agents(actor: Principal, period: Period, agents: Q) -> QuerySet[ActivityDay]:
    """Return the days of agents' sessions that an actor may see; `agents` is a condition on `session__agent`."""
    days: QuerySet[ActivityDay] = ActivityDay.objects.visible_to(actor)
    return days.filter(period.holds_day, agents)


def loops_of_agents(actor: Principal, period: Period, agents: Q) -> Loops:
    """Count the loops of agents' sessions that an actor may see: two queries."""
    polling = PollingLoop.objects.visible_to(actor).filter(agents, last__gte=period.starts, last__lt=period.ends)
    found = polling.aggregate(loops=Count("pk"), queries=Sum("queries", default=0))
    experiments = ExperimentLoop.objects.visible_to(actor).filter(
        agents, again__gte=period.starts, again__lt=period.ends
    )  # fmt: skip
    return Loops(found["loops"], found["queries"], experiments.count())
