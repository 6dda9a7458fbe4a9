"""The books of what collectors send: counted as it is planted, by the definitions of the published measurement."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any, Final

from portal.demo.paper.activity import published
from portal.demo.paper.published import LOOP_MINUTES
from portal.demo.paper.sessions import Span
from portal.demo.paper.sums import median_of, share_of
from portal.demo.plan import AGENT, HUMAN

_FETCHES: Final = tuple(f"fetch:{kind}" for kind in published.FETCHES)
_EDITOR: Final = "tool:vim"  # Table I keeps what waits for a person out of its sum
_EXTENSIONS: Final = ("mcp", "plugin")


class ActivityBooks:
    """Count what is planted, by driver; `jobs` are what each driver submitted in the window, `spans` all sessions."""

    def __init__(self, jobs: Mapping[str, int], spans: Iterable[Span]) -> None:
        self._jobs = jobs
        self._users: dict[str, set[int]] = defaultdict(set)
        for span in spans:
            self._users[AGENT if span.kind == AGENT else HUMAN].add(span.person)
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)
        self._rare: dict[str, dict[int, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        self._sessions: dict[str, dict[int, list[int]]] = defaultdict(dict)
        self._active: dict[str, Counter[int]] = defaultdict(Counter)
        self._loops: dict[str, Counter[int]] = defaultdict(Counter)
        self._polling: dict[str, list[tuple[int, float]]] = defaultdict(list)

    def note_watch(self, driver: str, session: int, seconds: int) -> None:
        """Count the time that a session was there while its node was watched."""
        self._sessions[driver].setdefault(session, [0, 0])[0] += seconds

    def note_minute(self, driver: str, person: int, session: int, counts: Mapping[str, int]) -> None:
        """Count what a session did in a minute."""
        self._counts[driver].update(counts)
        self._sessions[driver].setdefault(session, [0, 0])[1] += counts["commands"]
        self._active[driver][counts["commands"]] += 1
        rare = {name: number for name, number in counts.items() if name in _RARE}
        if rare:
            self._rare[driver][person].update(rare)

    def note_unknown(self, commands: int) -> None:
        """Count commands that nobody is known to drive."""
        self._counts["unknown"]["commands"] += commands

    def note_loop(self, driver: str, seconds: int) -> None:
        """Count a loop from a submission to the next."""
        self._loops[driver][seconds] += 1

    def note_polling(self, driver: str, queries: int, period_s: float) -> None:
        """Count a loop of the same query."""
        self._polling[driver].append((queries, period_s))

    def as_json(self) -> dict[str, Any]:
        """Return all that was planted, as it came out."""
        return {
            "unknown_commands": self._counts["unknown"]["commands"],
            **{driver: self._of(driver) for driver in published.DRIVERS},
            "fetching": self._fetching(),
            "extended": share_of(self._having(AGENT, _EXTENSIONS), len(self._users[AGENT])),
        }

    def _of(self, driver: str) -> dict[str, Any]:
        counts, users, jobs = self._counts[driver], len(self._users[driver]), self._jobs[driver]
        there = [60 * commands / seconds for seconds, commands in self._sessions[driver].values() if seconds]
        tools = {name: number for name, number in counts.items() if name.startswith("tool:")}
        return {
            "users": users, "sessions": len(self._sessions[driver]), "commands": counts["commands"],
            "commands_a_minute": median(there) if there else 0,
            "commands_an_active_minute": median_of(self._active[driver]),
            "active_minutes": self._active[driver].total(),
            "a_user_by_category": _each(counts, "category:", users),
            "tools_for_100_jobs": _each(counts, "tool:", jobs / 100) | {
                "all": share_of(100 * (sum(tools.values()) - tools.get(_EDITOR, 0)), jobs)
            },
            "queries": counts["scheduler_query"], "submissions": counts["submission"],
            "tree_walks_a_user": share_of(counts["tree_walk"], users),
            "searches_a_user": share_of(counts["recursive_search"], users),
            "loops": self._loop(driver), "polling": self._polled(driver),
            "destructive": {
                trait: {"number": counts[trait], "users": self._having(driver, (trait,))}
                for trait in (*published.DESTRUCTIVE, "rm_root")
            },
        }  # fmt: skip

    def _loop(self, driver: str) -> dict[str, Any]:
        loops = self._loops[driver]
        within = {
            str(minutes): share_of(sum(n for s, n in loops.items() if s <= minutes * 60), loops.total())
            for minutes in LOOP_MINUTES
        }
        return {"number": loops.total(), "median_s": median_of(loops), "within": within}

    def _polled(self, driver: str) -> dict[str, float]:
        found = self._polling[driver]
        return {
            "number": len(found), "queries": sum(queries for queries, _ in found),
            "period_median_s": median(period for _, period in found) if found else 0,
        }  # fmt: skip

    def _having(self, driver: str, measures: Iterable[str]) -> int:
        wanted = tuple(measures)
        return sum(any(counts[name] for name in wanted) for counts in self._rare[driver].values())

    def _fetching(self) -> dict[str, float | None]:
        users = len(self._users[AGENT])
        much = sum(
            sum(counts[name] for name in _FETCHES) > published.MUCH for counts in self._rare[AGENT].values()
        )  # fmt: skip
        return {
            "any": share_of(self._having(AGENT, _FETCHES), users),
            **{kind: share_of(self._having(AGENT, (f"fetch:{kind}",)), users) for kind in published.FETCHES},
            "much": share_of(much, users),
        }


def _each(counts: Mapping[str, int], prefix: str, per: float) -> dict[str, float | None]:
    return {
        name.removeprefix(prefix): share_of(number, per)
        for name, number in sorted(counts.items())
        if name.startswith(prefix)
    }


_RARE: Final = frozenset((*_FETCHES, *_EXTENSIONS, *published.DESTRUCTIVE, "rm_root"))
