"""The panel of activity that an agent's page and My lab share; and what it is made from, in words."""

from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Q

from portal.dashboard import formats
from principals.actors import Actor
from principals.models import Agent, Lab
from telemetry.models import BaselineStudy
from telemetry.selectors import Period
from telemetry.selectors.activity import Activity, Loops, activity, days_of_agents, loops_of_agents

DAYS: Final = 30
DEFINITION: Final = "Commands that sessions started, for each minute in which a session started any."
LIMITATION: Final = (
    "Only places with a collector are seen: what agents ask of gateways, or run where nothing watches, is not. "
    "Two sessions at once count their minutes twice."
)


@dataclass(frozen=True, slots=True)
class ActivityPanel:
    """What the panel says: the figures of some agents over the last thirty days."""

    title: str
    population: str
    found: Activity
    loops: Loops
    rows: list[dict[str, Any]]
    definition = DEFINITION
    limitation = LIMITATION

    @property
    def rate(self) -> str:
        return formats.count(self.found.rate, 2)

    @property
    def queries_note(self) -> str:
        """Say how often the scheduler is asked for each submission."""
        per = self.found.queries_per_submission
        return "no submission was seen" if per is None else f"{formats.count(per, 1)} for each submission"

    @property
    def loops_note(self) -> str:
        """Say how many of the queries came from loops."""
        return f"{formats.count(self.loops.polled)} queries in them"

    @property
    def submissions_note(self) -> str:
        """Say how many experiments went round."""
        return f"{formats.counted(self.loops.experiments, 'experiment')} went round: submitted, looked at, resubmitted"


def agent_activity(actor: Actor, agent: Agent) -> ActivityPanel | None:
    """Return the panel of one agent; None where no collector counted anything of it. Three queries."""
    return _panel(actor, Q(session__agent=agent), f"Sessions of {agent.name}")


def lab_activity(actor: Actor, lab: Lab) -> ActivityPanel | None:
    """Return the panel of a lab's registered agents together; None where nothing was counted. Three queries."""
    return _panel(actor, Q(session__agent__lab=lab), "Sessions of the lab’s registered agents, together")


def studies_of(actor: Actor) -> list[BaselineStudy]:
    """Return the studies that run on clusters where a person has a login name: they may be observed in them."""
    running = BaselineStudy.objects.visible_to(actor).running().select_related("cluster").order_by("until")
    return list(running.filter(cluster__cluster_users__user=actor.user)) if actor.user else []


def _panel(actor: Actor, agents: Q, whose: str) -> ActivityPanel | None:
    period = Period.last_days(DAYS)
    found = activity(days_of_agents(actor, period, agents))
    if not found.commands:
        return None
    population = f"{whose}, {formats.date_range(period.first, period.last)} (UTC): {_sessions(found.sessions)}."
    return ActivityPanel(_title(found), population, found, loops_of_agents(actor, period, agents), _rows(found))


def _sessions(number: int) -> str:
    return formats.counted(number, "session")


def _title(found: Activity) -> str:
    """Say the finding: the rate, and what most commands are."""
    most = max(found.categories, key=lambda each: each.commands)
    return (
        f"{formats.count(found.rate, 1)} commands a minute, {formats.percent(most.share, 0)} of them {_low(most.title)}"
    )


def _low(title: str) -> str:
    return title if title.startswith("Slurm") else title[:1].lower() + title[1:]


def _rows(found: Activity) -> list[dict[str, Any]]:
    return [
        {"title": each.title, "share": each.share, "percent": formats.percent(each.share), "commands": each.commands}
        for each in found.categories
    ]
