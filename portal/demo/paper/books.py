"""The books of the generator: what was planted, to the last job, by definitions written down here once more.

Everything is of the window [start, end), epoch seconds, but for what a job asked for when it was submitted in it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from portal.demo.hours import is_office
from portal.demo.paper import published
from portal.demo.paper.jobs import CANCELLED, OUT_OF_MEMORY, Batch, Run
from portal.demo.paper.population import Person
from portal.demo.paper.sessions import INTERACTIVE, Span
from portal.demo.paper.sums import Sums, median_of, share_of
from portal.demo.plan import AGENT, HUMAN, UNKNOWN

_HOUR_S: Final = 3600
_DAY_S: Final = 86_400


class Books:
    """Count what is planted. `day_jobs` are submissions by (UTC day, person)."""

    def __init__(self, people: Mapping[int, Person], start_s: int, end_s: int, zone: ZoneInfo) -> None:
        self._people, self._start_s, self._end_s, self._zone = people, start_s, end_s, zone
        self.day_jobs: Counter[tuple[date, int]] = Counter()
        self.calls: Counter[str] = Counter()
        self.quadrants: Counter[str] = Counter()
        self.activity: dict[str, Any] = {}
        self.places: dict[str, Any] = {}
        self._by_account: dict[str, Sums] = defaultdict(Sums)
        self._by_job: dict[str, Sums] = defaultdict(Sums)
        self._harnesses: dict[str, Sums] = defaultdict(Sums)
        self._under: dict[int, Counter[str]] = defaultdict(Counter)
        self._partitions: dict[tuple[str, str], int] = Counter()
        self._after_cancel: dict[str, Counter[int]] = defaultdict(Counter)
        self._cancelled_again: dict[str, Counter[int]] = defaultdict(Counter)
        self._out_of_memory: dict[str, Counter[str]] = defaultdict(Counter)
        self._alike: dict[tuple[str, str], tuple[Counter[int], set[int]]] = {}
        self._ages: dict[str, Counter[int]] = defaultdict(Counter)
        self._owners: dict[str, set[int]] = defaultdict(set)

    def note_sessions(self, spans: Iterable[Span]) -> None:
        """Count the sessions that were declared."""
        for span in spans:
            who = HUMAN if span.kind == INTERACTIVE else AGENT
            self._ages[who][span.age_s(self._end_s)] += 1
            self._owners[who].add(span.person)

    def note_batch(self, batch: Batch, runs: list[Run]) -> None:
        """Count a submission and the jobs of it."""
        act, person = batch.act, self._people[batch.act.person]
        sums = [self._by_account[person.kind], self._by_job[act.actor]]
        if act.actor == AGENT:
            sums.append(self._harnesses[act.harness])
            self._under[person.number][act.harness] += act.size
        local = datetime.fromtimestamp(act.at_s - act.at_s % _HOUR_S, UTC).astimezone(self._zone)
        for each in sums:
            each.note_submitted(person.number, act.size, in_office=is_office(local))
        self._partitions[act.actor, batch.partition] += act.size
        self.day_jobs[datetime.fromtimestamp(act.at_s, UTC).date(), person.number] += act.size
        self._note_outcome(batch)
        for key in batch.work.keys:
            jobs, users = self._alike.setdefault(key, (Counter(), set()))
            jobs[0] += act.size
            users.add(person.number)
        for run in runs:
            self._note_run(batch, run, sums)

    def _note_outcome(self, batch: Batch) -> None:
        act = batch.act
        if batch.outcome == CANCELLED and batch.cut_s is not None and act.until_s is not None:
            self._after_cancel[act.actor][act.until_s - batch.cut_s] += 1
            if batch.again:
                self._cancelled_again[act.actor][act.until_s - batch.cut_s] += act.size
        if batch.outcome == OUT_OF_MEMORY:
            self._out_of_memory[act.actor]["jobs"] += act.size
            self._out_of_memory[act.actor][batch.again or "never again"] += act.size

    def _note_run(self, batch: Batch, run: Run, sums: list[Sums]) -> None:
        within = self._start_s <= run.end_s < self._end_s
        wall_s = 0
        if run.start_s is not None:
            wall_s = max(0, min(run.end_s, self._end_s) - max(run.start_s, self._start_s))
        for each in sums:
            each.core_s += wall_s * batch.cpus
            each.gpu_s += wall_s * batch.gpus
            if within:
                each.note_ended(run.state == CANCELLED, run.elapsed_s if run.start_s is not None else None)

    def as_json(self) -> dict[str, Any]:
        """Return all that was planted, as it came out."""
        return {
            "period": {"first": published.FIRST.isoformat(), "last": published.LAST.isoformat()},
            "by_account": self._split(self._by_account),
            "by_job": self._split(self._by_job),
            "harnesses": {name: sums.loads(self._mainly(name)) for name, sums in self._harnesses.items()},
            "behaviour": {actor: self._behaviour(actor) for actor in published.ACTORS},
            "partitions": self._by_partition(),
            "session_age_median_days": {who: median_of(ages) / _DAY_S for who, ages in self._ages.items()},
            "sessions": {who: ages.total() for who, ages in self._ages.items()},
            "session_people": {who: len(owners) for who, owners in self._owners.items()},
            "queries_per_job": {
                kind: share_of(self.calls[kind], sums.submissions) for kind, sums in self._by_account.items()
            },
            "gpu_quadrants": {
                one: share_of(self.quadrants[one], self.quadrants.total()) for one in published.GPU_QUADRANTS
            },
            "gpu_measured_jobs": self.quadrants.total(),
            "alike": self._table(),
            "activity": self.activity,
            **self.places,
        }

    def _split(self, sums: Mapping[str, Sums]) -> dict[str, dict[str, float]]:
        """Return the loads by actor; of people, each counts once: as an agent's, else a person's, else unknown."""
        seen: set[int] = set()
        found = {}
        for actor in (AGENT, HUMAN, UNKNOWN):
            found[actor] = sums[actor].loads(len(sums[actor].people - seen))
            seen |= sums[actor].people
        return found

    def _mainly(self, harness: str) -> int:
        """Count the people most of whose agents' jobs came of a harness."""
        return sum(min(of, key=lambda name: (-of[name], name)) == harness for of in self._under.values())

    def _behaviour(self, actor: str) -> dict[str, Any]:
        sums, memory = self._by_job[actor], self._out_of_memory[actor]
        return sums.behaviour() | {
            "on_test": share_of(self._partitions[actor, "test"], sums.submissions),
            "cancellations": self._after_cancel[actor].total(),
            "after_cancel_median_s": median_of(self._after_cancel[actor]),
            "cancelled_again_within": self._within(actor),
            "out_of_memory": memory["jobs"],
            "unchanged": share_of(memory["same"], memory["same"] + memory["more"]),
        }

    def _within(self, actor: str) -> dict[str, float | None]:
        """Return the shares of cancelled jobs whose work was submitted again within so many minutes."""
        again, jobs = self._cancelled_again[actor], self._by_job[actor].cancelled
        return {
            str(minutes): share_of(sum(count for gap, count in again.items() if gap <= minutes * 60), jobs)
            for minutes in published.LOOP_MINUTES
        }

    def _by_partition(self) -> dict[str, dict[str, int]]:
        names = sorted({name for _, name in self._partitions})
        return {name: {actor: self._partitions[actor, name] for actor in published.ACTORS} for name in names}

    def _table(self) -> dict[str, int]:
        """Return the jobs that share with another person's job what a row of Table II names."""
        found: Counter[str] = Counter({row: 0 for row in (*published.ALIKE, "work_dir")})
        for (row, _), (jobs, users) in self._alike.items():
            if len(users) > 1:
                found[row] += jobs[0]
        return dict(found)
