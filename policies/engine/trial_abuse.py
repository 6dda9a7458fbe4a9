"""Which trials look like production computation that is cut into trials (paper §IV-B): for a person to look at.

Two signs, of accounting alone. A job that is larger than what was granted. And a chain: trials one after another that
use up their time, as computation does that saves its state and goes on in the next one. Signs, no proof: long loops of
compiling and testing look like it, so nothing follows from them by itself.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

GRACE_S: Final = 120  # Slurm ends a job within a minute of its limit, and gives it thirty seconds more
FULL: Final = 0.9  # of the time that was granted
PAUSE_S: Final = 300  # between the end of one and the start of the next
CHAIN: Final = 3  # trials


@dataclass(frozen=True, slots=True)
class TrialRun:
    """A trial whose job ended: what was granted, and what the job was. Times are seconds since 1970."""

    person: int
    work: tuple[object, ...]  # what tells one job from another: lab, job name, folder
    start_s: int
    end_s: int
    limit_s: int
    gpus: int
    nodes: int
    granted_s: int
    granted_gpus: int
    granted_nodes: int

    @property
    def is_larger(self) -> bool:
        """Whether its job asked for more, or ran longer, than what was granted."""
        longest = max(self.limit_s, self.end_s - self.start_s - GRACE_S)
        return longest > self.granted_s or self.gpus > self.granted_gpus or self.nodes > self.granted_nodes

    @property
    def is_full(self) -> bool:
        """Whether it used up its time."""
        return self.end_s - self.start_s >= FULL * self.granted_s


@dataclass(frozen=True, slots=True)
class Abuse:
    """Trials that show a sign, by their places among those that were given."""

    larger: frozenset[int]
    chained: frozenset[int]

    @property
    def any(self) -> frozenset[int]:
        return self.larger | self.chained


def find_abuse(runs: Sequence[TrialRun]) -> Abuse:
    """Return which of some trials show a sign of abuse."""
    by_work: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, run in enumerate(runs):
        by_work[(run.person, *run.work)].append(place)
    chained = {place for places in by_work.values() for place in _chained(runs, places)}
    return Abuse(frozenset(place for place, run in enumerate(runs) if run.is_larger), frozenset(chained))


def _chained(runs: Sequence[TrialRun], places: Iterable[int]) -> set[int]:
    """Return the members of chains among trials of the same work."""
    ordered = sorted((place for place in places if runs[place].is_full), key=lambda place: runs[place].start_s)
    found: set[int] = set()
    chain = ordered[:1]
    for before, place in pairwise(ordered):
        follows = 0 <= runs[place].start_s - runs[before].end_s <= PAUSE_S
        chain = [*chain, place] if follows else [place]
        if len(chain) >= CHAIN:
            found.update(chain)
    return found
