"""Draws whose realised shares stay near those asked for, at any size, while the next one cannot be told."""

from collections.abc import Collection, Hashable, Mapping
from math import ceil, exp, sqrt
from random import Random
from typing import Final, Generic, TypeVar

from portal.demo.sampling import Curve

T = TypeVar("T", bound=Hashable)
_STEP: Final = (sqrt(5) - 1) / 2
_TRIES: Final = 8
_MOST_SPARE: Final = 12


class Spread:
    """Whole numbers from a curve, evenly spread over it: a Kronecker sequence by the golden ratio."""

    def __init__(self, curve: Curve, rng: Random) -> None:
        self._curve, self._at = curve, rng.random()
        self._spare: list[int] = []

    def draw(self) -> int:
        """Draw a number; what was put back comes first, so that none is lost to the distribution."""
        return self._spare.pop() if self._spare else self._next()

    def draw_below(self, most: float) -> int | None:
        """Draw a number of at most `most`, and keep those that do not fit for others; None where none is found."""
        for place, value in enumerate(self._spare):
            if value <= most:
                return self._spare.pop(place)
        for _ in range(_TRIES if len(self._spare) < _MOST_SPARE else 0):
            value = self._next()
            if value <= most:
                return value
            self._spare.append(value)
        return None

    def put_back(self, value: int) -> None:
        """Give a number back for whom it fits."""
        self._spare.append(value)

    def _next(self) -> int:
        self._at = (self._at + _STEP) % 1.0
        return ceil(self._curve.at(self._at))


class Lot(Generic[T]):
    """Choices whose weights are met: each draw goes to one that is owed it, by chance among several."""

    def __init__(self, weights: Mapping[T, float], rng: Random) -> None:
        total = sum(weights.values())
        self._weights = {key: weight / total for key, weight in weights.items()}
        self._due = {key: weight * rng.random() for key, weight in self._weights.items()}
        self._rng = rng

    def draw(self, size: int = 1, among: Collection[T] | None = None) -> T:
        """Choose one for `size` things at once, of `among` where not all will do.

        One that is owed less than half of them waits, so that a large thing does not overdo a rare one.
        """
        due = self._due
        for key, weight in self._weights.items():
            due[key] += weight * size
        open_to = due if among is None else among
        owed = [key for key in open_to if due[key] >= size / 2]
        if len(owed) > 1:
            chosen = self._rng.choices(owed, [due[key] for key in owed])[0]
        else:
            chosen = owed[0] if owed else max(open_to, key=due.__getitem__)
        due[chosen] -= size
        return chosen

    def take(self, key: T, size: int) -> None:
        """Count a choice that was made elsewhere, so that the next ones make up for it."""
        self.draw(size, (key,))


def mean_of(curve: Curve, steps: int = 20_000) -> float:
    """Return the mean of a curve."""
    return sum(curve.at((step + 0.5) / steps) for step in range(steps)) / steps


def sizes_with_mean(sizes: Collection[int], mean: float) -> dict[int, float]:
    """Weigh sizes, smaller ones more, so that their mean is as asked. Errors: `ValueError` where none can be."""
    if not min(sizes) < mean < max(sizes):
        raise ValueError(f"No mix of {sorted(sizes)} has a mean of {mean:.2f}")
    low, high = -20.0, 20.0
    for _ in range(80):
        middle = (low + high) / 2
        weights = {size: exp(-middle * place) for place, size in enumerate(sorted(sizes))}
        found = sum(size * weight for size, weight in weights.items()) / sum(weights.values())
        low, high = (middle, high) if found > mean else (low, middle)
    return weights
