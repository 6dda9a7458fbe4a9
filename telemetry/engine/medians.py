"""The middle of some values, and how sure it is: by order statistics, without a guess of their distribution."""

import math
from collections.abc import Iterable
from statistics import median
from typing import Final, NamedTuple

_Z: Final = 1.96  # 95 %


class Middle(NamedTuple):
    """The median of `number` values, and the bounds of its 95 % confidence interval; None where there are too few."""

    number: int
    median: float | None = None
    low: float | None = None
    high: float | None = None


def middle_of(values: Iterable[float]) -> Middle:
    """Return the median with its confidence interval: the values between whose ranks it lies in 95 of 100 samples.

    The ranks are those of the normal approximation to the binomial, rounded outwards (Conover, Practical
    Nonparametric Statistics, 3.2).
    """
    ordered = sorted(values)
    number = len(ordered)
    if not number:
        return Middle(0)
    spread = _Z * math.sqrt(number)
    first, last = math.floor((number - spread) / 2), math.ceil((number + spread) / 2) + 1
    if first < 1 or last > number:
        return Middle(number, median(ordered))
    return Middle(number, median(ordered), ordered[first - 1], ordered[last - 1])
