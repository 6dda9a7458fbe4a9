"""The bodies that collectors send, one a watch and login node, as `POST /api/v1/ingest/activity` takes them.

Collectors watch the nodes for as large a part of the window as there are jobs for each person, some hours at a time:
then commands, sessions and jobs keep the paper's ratios at any share. At the end they tell of what was not told yet.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Any, Final
from uuid import UUID

from portal.demo.paper.activity import published
from portal.demo.paper.activity.books import ActivityBooks
from portal.demo.paper.activity.events import HOUR_S, Events
from portal.demo.paper.activity.mix import SUBMISSION, Kind, mixes
from portal.demo.paper.acts import Act
from portal.demo.paper.plan import Plan
from portal.demo.paper.published import FEWER_PEOPLE, JOBS
from portal.demo.paper.sessions import HOSTS, Span
from portal.demo.paper.writing import time_text
from portal.demo.plan import AGENT, HUMAN

STUDY: Final = "baseline-2026"
_MINUTE_S: Final = 60
_FIRST_PID: Final = 20_000
_WATCHES: Final = 5  # at least so many
_LONGEST_WATCH_H: Final = 8
_MOST_MINUTES: Final = 2000  # of a body, about: so it stays below a megabyte


class Bodies:
    """Yield the bodies in order of time, and keep the books of them."""

    def __init__(self, plan: Plan, cluster: str) -> None:
        self._plan, self._cluster = plan, cluster
        self._rng = Random(f"{plan.seed}:activity")
        share = plan.jobs / JOBS
        hours = (plan.end_s - plan.start_s) // HOUR_S * share ** (1 - FEWER_PEOPLE)
        self.watch_s = HOUR_S * max(1, min(_LONGEST_WATCH_H, round(hours / _WATCHES)))
        all_watches = range(plan.start_s, plan.end_s - self.watch_s + 1, self.watch_s)
        watched = min(len(all_watches), round(hours * HOUR_S / self.watch_s))
        self.watches = sorted(self._rng.sample(all_watches, watched))
        self._told: dict[int, int | None] = {}
        self._rates = [self._rate(span) for span in plan.spans]
        self._events = Events(self._rng, plan.spans, self.watches, self.watch_s)
        self._events.destroy(share)
        self._events.fetch()
        self._events.extend()
        jobs = {who: sum(act.size for act in plan.acts if act.actor == who) for who in published.DRIVERS}
        self.books = ActivityBooks(jobs, plan.spans)
        self._mixes = mixes(
            commands=self._expected(), jobs=jobs, users={who: len(self._events.users(who)) for who in published.DRIVERS}
        )
        self._acts = self._by_watch(plan.acts, lambda act: act.at_s)
        loops = [act for act in plan.acts if act.goes_on and act.until_s is not None]
        # A loop counts when it closes, so that long ones are as likely to be seen as short ones.
        self._closing = self._by_watch(loops, lambda act: act.until_s or 0)
        self._run = {host: UUID(int=self._rng.getrandbits(128), version=4) for host in _hosts()}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield every body; times as the contract has them."""
        for watch in self.watches:
            there: dict[str, list[int]] = defaultdict(list)
            for number, span in enumerate(self._plan.spans):
                if span.start_s < watch + self.watch_s and (span.end_s is None or span.end_s > watch):
                    there[span.host].append(number)
            for host in _hosts():
                yield from self._watch(host, watch, there[host])
        for host in _hosts():
            yield self._last(host)

    def _watch(self, host: str, watch: int, numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Yield what a node's sessions did in a watch, in as many bodies as it takes."""
        body = self._body(host, watch, watch + self.watch_s)
        for number in numbers:
            if len(body["minutes"]) > _MOST_MINUTES:
                yield body
                body = self._body(host, watch, watch + self.watch_s)
            self._session(body, number, watch)
        commands = self._rng.randrange(2 * published.UNKNOWN_AN_HOUR * self.watch_s // HOUR_S)
        if commands:
            self.books.note_unknown(commands)
            counts = {"commands": commands, "category:other": commands}
            body["minutes"].append(
                {"session": "", "driver": "unknown", "minute": _zulu(watch + 30 * _MINUTE_S), "counts": counts}
            )
        body["health"]["events"] = 3 * sum(row["counts"]["commands"] for row in body["minutes"])
        yield body

    def _session(self, body: dict[str, Any], number: int, watch: int) -> None:
        """Write what a session did in a watch."""
        span = self._plan.spans[number]
        driver = AGENT if span.kind == AGENT else HUMAN
        first, behind = self._whole_minutes(span, watch)
        until_s = watch + self.watch_s
        self.books.note_watch(driver, number, min(span.end_s or until_s, until_s) - max(span.start_s, watch))
        minutes = self._minutes(driver, number, watch, first, behind)
        for act in self._acts.get((watch, span), ()):
            minutes[(act.at_s - watch) // _MINUTE_S].append(SUBMISSION)
            body["submissions"].append({"session": id_of(number, span), "at": _zulu(act.at_s)})
        for minute, kinds in sorted(minutes.items()):
            counts = Counter(name for kind in kinds for name in kind) + Counter(commands=len(kinds))
            self.books.note_minute(driver, span.person, number, counts)
            at = _zulu(watch + minute * _MINUTE_S)
            body["minutes"].append(
                {"session": id_of(number, span), "driver": driver, "minute": at, "counts": dict(counts)}
            )
        self._loops(body, driver, number, watch)
        last = min(until_s, watch + _MINUTE_S * max(minutes, default=first))
        body["sessions"].append(self._described(number, max(last, span.start_s), until_s))

    def _minutes(self, driver: str, number: int, watch: int, first: int, behind: int) -> dict[int, list[Kind]]:
        """Draw the commands of a session's watch by its minutes."""
        rng, found = self._rng, defaultdict[int, list[Kind]](list)
        commands = int(self._rates[number] * (behind - first) + rng.random())
        kinds = self._mixes[driver].draw(rng, commands) + self._events.placed.get((watch, number), [])
        active = min(behind - first, -(-len(kinds) // published.AT_ONCE[driver]))
        places = rng.sample(range(first, behind), active)
        for place, kind in enumerate(kinds):
            found[places[place % active]].append(kind)
        return found

    def _loops(self, body: dict[str, Any], driver: str, number: int, watch: int) -> None:
        span, rng = self._plan.spans[number], self._rng
        for act in self._closing.get((watch, span), ()):
            self.books.note_loop(driver, act.interval_s)
            submitted, again = _zulu(act.at_s), _zulu(act.at_s + act.interval_s)
            body["loops"].append({"session": id_of(number, span), "submitted": submitted, "again": again})
        begun, behind = (watch + _MINUTE_S * minute for minute in self._whole_minutes(span, watch))
        if rng.random() < published.POLLING_AN_HOUR[driver] * (behind - begun) / HOUR_S:
            period_s = round(rng.uniform(*published.POLLING_PERIOD_S[driver]), 1)
            queries = max(2, int(min(HOUR_S, behind - begun) * rng.uniform(0.1, 0.9) / period_s))
            self.books.note_polling(driver, queries, period_s)
            last = begun + int(period_s * (queries - 1))
            body["polling"].append(
                {"session": id_of(number, span), "first": _zulu(begun), "last": _zulu(last), "queries": queries,
                 "period_s": period_s}
            )  # fmt: skip

    def _last(self, host: str) -> dict[str, Any]:
        """Tell, as the window ends, of a host's sessions that nobody told of or that ended since."""
        end_s = self._plan.end_s
        body = self._body(host, end_s, end_s)
        for number, span in enumerate(self._plan.spans):
            if span.host == host and (number not in self._told or self._told[number] != span.end_s):
                body["sessions"].append(self._described(number, min(end_s, span.end_s or end_s), end_s))
        return body

    def _described(self, number: int, last_s: int, until_s: int) -> dict[str, Any]:
        span = self._plan.spans[number]
        self._told[number] = span.end_s if span.end_s is not None and span.end_s <= until_s else None
        over = span.end_s is not None and span.end_s <= until_s
        return {
            "id": id_of(number, span), "kind": span.kind, "harness": span.harness,
            "user": self._plan.people[span.person].login, "start": _zulu(span.start_s), "last": _zulu(last_s),
            "end": _zulu(span.end_s) if over and span.end_s is not None else None,
        }  # fmt: skip

    def _body(self, host: str, start_s: int, end_s: int) -> dict[str, Any]:
        health = {
            "events": 0, "lost": 0, "argv_missed": 0, "vanished": 0, "sampled_share": 1.0,
            "cpu_s": round(self._rng.uniform(2, 40), 1), "memory_bytes": self._rng.randrange(25, 50) * 2**20,
            "processes": self._rng.randrange(200, 900),
        }  # fmt: skip
        return {
            "cluster": self._cluster, "host": host, "boot": f"boot-{host}", "run": str(self._run[host]),
            "batch": str(UUID(int=self._rng.getrandbits(128), version=4)), "collector": "0.1.0", "mode": "events",
            "study": STUDY, "from": _zulu(start_s), "to": _zulu(end_s), "sessions": [], "minutes": [],
            "submissions": [], "polling": [], "loops": [], "health": health,
        }  # fmt: skip

    def _rate(self, span: Span) -> float:
        driver = AGENT if span.kind == AGENT else HUMAN
        return published.COMMANDS_A_MINUTE[driver] * self._rng.lognormvariate(0, published.RATE_SIGMA)

    def _expected(self) -> dict[str, float]:
        """Return about how many commands each driver will issue in the watches."""
        commands = dict.fromkeys(published.DRIVERS, 0.0)
        part = len(self.watches) * self.watch_s / (self._plan.end_s - self._plan.start_s)
        for rate, span in zip(self._rates, self._plan.spans, strict=True):
            there = min(span.end_s or self._plan.end_s, self._plan.end_s) - max(span.start_s, self._plan.start_s)
            commands[AGENT if span.kind == AGENT else HUMAN] += rate * max(0, there) / _MINUTE_S * part
        return commands

    def _by_watch(self, acts: Iterable[Act], when: Callable[[Act], int]) -> dict[tuple[int, Span], list[Act]]:
        """Return acts that come within a watch, by it and their session."""
        found: dict[tuple[int, Span], list[Act]] = defaultdict(list)
        watches, start_s = set(self.watches), self._plan.start_s
        for act in acts:
            watch = when(act) - (when(act) - start_s) % self.watch_s
            if act.span is not None and watch in watches:
                found[watch, act.span].append(act)
        return found

    def _whole_minutes(self, span: Span, watch: int) -> tuple[int, int]:
        """Return the first minute of a watch that a session is there for whole, and the one behind the last."""
        begun, minutes = max(0, -(-(span.start_s - watch) // _MINUTE_S)), self.watch_s // _MINUTE_S
        return begun, minutes if span.end_s is None else min(minutes, (span.end_s - watch) // _MINUTE_S)


def _hosts() -> list[str]:
    return [f"login{number}" for number in range(1, HOSTS + 1)]


def id_of(number: int, span: Span) -> str:
    """Name a session by its root's process id and start in ticks; a boot counts them from zero, here from 1970."""
    return f"{_FIRST_PID + number}-{span.start_s * 100}"


def _zulu(moment_s: int) -> str:
    return f"{time_text(moment_s)}Z"
