"""The people of the measured cluster: who has agents, which, and how many jobs each submits."""

from dataclasses import dataclass
from random import Random
from typing import Final

from portal.demo.paper import published
from portal.demo.plan import AGENT, HUMAN, UNKNOWN
from portal.demo.sampling import exact_counts, shuffled

_LABS: Final = 190
_SIGMA: Final = 1.2  # of how much people differ: the busiest tenth submits half
_LETTERS: Final = "ghijklmnopqrstuvwxyz"  # none is a hexadecimal digit


@dataclass(frozen=True, slots=True)
class Person:
    """A login name. `kind` is the account's: agent, human, or unknown where no session is known of it.

    `tag` are letters that nobody else has; `queries_per_job` is how often they ask the scheduler.
    """

    number: int
    kind: str
    harness: str
    jobs: int
    queries_per_job: float

    @property
    def login(self) -> str:
        return f"p{self.number:04}"

    @property
    def uid(self) -> int:
        return 30_000 + self.number

    @property
    def account(self) -> str:
        return f"lab{self.number % _LABS:03}"

    @property
    def tag(self) -> str:
        rest, letters = self.number, ""
        for _ in range(3):
            rest, place = divmod(rest, len(_LETTERS))
            letters += _LETTERS[place]
        return letters


def make_people(rng: Random, jobs: int) -> list[Person]:
    """Make everybody, with `jobs` jobs in all: each at least one. Fewer jobs are of fewer people, but not as few."""
    shares, unseen = published.AGENT_SHARES, published.UNSEEN
    users = round(published.USERS * (jobs / published.JOBS) ** published.FEWER_PEOPLE)
    heads = {AGENT: round(shares.users * users), UNKNOWN: round(unseen.users * users)}
    heads[HUMAN] = users - sum(heads.values())
    submitted = {AGENT: round(shares.submissions * jobs), UNKNOWN: round(unseen.submissions * jobs)}
    submitted[HUMAN] = jobs - sum(submitted.values())
    numbers = list(range(users))
    rng.shuffle(numbers)
    people: list[Person] = []
    for kind in published.ACTORS:
        mine = [numbers.pop() for _ in range(heads[kind])]
        if kind == AGENT:
            people += _agent_users(rng, mine, submitted[kind])
        else:
            people += _group(rng, kind, "", mine, submitted[kind])
    return sorted(people, key=lambda person: person.number)


def _agent_users(rng: Random, numbers: list[int], jobs: int) -> list[Person]:
    harnesses = shuffled(rng, len(numbers), {name: one.users for name, one in published.HARNESSES.items()})
    submitted = exact_counts(jobs, {name: one.submissions for name, one in published.HARNESSES.items()})
    people: list[Person] = []
    for name, own in submitted.items():
        mine = [number for number, harness in zip(numbers, harnesses, strict=True) if harness == name]
        people += _group(rng, AGENT, name, mine, own)
    return people


def _group(rng: Random, kind: str, harness: str, numbers: list[int], jobs: int) -> list[Person]:
    weights = {number: rng.lognormvariate(0, _SIGMA) for number in numbers}
    own = {number: 1 + more for number, more in exact_counts(jobs - len(numbers), weights).items()}
    fall = published.QUERIES_FALL[kind]
    level = published.QUERIES_PER_JOB[kind] * sum(own.values()) / sum(count ** (1 - fall) for count in own.values())
    return [Person(number, kind, harness, count, level * count**-fall) for number, count in own.items()]
