"""What the frame asks the apps: how many wait behind the rail's entries, how old the data is, whose labs."""

from collections.abc import Iterable
from typing import Final

from django.core.cache import cache

from policies import selectors as policy_selectors
from portal.core import clock
from portal.dashboard import shell
from portal.dashboard.formats import duration
from portal.dashboard.shell import Count, LastHeard
from principals import selectors
from principals.models import Agent, AgentApproval, Appeal, Cluster, KillSwitch, Lab, LabMembership, User
from principals.permissions import MANAGING_ROLES, actor_for_user
from security import figures as security_figures
from telemetry.selectors.sources import Source, SourceState, sources

DEMO_KEPT_S: Final = 60
MOST_LOOKED_AT: Final = 500
_DEMO_KEY: Final = "shell-demo"


def incidents(user: User) -> Count:
    """Count the open incidents this person may see; due where one is past its time."""
    waiting, late = security_figures.waiting(actor_for_user(user))
    return Count(waiting, due=late > 0)


def agents_to_approve(user: User) -> int:
    """Count the agents that wait for staff; nobody else approves for the facility."""
    if not user.is_research_computing:
        return 0
    asked = Agent.objects.filter(status=Agent.Status.REQUESTED).prefetch_related("approvals")[:MOST_LOOKED_AT]
    staff = str(AgentApproval.Kind.STAFF)
    return sum(
        staff in selectors.approvals_needed(agent) - {one.kind for one in agent.approvals.all()} for agent in asked
    )


def kill_switches_waiting(user: User) -> Count | None:
    """Count the requests to stop agents that wait for this person's yes or no: each is urgent."""
    if not (user.is_research_computing or user.is_infosec):
        return None
    waiting = KillSwitch.objects.waiting().exclude(asked_by=user).count()
    return Count(waiting, due=True) if waiting else None


def appeals_waiting(user: User) -> Count | None:
    """Count the appeals that wait for staff or InfoSec; due where one is past its time."""
    if not (user.is_research_computing or user.is_infosec):
        return None
    due = list(Appeal.objects.waiting().values_list("due", flat=True)[:MOST_LOOKED_AT])
    return Count(len(due), due=due[0] <= clock.now()) if due else None


def agents_of_own_labs(user: User) -> int:
    """Count the agents that wait for this person as PI or lab manager."""
    managed = LabMembership.objects.filter(user=user, role__in=MANAGING_ROLES).values("lab")
    asked = Agent.objects.filter(status=Agent.Status.REQUESTED, lab__in=managed)
    return asked.exclude(approvals__kind=AgentApproval.Kind.LAB).count()


def last_heard() -> LastHeard | None:
    """Say when a source was last heard, or which one is late. How old its records are is another matter."""
    heard = [source for source in sources() if source.age_s is not None]
    if not heard:
        return None
    behind = [source for source in heard if source.state in (SourceState.LATE, SourceState.DOWN)]
    if behind:
        worst = max(behind, key=lambda source: (source.state is SourceState.DOWN, source.age_s or 0))
        return LastHeard(_behind(worst), str(worst.state))
    newest = min(source.age_s or 0 for source in heard)
    current = "all sources current" if len(heard) > 1 else "the one source is current"
    return LastHeard(f"Last heard {duration(newest)} ago", more=current)


def _behind(source: Source) -> str:
    name = f"{source.name[:1].upper()}{source.name[1:]}"
    return f"{name} {source.state.value}, last heard {duration(source.age_s)} ago"


def labs(user: User) -> Iterable[Lab]:
    """Return the labs of a person, those they manage first."""
    places = LabMembership.objects.filter(user=user).select_related("lab").order_by("lab__title")
    return [place.lab for place in sorted(places, key=lambda place: place.role not in MANAGING_ROLES)]


def is_demo() -> bool:
    """Say whether any cluster holds invented rows; remembered for a minute."""
    known = cache.get(_DEMO_KEY)
    if known is None:
        known = Cluster.objects.filter(is_demo=True).exists()
        cache.set(_DEMO_KEY, known, DEMO_KEPT_S)
    return bool(known)


def register() -> None:
    """Let the frame ask."""
    shell.register_count("incidents", incidents)
    shell.register_count("own-incidents", incidents)
    shell.register_count("agents", agents_to_approve)
    shell.register_count("kill-switches", kill_switches_waiting)
    shell.register_count("appeals", appeals_waiting)
    shell.register_count("trials", policy_selectors.labs_out_of_budget)
    shell.register_count("extensions", policy_selectors.extensions_waiting)
    shell.register_count("approvals", agents_of_own_labs)
    shell.register_last_heard(last_heard)
    shell.register_labs(labs)
    shell.register_demo(is_demo)
