"""When people and their agents submit: chains of submissions by the clock on the wall, each of one job or an array."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from portal.demo.hours import agent_weight, human_weight, local_hour
from portal.demo.paper.drawing import Spread, mean_of
from portal.demo.paper.population import Person
from portal.demo.paper.published import LOOPS
from portal.demo.paper.sessions import Presence, Span
from portal.demo.plan import AGENT, HUMAN
from portal.demo.sampling import exact_counts

HOUR_S: Final = 3600
_SHORTEST_PAUSE_S: Final = 900
_SINGLE: Final = 0.5  # of submissions, those of one job where the others take up the rest


class Pace(NamedTuple):
    """How somebody works: acts for so many jobs (factor, power, most), how likely a chain goes on, which hours."""

    factor: float
    power: float
    most: int
    goes_on: float
    weight: Callable[[datetime], float]
    least_weight: float
    mean_gap_s: float


PACES: Final = {
    AGENT: Pace(12, 0.4, 600, 0.8, agent_weight, 0.8, mean_of(LOOPS[AGENT])),
    HUMAN: Pace(4, 0.4, 250, 0.75, human_weight, 1.2, mean_of(LOOPS[HUMAN])),
}


@dataclass(slots=True)
class Act:
    """A submission of `size` jobs. `until_s` is the same person's next act, None for the last one.

    `goes_on`: the next act is of the same chain, actor and session, so that the two make a loop.
    """

    at_s: int
    person: int
    actor: str
    span: Span | None
    size: int
    until_s: int | None
    goes_on: bool

    @property
    def harness(self) -> str:
        return self.span.harness if self.span else ""

    @property
    def interval_s(self) -> int:
        """The seconds until the next act; 0 for the last one."""
        return self.until_s - self.at_s if self.until_s is not None else 0


class Calendar:
    """The window [start, end), epoch seconds, by the facility's clock, and the gaps of loops."""

    def __init__(self, rng: Random, start_s: int, end_s: int, zone: ZoneInfo) -> None:
        self.start_s, self.end_s, self.zone = start_s, end_s, zone
        self.gaps = {actor: Spread(curve, rng) for actor, curve in LOOPS.items()}

    def plan(self, rng: Random, person: Person, presence: Presence) -> list[Act]:
        """Lay out all acts of a person, with their jobs, in order of time."""
        moments = self._moments(rng, person, presence)
        sizes = _sizes(rng, person.jobs, len(moments))
        acts: list[Act] = []
        for place, ((at_s, goes_on), size) in enumerate(zip(moments, sizes, strict=True)):
            actor, span = presence.at(at_s)
            follower = moments[place + 1][0] if place + 1 < len(moments) else None
            together = goes_on and follower is not None and presence.at(follower) == (actor, span)
            acts.append(Act(at_s, person.number, actor, span, size, follower, together))
        return acts

    def _moments(self, rng: Random, person: Person, presence: Presence) -> list[tuple[int, bool]]:
        """Draw when somebody submits, and whether the next one is of the same chain; at least once."""
        pace = PACES.get(person.kind, PACES[HUMAN])
        wanted = max(1, min(person.jobs, pace.most, round(pace.factor * person.jobs**pace.power)))
        chains = wanted * (1 - pace.goes_on)
        working = (wanted - chains) * pace.mean_gap_s
        pause_s = max(_SHORTEST_PAUSE_S, (self.end_s - self.start_s - working) / (chains + 1))
        moments: list[tuple[int, bool]] = []
        at = self._working(rng, pace, self.start_s + rng.expovariate(1 / pause_s))
        while at < self.end_s and len(moments) < person.jobs:
            at_s = presence.clear(max(int(at), moments[-1][0] + 20 if moments else 0))
            if at_s >= self.end_s:
                break
            goes_on = rng.random() < pace.goes_on
            moments.append((at_s, goes_on))
            gap: float = self.gaps[presence.at(at_s)[0]].draw() if goes_on else rng.expovariate(1 / pause_s)
            at = at_s + gap if goes_on else self._working(rng, pace, at_s + gap)
        return moments or [
            (presence.clear(self.start_s + int(rng.random() * (self.end_s - self.start_s) * 0.9)), False)
        ]

    def _working(self, rng: Random, pace: Pace, moment: float) -> float:
        """Return the moment, or one in the first hour after it in which such people work."""
        while pace.weight(local_hour(int(moment), self.zone)) / pace.least_weight < rng.random():
            moment += HOUR_S * (0.5 + rng.random())
        return moment


def _sizes(rng: Random, jobs: int, acts: int) -> list[int]:
    """Split jobs into as many sizes of one and more."""
    weights: Mapping[int, float] = {
        place: rng.lognormvariate(0, 0.8) if rng.random() > _SINGLE or not place else 0.0 for place in range(acts)
    }
    return [1 + more for more in exact_counts(jobs - acts, weights).values()]
