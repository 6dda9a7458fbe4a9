"""Agents at gateways: stretches of requests within a session of the same person, with the jobs submitted there."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple

from portal.demo.paper.acts import Act
from portal.demo.paper.places import published
from portal.demo.paper.plan import Plan
from portal.demo.plan import AGENT

_BEFORE_S: Final = 100  # of a stretch's first submission, its first request
_AFTER_S: Final = 300
_NEAR_S: Final = 60  # who submits so near to a stretch does so within it
_EDGE_S: Final = 10
_APART_S: Final = 2 * 3600  # two stretches of a person: requests half an hour apart are one
_REQUEST_EVERY_S: Final = 600


class Visit(NamedTuple):
    """A stretch of requests of a person's agent at a gateway, from the first to the last, and what it submits."""

    person: int
    harness: str
    gateway: str
    start_s: int
    end_s: int
    acts: tuple[Act, ...]


def plan_visits(rng: Random, plan: Plan) -> list[Visit]:
    """Let some agent users visit gateways, in order of time; at each at least one job is submitted."""
    acts: dict[int, list[Act]] = defaultdict(list)
    for act in plan.acts:
        acts[act.person].append(act)
    agents = [number for number, person in sorted(plan.people.items()) if person.kind == AGENT]
    kinds = list(published.GATEWAYS)
    visits: list[Visit] = []
    for place, person in enumerate(rng.sample(agents, round(published.AT_GATEWAYS * len(agents)))):
        visits += _visits_of(rng, plan, acts[person], kinds[place % len(kinds)])
    return sorted(visits, key=lambda one: (one.start_s, one.person))


def _visits_of(rng: Random, plan: Plan, acts: Sequence[Act], gateway: str) -> list[Visit]:
    moments = [act.at_s for act in acts]
    found: list[Visit] = []
    for act in rng.sample(acts, len(acts)):
        visit = _visit(plan, acts, moments, act, gateway)
        apart = all(
            visit is None or visit.start_s > one.end_s + _APART_S or visit.end_s < one.start_s - _APART_S
            for one in found
        )
        if visit is not None and apart:
            found.append(visit)
        if len(found) == published.VISITS:
            break
    return found


def _visit(plan: Plan, acts: Sequence[Act], moments: Sequence[int], act: Act, gateway: str) -> Visit | None:
    """Return the stretch around an act, with all that is submitted meanwhile; None where it is no agent's alone."""
    start_s, end_s = act.at_s - _BEFORE_S, act.at_s + _AFTER_S
    while True:
        within = acts[bisect_left(moments, start_s - _NEAR_S) : bisect_right(moments, end_s + _NEAR_S)]
        wider = min(start_s, within[0].at_s - _BEFORE_S), max(end_s, within[-1].at_s + _AFTER_S)
        if wider == (start_s, end_s):
            break
        start_s, end_s = wider
    span = act.span
    if span is None or span.kind != AGENT or any(one.span != span for one in within):
        return None
    first_s = max(start_s, span.start_s + _EDGE_S, plan.start_s)
    last_s = min(end_s, (span.end_s or plan.end_s) - _EDGE_S, plan.end_s - 1)
    return Visit(act.person, span.harness, gateway, first_s, last_s, tuple(within))


def requests_of(visit: Visit) -> list[tuple[int, bool]]:
    """Return when a visit asks for something, and whether that submits a job: in order of time."""
    looks = {visit.start_s, visit.end_s, *range(visit.start_s, visit.end_s, _REQUEST_EVERY_S)}
    submits = {act.at_s for act in visit.acts}
    return sorted([*((at_s, False) for at_s in looks - submits), *((at_s, True) for at_s in submits)])
