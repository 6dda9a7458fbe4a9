"""Sums of a scope by login name, lab, actor and harness: read once, and added up to whatever a figure asks for.

The daily rollups of a facility's month are some hundred thousand rows, so that each pass over them counts.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from typing import NamedTuple, TypeVar

from principals.models import AgentSession
from telemetry.models import Actor
from telemetry.selectors.scope import Definition, Scope
from telemetry.selectors.totals import SUMMED, SUMS, Totals

K = TypeVar("K", bound=Hashable)
_KEY = ("cluster_user", "lab", "actor", "harness")
_AGGREGATES = {f"{name}_": expression for name, expression in SUMS.items()}


class Load(NamedTuple):
    """What one login name did in one lab as one actor with one harness; `sums` in the order of `SUMMED`."""

    user: int
    lab: int
    actor: str
    harness: str
    sums: tuple[int, ...]

    def sum(self, name: str) -> int:
        """Return one of the sums."""
        return self.sums[_PLACE[name]]


_PLACE = {name: place for place, name in enumerate(SUMMED)}


class Loads:
    """The loads of a scope: one query, and two for the definition by account."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    @cached_property
    def rows(self) -> list[Load]:
        """Every load."""
        found = self._scope.users().order_by().values_list(*_KEY).annotate(**_AGGREGATES)
        return [Load(user, lab, actor, harness, tuple(sums)) for user, lab, actor, harness, *sums in found]

    def who(self, definition: Definition) -> Callable[[Load], str]:
        """Return what tells a load's actor under a definition."""
        if definition is Definition.JOB:
            return lambda load: load.actor
        agents, people = self._users_of(Actor.AGENT), self._users_of(Actor.HUMAN)

        def told(load: Load) -> str:
            if load.user in agents:
                return Actor.AGENT.value
            return Actor.HUMAN.value if load.user in people else Actor.UNKNOWN.value

        return told

    def totals(self, *, by: Callable[[Load], K]) -> dict[K, Totals]:
        """Add the loads up by a key; only keys that occur are there."""
        groups: dict[K, list[Load]] = defaultdict(list)
        for load in self.rows:
            groups[by(load)].append(load)
        return {key: _add_up(loads) for key, loads in groups.items()}

    @property
    def whole(self) -> Totals:
        """All of them added up."""
        return _add_up(self.rows) if self.rows else Totals()

    @cached_property
    def main_harnesses(self) -> dict[int, str]:
        """The harness of most of each login name's agent jobs, the first by name of equal ones."""
        submitted: dict[int, Counter[str]] = defaultdict(Counter)
        for load in self.rows:
            if load.actor == Actor.AGENT:
                submitted[load.user][load.harness] += load.sum("submissions")
        return {user: min(of, key=lambda one: (-of[one], one)) for user, of in submitted.items()}

    def _users_of(self, actor: Actor) -> set[int]:
        kind = AgentSession.Kind.AGENT if actor is Actor.AGENT else AgentSession.Kind.INTERACTIVE
        users = set(self._scope.sessions(kind).order_by().values_list("cluster_user", flat=True).distinct())
        return users | {load.user for load in self.rows if load.actor == actor}


def _add_up(loads: Iterable[Load]) -> Totals:
    loads = list(loads)
    columns = zip(*(load.sums for load in loads), strict=True)
    sums = {name: (max if name == "max_cores" else sum)(column) for name, column in zip(SUMMED, columns, strict=True)}
    ran = [load for load in loads if load.sum("ended")]
    return Totals(
        people=len({load.user for load in loads}),
        users=len({load.user for load in ran}),
        labs=len({load.lab for load in ran}),
        **sums,
    )


def totals_by_actor(
    scope: Scope, definition: Definition = Definition.JOB, *, loads: Loads | None = None
) -> dict[str, Totals]:
    """Sum a scope up by agent, human and unknown, each always there.

    Sums add up to `totals`. Under the definition `job` a person may stand under several actors.
    """
    loads = loads or Loads(scope)
    found = loads.totals(by=loads.who(definition))
    return {actor.value: found.get(actor.value, Totals()) for actor in Actor}
