"""Commands that few issue, or issue seldom: what destroys, fetches, extends; each in a watch of its session."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from random import Random
from typing import Final, TypeAlias

from portal.demo.paper.activity import published
from portal.demo.paper.activity.mix import Kind
from portal.demo.paper.activity.published import Deeds
from portal.demo.paper.sessions import Span
from portal.demo.plan import AGENT, HUMAN

HOUR_S: Final = 3600
_MARGIN_S: Final = 300  # so much of a watch a session must be there for
Placed: TypeAlias = dict[tuple[int, int], list[Kind]]


class Events:
    """Place events: `placed` by (the watch's first second, the session's number)."""

    def __init__(self, rng: Random, spans: Sequence[Span], watches: Sequence[int], watch_s: int) -> None:
        self._rng, self._watches = rng, watches
        self.placed: Placed = defaultdict(list)
        self._of: dict[str, dict[int, list[tuple[int, int, int]]]] = {name: {} for name in published.DRIVERS}
        for number, span in enumerate(spans):
            first = bisect_right(watches, span.start_s - watch_s + _MARGIN_S)
            behind = len(watches) if span.end_s is None else bisect_left(watches, span.end_s - _MARGIN_S)
            if behind > first:
                driver = AGENT if span.kind == AGENT else HUMAN
                self._of[driver].setdefault(span.person, []).append((number, first, behind))

    def users(self, driver: str) -> list[int]:
        """Return the people who are there in any watch, in order."""
        return sorted(self._of[driver])

    def place(self, driver: str, person: int, kind: Kind, number: int = 1) -> None:
        """Place events of a person, each in some watch of some session."""
        spans = self._of[driver][person]
        weights = [behind - first for _, first, behind in spans]
        for session, first, behind in self._rng.choices(spans, weights, k=number):
            self.placed[self._watches[self._rng.randrange(first, behind)], session].append(kind)

    def destroy(self, share: float) -> None:
        """Place a share of what Table III counts, of as many people where there are so many."""
        for trait, by_driver in published.DESTRUCTIVE.items():
            for driver, deeds in by_driver.items():
                self._deal(driver, trait, Deeds(max(1, round(deeds.number * share)), deeds.users))

    def _deal(self, driver: str, trait: str, deeds: Deeds) -> None:
        everybody = self.users(driver)
        part = deeds.users * len(everybody) / published.USERS[driver]  # of fewer people as large a part of them
        some = self._rng.sample(everybody, max(1, min(round(part), deeds.number, len(everybody))))
        weights = [self._rng.lognormvariate(0, 0.9) for _ in some]
        dealt = some + self._rng.choices(some, weights, k=deeds.number - len(some))
        category = "versions" if trait == "git_discard" else "text" if trait == "rm_force" else "other"
        for person in dealt:
            root = ("rm_root",) if trait == "rm_force" and self._rng.random() < published.REMOVES_ROOT else ()
            self.place(driver, person, (f"category:{category}", trait, *root))

    def fetch(self) -> None:
        """Let as many agent users as the paper counts fetch from each kind of place, and some of them very often."""
        agents = self.users(AGENT)
        fetching = self._rng.sample(agents, round(published.FETCHING * len(agents)))
        counts = {kind: round(share * len(agents)) for kind, share in published.FETCHES.items()}
        code = fetching[: counts["code"]]
        # Who fetches no code fetches something else.
        others = fetching[counts["code"] :]
        web = others + self._rng.sample(code, max(0, counts["web"] - len(others)))
        search = self._rng.sample(fetching, counts["search"])
        for kind, some in (("code", code), ("web", web), ("search", search)):
            for person in some:
                self._fetch(person, kind, 1 + int(self._rng.expovariate(1 / 9)))
        for person in self._rng.sample(fetching, round(published.FETCHING_MUCH * len(agents))):
            kind = "code" if person in code else "web"
            self._fetch(person, kind, published.MUCH + int(self._rng.expovariate(1 / 60)))

    def _fetch(self, person: int, kind: str, number: int) -> None:
        self.place(AGENT, person, (f"category:{published.FETCH_CATEGORY[kind]}", f"fetch:{kind}"), number)

    def extend(self) -> None:
        """Let as many agent users run extensions as the paper counts."""
        agents = self.users(AGENT)
        for person in self._rng.sample(agents, round(published.EXTENDED * len(agents))):
            kind = self._rng.choice(("mcp", "plugin"))
            self.place(AGENT, person, ("category:other", kind), self._rng.randint(1, 12))
