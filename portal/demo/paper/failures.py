"""How what fails does: in a way that earlier failures of the same person had, or in another one (§VI-A)."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise
from math import log
from random import Random
from typing import Any, Final

from portal.demo.paper import published
from portal.demo.paper.drawing import Lot, Spread
from portal.demo.paper.jobs import FAILED, OUT_OF_MEMORY, Batch, Run
from portal.demo.paper.sums import median_of, share_of

_FIRST: Final = {FAILED: "1:0", OUT_OF_MEMORY: "0:125"}  # exit code and signal, as sacct prints them
_DAY_S: Final = 86_400
_CODES: Final = 255


def failed(runs: Iterable[Run]) -> list[Run]:
    """Return the runs that failed; those of one submission all do in the same state."""
    return [run for run in runs if run.state in _FIRST]


class Failures:
    """Choose exit codes so that the published share of people fail twice the same way, and so long after each other."""

    def __init__(self, rng: Random) -> None:
        self._seen: dict[str, set[int]] = defaultdict(set)
        self._repeat: dict[str, set[int]] = defaultdict(set)
        self._new = {actor: Lot({True: 1, False: 1}, rng) for actor in published.ACTORS}
        self._long = {actor: Lot({True: 1, False: 1}, rng) for actor in published.ACTORS}
        self._gaps = Spread(published.BETWEEN_FAILURES, rng)
        self._last: dict[tuple[int, str, str, str], dict[str, int]] = defaultdict(dict)

    def exit_of(self, batch: Batch, runs: list[Run]) -> str:
        """Return exit code and signal of what failed of a submission, "" where nothing did."""
        lost = failed(runs)
        if not lost:
            return ""
        act, state, at_s = batch.act, lost[0].state, min(run.end_s for run in lost)
        if not batch.work.pattern:
            return _FIRST[state]
        self._seen[act.actor].add(act.person)
        last = self._last[act.person, act.actor, batch.work.pattern, state]
        found = self._again(act.actor, act.person, last, at_s)
        number = len(last)
        code = found or (f"{1 + number % _CODES}:{number // _CODES}" if number else _FIRST[state])
        last[code] = max(at_s, last.get(code, 0))
        return code

    def _again(self, actor: str, person: int, last: dict[str, int], at_s: int) -> str:
        """Return the way of an earlier failure about as far back as is due, "" where it is to be a new one."""
        before = {code: at_s - then for code, then in last.items() if then < at_s}
        repeat = self._repeat[actor]
        may_begin = len(repeat) < published.FAIL_AGAIN[actor] * len(self._seen[actor])
        if not before or (self._new[actor].draw() if person in repeat else not may_begin):
            return ""
        repeat.add(person)
        half = self._long[actor].draw(among={gap > published.BETWEEN_FAILURES_S for gap in before.values()})
        due_s = self._gaps.draw()
        some = [code for code, gap in before.items() if (gap > published.BETWEEN_FAILURES_S) == half]
        return min(some, key=lambda code: abs(log(before[code] / due_s)))


class FailureBooks:
    """Count failures by who, in which way and in which submission, of what ended in the window [start, end)."""

    def __init__(self, start_s: int, end_s: int) -> None:
        self._start_s, self._end_s = start_s, end_s
        self._ends: dict[str, dict[tuple[int, str, str, str], list[tuple[int, int]]]] = defaultdict(dict)
        self._jobs: dict[str, Counter[bool]] = defaultdict(Counter)
        self._untold: dict[str, set[int]] = defaultdict(set)

    def note(self, batch: Batch, runs: list[Run], code: str) -> None:
        """Count a submission, whose failures ended with a code."""
        lost = [run for run in failed(runs) if self._start_s <= run.end_s < self._end_s]
        if not lost:
            return
        act, pattern = batch.act, batch.work.pattern
        self._jobs[act.actor][not pattern] += len(lost)
        if pattern:
            ways = self._ends[act.actor].setdefault((act.person, pattern, lost[0].state, code), [])
            ways.append((min(run.end_s for run in lost), act.at_s))
        else:
            self._untold[act.actor].add(act.person)

    def as_json(self) -> dict[str, Any]:
        """Return what was planted, by actor."""
        return {actor: self._of(actor) for actor in published.ACTORS}

    def _of(self, actor: str) -> dict[str, Any]:
        ways = self._ends[actor]
        people = {person for person, *_ in ways}
        repeated = {key[0] for key, ends in ways.items() if len(ends) > 1}
        gaps, later, other_day = Counter[int](), 0, 0
        for ends in map(sorted, ways.values()):
            for (before_s, _), (end_s, at_s) in pairwise(ends):
                gaps[end_s - before_s] += 1
                later += at_s > ends[0][0]
                other_day += end_s // _DAY_S != before_s // _DAY_S
        jobs = self._jobs[actor]
        return {
            "people": len(people), "repeated": len(repeated), "share": share_of(len(repeated), len(people)),
            "again": gaps.total(), "later": share_of(later, gaps.total()),
            "other_day": share_of(other_day, gaps.total()), "median_s": median_of(gaps),
            "untold": share_of(jobs[True], jobs.total()), "untold_people": len(self._untold[actor]),
        }  # fmt: skip
