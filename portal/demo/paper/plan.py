"""The whole plan from a seed: people, sessions and every submission of the window, before any job is drawn.

Its size depends on how many people there are, not on how many jobs: those are drawn one submission at a time.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

from portal.demo.paper import published
from portal.demo.paper.acts import Act, Calendar
from portal.demo.paper.population import Person, make_people
from portal.demo.paper.sessions import Presence, Span, plan_sessions
from portal.demo.plan import AGENT


@dataclass(frozen=True, slots=True)
class Plan:
    """Who is there, in which sessions, and all acts in order of time; the window [start, end), epoch seconds."""

    seed: int
    jobs: int
    start_s: int
    end_s: int
    zone: ZoneInfo
    people: dict[int, Person]
    spans: tuple[Span, ...]
    acts: tuple[Act, ...]

    @property
    def by_hand(self) -> float:
        """The share of agents' accounts' jobs that their owners submit, between agents' sessions."""
        own = [act for act in self.acts if self.people[act.person].kind == AGENT]
        return sum(act.size for act in own if act.actor != AGENT) / sum(act.size for act in own)


def make_plan(*, seed: int, share: float, zone: str) -> Plan:
    """Plan a share (0..1) of the measured cluster's jobs, with all its people; the same for the same arguments."""
    start, end = window()
    jobs = round(published.JOBS * share)
    people = make_people(Random(f"{seed}:people"), jobs)
    calendar = Calendar(Random(f"{seed}:calendar"), start, end, ZoneInfo(zone))
    spans: list[Span] = []
    acts: list[Act] = []
    for person in people:
        rng = Random(f"{seed}:{person.login}")
        own = plan_sessions(rng, person, start, end)
        spans += own
        acts += calendar.plan(rng, person, Presence(own))
    acts.sort(key=lambda act: (act.at_s, act.person))
    by_number = {person.number: person for person in people}
    return Plan(seed, jobs, start, end, calendar.zone, by_number, tuple(spans), tuple(acts))


def window() -> tuple[int, int]:
    """Return the window's begin and end, epoch seconds."""
    first = datetime.combine(published.FIRST, datetime.min.time(), UTC)
    behind = datetime.combine(published.LAST + timedelta(days=1), datetime.min.time(), UTC)
    return int(first.timestamp()), int(behind.timestamp())
