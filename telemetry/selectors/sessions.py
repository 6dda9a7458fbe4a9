"""How old the sessions of agents and people are."""

from dataclasses import dataclass
from statistics import median

from portal.core import clock
from principals.models import AgentSession
from telemetry.selectors.scope import Scope


@dataclass(frozen=True, slots=True)
class SessionAges:
    """Sessions alive in a period and their median age, at their end or at the period's."""

    sessions: int
    people: int
    median_s: float | None


def session_ages(scope: Scope) -> dict[str, SessionAges]:
    """Measure the age of each kind of session alive in the period (`agent`, `interactive`); one query.

    Behind a gateway there is no process that lives: requests of half an hour are a session, and have no age.
    """
    until = min(scope.period.ends, clock.now())
    alive = (
        AgentSession.objects.visible_to(scope.actor)
        .exclude(ended__lt=scope.period.starts)
        .exclude(place=AgentSession.Place.GATEWAY)
        .filter(cluster=scope.cluster, started__lt=until)
    )
    if scope.lab:
        alive = alive.filter(cluster_user__in=scope.rollups().values("cluster_user"))
    ages: dict[str, list[float]] = {kind.value: [] for kind in AgentSession.Kind}
    people: dict[str, set[int]] = {kind.value: set() for kind in AgentSession.Kind}
    for kind, user, started, ended in alive.values_list("kind", "cluster_user_id", "started", "ended").iterator():
        ages[kind].append((min(ended or until, until) - started).total_seconds())
        people[kind].add(user)
    return {
        kind: SessionAges(len(found), len(people[kind]), median(found) if found else None)
        for kind, found in ages.items()
    }
