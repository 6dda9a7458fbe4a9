"""A median comes with bounds that hold what they promise."""

import random

from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine.medians import Middle, middle_of


def test_few_values_have_a_median_without_bounds() -> None:
    assert middle_of([]) == Middle(0)
    assert middle_of([3.0, 1.0]) == Middle(2, 2.0)


def test_bounds_are_values_of_the_sample_around_the_median() -> None:
    assert middle_of(range(1, 101)) == Middle(100, 50.5, 40, 61)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=200))
def test_the_median_lies_between_its_bounds(values: list[float]) -> None:
    found = middle_of(values)
    assert found.median is not None
    if found.low is not None and found.high is not None:
        assert found.low <= found.median <= found.high


def test_the_interval_holds_the_true_median_in_95_of_100_samples() -> None:
    draw, held = random.Random(4), 0
    for _ in range(2000):
        found = middle_of(draw.expovariate(1.0) for _ in range(41))
        assert found.low is not None and found.high is not None
        held += found.low <= 0.693147 <= found.high
    assert 0.95 <= held / 2000 <= 0.99
