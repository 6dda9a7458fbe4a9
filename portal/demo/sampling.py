"""Drawing with exact shares: what is drawn differs by seed, how often each kind comes does not."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from math import exp, log
from random import Random
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")


class Curve(NamedTuple):
    """A cumulative distribution of seconds through given points (seconds, share), straight in log time between."""

    points: tuple[tuple[float, float], ...]

    def at(self, share: float) -> float:
        """Return the seconds below which `share` (0..1) of all lie."""
        i = max(1, min(bisect_left([y for _, y in self.points], share), len(self.points) - 1))
        (x0, y0), (x1, y1) = self.points[i - 1], self.points[i]
        return exp(log(x0) + (log(x1) - log(x0)) * (share - y0) / (y1 - y0))


# Run times of jobs that started (paper, §IV-A: 32.7 % and 9.3 % within a minute, medians 193 s and 278 s, 55.9 % and
# 53.9 % within five minutes); the tails beyond are ours.
AGENT_RUNTIME: Final = Curve(
    ((1, 0), (60, 0.327), (193, 0.5), (300, 0.559), (1800, 0.74), (7200, 0.86), (28_800, 0.95), (86_400, 0.995),
     (172_800, 1))
)  # fmt: skip
HUMAN_RUNTIME: Final = Curve(
    ((2, 0), (60, 0.093), (278, 0.5), (300, 0.539), (1800, 0.73), (7200, 0.85), (28_800, 0.94), (86_400, 0.985),
     (259_200, 1))
)  # fmt: skip
# From one submission of a loop to the next (paper, §III-B: medians 16.3 and 30.1 min, shares within 10, 30, 60 and
# 180 min).
AGENT_GAP: Final = Curve(
    ((20, 0), (600, 0.375), (978, 0.5), (1800, 0.654), (3600, 0.788), (10_800, 0.913), (28_800, 1))
)  # fmt: skip
HUMAN_GAP: Final = Curve(
    ((60, 0), (600, 0.247), (1800, 0.498), (1806, 0.5), (3600, 0.664), (10_800, 0.888), (28_800, 1))
)  # fmt: skip
WAIT: Final = Curve(((1, 0), (20, 0.15), (300, 0.34), (1100, 0.5), (3600, 0.75), (14_400, 0.94), (86_400, 1)))
TRIAL_WAIT: Final = Curve(((1, 0), (30, 0.25), (112, 0.5), (240, 0.85), (900, 1)))


def exact_counts(total: int, weights: Mapping[T, float]) -> dict[T, int]:
    """Split `total` by weights into whole numbers that sum to it (largest remainder)."""
    scale = total / sum(weights.values())
    counts = {key: int(weight * scale) for key, weight in weights.items()}
    by_rest = sorted(weights, key=lambda key: counts[key] - weights[key] * scale)
    for key in by_rest[: total - sum(counts.values())]:
        counts[key] += 1
    return counts


def shuffled(rng: Random, total: int, weights: Mapping[T, float]) -> list[T]:
    """Return `total` draws whose shares are the weights exactly, in random order."""
    drawn = [key for key, count in exact_counts(total, weights).items() for _ in range(count)]
    rng.shuffle(drawn)
    return drawn


def blocks(rng: Random, sizes: Sequence[int]) -> list[list[float]]:
    """Deal the quantiles of [0, 1) to groups of the given sizes, each group a run of neighbours.

    Together the groups hold every stratum once, so that a marginal distribution is met; within a group values are
    alike, as the tasks of one array are.
    """
    total = sum(sizes)
    # Large arrays keep out of the tail: a hundred tasks of a day each would fill a small machine.
    keys = [rng.random() * (0.8 if size > 12 else 1.0) for size in sizes]
    order = sorted(range(len(sizes)), key=keys.__getitem__)
    dealt: list[list[float]] = [[] for _ in sizes]
    taken = 0
    for group in order:
        dealt[group] = [(taken + i + rng.random()) / total for i in range(sizes[group])]
        rng.shuffle(dealt[group])
        taken += sizes[group]
    return dealt
