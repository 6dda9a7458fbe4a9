"""From submissions to jobs: what each asks for, how long it runs and how it ends, as §IV-A and §VI-A have it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Final, NamedTuple

from portal.demo.paper import published
from portal.demo.paper.acts import Act
from portal.demo.paper.drawing import Lot, Spread
from portal.demo.paper.levels import Levels
from portal.demo.paper.population import Person
from portal.demo.paper.work import Work, Works
from portal.demo.plan import AGENT

ENDED: Final = "ended"
CANCELLED: Final = "CANCELLED"
FAILED: Final = "FAILED"
OUT_OF_MEMORY: Final = "OUT_OF_MEMORY"
TIMEOUT: Final = "TIMEOUT"
_MOST_OUT_OF_MEMORY: Final = 8  # jobs of one submission
_MOST_ON_TEST: Final = 50
_MOST_WITH_GPUS: Final = 400
_LOOP_S: Final = (900, 10_200)  # of what is submitted again after running out of memory
_BEFORE_NEXT_S: Final = 45
_LIMITS_MIN: Final = (10, 30, 60, 240, 720, 1440, 2880, 4320, 10_080)
_MEMORY_GIB: Final = (2, 4, 8, 16, 32, 64)
_LONGEST_WAIT_S: Final = 6 * 3600


@dataclass(frozen=True, slots=True)
class Batch:
    """A submission decided upon. `cut_s`: when all of it that is not over is cancelled."""

    act: Act
    work: Work
    partition: str
    cpus: int
    gpus: int
    mem_gib: int
    outcome: str
    cut_s: int | None = None
    again: str = ""  # the next act submits the same work, with the "same" memory or "more"; "" where it does not


class Run(NamedTuple):
    """How one job went, epoch seconds; `start_s` None where it never started."""

    state: str
    start_s: int | None
    end_s: int

    @property
    def elapsed_s(self) -> int:
        return self.end_s - self.start_s if self.start_s is not None else 0


class Workload:
    """Decide on acts in the order of time, and draw their jobs."""

    def __init__(self, rng: Random, people: Mapping[int, Person], jobs: int, levels: Levels) -> None:
        self._rng, self._people, self._levels = rng, people, levels
        self._works = Works(rng, jobs)
        self._outcomes = {actor: Lot(_outcomes(actor), rng) for actor in published.ACTORS}
        self._tests = {actor: _yes(published.ON_TEST[actor], rng) for actor in published.ACTORS}
        self._unchanged = {actor: _yes(published.UNCHANGED_AFTER_OOM[actor], rng) for actor in published.ACTORS}
        self._again = {
            outcome: {actor: _yes(share, rng) for actor in published.ACTORS}
            for outcome, share in (
                (OUT_OF_MEMORY, published.RESUBMITTED_AFTER_OOM), (CANCELLED, published.RESUBMITTED_AFTER_CANCEL),
            )
        }  # fmt: skip
        self._after_cancel = {actor: Spread(curve, rng) for actor, curve in published.AFTER_CANCEL.items()}
        self._run_times: dict[tuple[str, int, int], Spread] = {}
        self._waiting: dict[int, Batch] = {}

    def decide(self, act: Act) -> Batch:
        """Decide what an act submits and how it ends; the same work as before where somebody tries it again."""
        before = self._waiting.pop(act.person, None)
        batch = self._with_outcome(self._new(act) if before is None else self._repeated(before, act))
        if batch.again:
            self._waiting[act.person] = batch
        return batch

    def _repeated(self, before: Batch, act: Act) -> Batch:
        """Submit the same work again; what was tried on the test partition goes elsewhere once it is large."""
        on_test = before.partition == "test" and act.size <= _MOST_ON_TEST
        self._tests[act.actor].take(on_test, act.size)
        self._levels.take(act, before.cpus, before.gpus)
        self._works.take(before.work, act.size)
        return replace(
            before, act=act, mem_gib=before.mem_gib * (1 if before.again == "same" else 2), outcome=ENDED, again="",
            cut_s=None, partition=before.partition if on_test or before.partition != "test" else "shared",
        )  # fmt: skip

    def _new(self, act: Act) -> Batch:
        on_test = self._tests[act.actor].draw(act.size, None if act.size <= _MOST_ON_TEST else (False,))
        gpus = 0 if on_test else self._levels.gpus(act, few=act.size <= _MOST_WITH_GPUS)
        partition = "test" if on_test else "gpu" if gpus else self._rng.choice(("shared", "shared", "bigmem"))
        work = self._works.make(self._people[act.person], act.size)
        return Batch(
            act, work, partition, self._levels.cpus(act), gpus, self._rng.choice(_MEMORY_GIB), ENDED
        )  # fmt: skip

    def _with_outcome(self, batch: Batch) -> Batch:
        act, open_to = batch.act, [ENDED]
        gap = self._after_cancel[act.actor].draw_below(act.interval_s - _BEFORE_NEXT_S)
        if gap is not None:
            open_to.append(CANCELLED)
        if act.goes_on and act.size <= _MOST_OUT_OF_MEMORY and _LOOP_S[0] <= act.interval_s <= _LOOP_S[1]:
            open_to.append(OUT_OF_MEMORY)
        if act.size == 1:
            open_to.append(TIMEOUT)
        outcome = self._outcomes[act.actor].draw(act.size, open_to)
        if gap is not None and outcome != CANCELLED:
            self._after_cancel[act.actor].put_back(gap)
        cut_s = act.until_s - gap if outcome == CANCELLED and gap is not None and act.until_s is not None else None
        return replace(batch, outcome=outcome, cut_s=cut_s, again=self._answer(batch, outcome))

    def _answer(self, batch: Batch, outcome: str) -> str:
        """Say how the next act answers an outcome: with the same work and the "same" memory or "more", or "" not.

        What few jobs share is not submitted again: the next act may be of so many that it would be one person's alone.
        """
        act = batch.act
        if (
            outcome not in self._again
            or batch.work.is_rare
            or not act.goes_on
            or not self._again[outcome][act.actor].draw(act.size)
        ):
            return ""
        return "same" if outcome == CANCELLED or self._unchanged[act.actor].draw(act.size) else "more"

    def runs(self, batch: Batch) -> list[Run]:
        """Draw how each job of a submission went."""
        key = batch.act.actor, batch.gpus, 0 if batch.gpus else batch.cpus  # each size has its whole distribution
        spread = self._run_times.get(key)
        if spread is None:
            spread = self._run_times[key] = Spread(published.RUN_TIMES[batch.act.actor], self._rng)
        one = {CANCELLED: self._cancelled, OUT_OF_MEMORY: self._too_large}.get(batch.outcome, self._ended)
        return [one(batch, spread) for _ in range(batch.act.size)]

    def _wait(self) -> int:
        return min(_LONGEST_WAIT_S, int(self._rng.lognormvariate(4.2, 1.3)))

    def _ended(self, batch: Batch, spread: Spread) -> Run:
        start_s, elapsed_s = batch.act.at_s + self._wait(), spread.draw()
        if batch.outcome == TIMEOUT and elapsed_s >= 60:
            state = TIMEOUT
        else:
            state = FAILED if self._rng.random() < published.FAILED[batch.act.actor] else "COMPLETED"
        return Run(state, start_s, start_s + elapsed_s)

    def _too_large(self, batch: Batch, spread: Spread) -> Run:
        """Run out of memory before the next act, which may answer it."""
        start_s = batch.act.at_s + min(self._wait(), 120)
        most = batch.act.interval_s - 120 - _BEFORE_NEXT_S
        elapsed_s = spread.draw_below(most) or self._rng.randint(1, most)
        return Run(OUT_OF_MEMORY, start_s, start_s + elapsed_s)

    def _cancelled(self, batch: Batch, spread: Spread) -> Run:
        """End at the cut: after the run time that was drawn where the time was enough, else before any start."""
        cut_s, elapsed_s = batch.cut_s or 0, spread.draw()
        if elapsed_s < cut_s - batch.act.at_s:
            return Run(CANCELLED, cut_s - elapsed_s, cut_s)
        spread.put_back(elapsed_s)
        return Run(CANCELLED, None, cut_s)


def limit_min(batch: Batch, runs: list[Run]) -> int:
    """Return a time limit, minutes, that the runs kept, or reached."""
    longest_s = max(run.elapsed_s for run in runs)
    if any(run.state == TIMEOUT for run in runs):
        return longest_s // 60
    return next(limit for limit in _LIMITS_MIN if limit * 60 >= longest_s)


def decided(workload: Workload, acts: Iterator[Act]) -> Iterator[tuple[Batch, list[Run]]]:
    """Yield every submission with its runs, one at a time."""
    for act in acts:
        batch = workload.decide(act)
        yield batch, workload.runs(batch)


def _outcomes(actor: str) -> dict[str, float]:
    rare = {
        CANCELLED: published.CANCELLED[actor], OUT_OF_MEMORY: published.OUT_OF_MEMORY[actor],
        TIMEOUT: published.TIMED_OUT if actor == AGENT else published.TIMED_OUT / 2,
    }  # fmt: skip
    return {**rare, ENDED: 1 - sum(rare.values())}


def _yes(share: float, rng: Random) -> Lot[bool]:
    return Lot({True: share, False: 1 - share}, rng)
