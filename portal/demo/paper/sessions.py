"""Sessions of agents and shells of people over the window, and who is at work when.

Each row of a person's sessions is laid from the window's end back to its begin. So every age, of a session that goes on
as of one that ended, is a draw from the same distribution.
"""

from bisect import bisect_right
from collections.abc import Iterable
from random import Random
from typing import Final, NamedTuple

from portal.demo.paper import published
from portal.demo.paper.population import Person
from portal.demo.plan import AGENT, HUMAN, UNKNOWN

DAY_S: Final = 86_400
EDGE_S: Final = 120  # nobody submits so near to the begin or end of a session: clocks differ
HOSTS: Final = 12
INTERACTIVE: Final = "interactive"
_GOES_ON: Final = 0.8  # of last sessions, those that go on when the window ends
_LONGEST_BREAK_S: Final = 5 * DAY_S


class Span(NamedTuple):
    """A session; `end_s` None where it goes on behind the window."""

    person: int
    kind: str
    harness: str
    host: str
    start_s: int
    end_s: int | None

    def age_s(self, until_s: int) -> int:
        """Return its age at its end, or at `until_s`."""
        return (until_s if self.end_s is None else min(self.end_s, until_s)) - self.start_s


def plan_sessions(rng: Random, person: Person, start_s: int, end_s: int) -> list[Span]:
    """Lay out a person's sessions that touch the window: agents' first, each kind in order of time."""
    spans: list[Span] = []
    if person.kind == AGENT:
        spans += _row(rng, person, AGENT, start_s, end_s)
    if person.kind != UNKNOWN:
        spans += _row(rng, person, INTERACTIVE, start_s, end_s)
    return spans


def _row(rng: Random, person: Person, kind: str, start_s: int, end_s: int) -> list[Span]:
    who = AGENT if kind == AGENT else HUMAN
    others = [name for name in published.HARNESSES if name != person.harness]
    other = rng.choice(others) if rng.random() < published.SECOND_HARNESS else person.harness
    spans: list[Span] = []
    end = end_s if rng.random() < _GOES_ON else end_s - _break(rng, who)
    while end > start_s:
        begin = end - max(600, round(DAY_S * _days(rng, who)))
        harness = "" if kind == INTERACTIVE else other if rng.random() < 0.3 else person.harness
        host = f"login{1 + rng.randrange(HOSTS)}"
        spans.append(Span(person.number, kind, harness, host, begin, None if end == end_s else end))
        end = begin - _break(rng, who)
    return spans[::-1]


def _days(rng: Random, who: str) -> float:
    return published.SESSION_DAYS[who] * rng.lognormvariate(0, published.SESSION_SIGMA[who])


def _break(rng: Random, who: str) -> int:
    return min(_LONGEST_BREAK_S, 3 * EDGE_S + round(DAY_S * rng.expovariate(1 / published.BETWEEN_DAYS[who])))


class Presence:
    """Who is at work under a login name at a moment: its agent, else its owner, else nobody known."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._rows = {kind: [one for one in spans if one.kind == kind] for kind in (AGENT, INTERACTIVE)}
        self._starts = {kind: [one.start_s for one in row] for kind, row in self._rows.items()}
        self._edges = sorted(
            edge for row in self._rows.values() for one in row for edge in (one.start_s, one.end_s) if edge is not None
        )

    def at(self, moment_s: int) -> tuple[str, Span | None]:
        """Return the actor and the session it works in."""
        for kind, row in self._rows.items():
            place = bisect_right(self._starts[kind], moment_s) - 1
            if place >= 0 and (row[place].end_s is None or moment_s < (row[place].end_s or 0)):
                return (AGENT if kind == AGENT else HUMAN), row[place]
        return UNKNOWN, None

    def clear(self, moment_s: int) -> int:
        """Return the moment, or the next one that is not too near to an edge."""
        place = bisect_right(self._edges, moment_s - EDGE_S)
        while place < len(self._edges) and self._edges[place] - EDGE_S <= moment_s:
            moment_s = self._edges[place] + EDGE_S
            place += 1
        return moment_s
