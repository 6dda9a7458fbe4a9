"""However a series is cut, sent twice or shuffled: its sums are the same."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine.otel.reading import CUMULATIVE, DELTA, Told
from telemetry.engine.otel.sums import Parts, add_up, merge

DAY_NS = 86_400 * 10**9
Series = tuple[str, list[tuple[int, int]]]  # a key, and (instant, value) of each point


@st.composite
def series(draw: st.DrawFn) -> Series:
    """A counter that only grows, over a few days."""
    times = sorted(draw(st.sets(st.integers(1, 4 * DAY_NS - 1), min_size=1, max_size=12)))
    value, points = 0, []
    for at in times:
        value += draw(st.integers(0, 50))
        points.append((at, value))
    return draw(st.sampled_from("abc")), points


def told(key: str, at: int, value: int, *, start: int = 0) -> Told:
    return Told("s", CUMULATIVE, key, at, start, {"cost": value})


def by_day(sent: list[Told]) -> dict[int, Parts]:
    days: dict[int, Parts] = {}
    for each in sent:
        merge(days.setdefault(each.at_ns // DAY_NS, {}), each)
    return days


def sums(sent: list[Told], *, since_ns: int = 0) -> dict[int, int]:
    days = by_day(sent)
    return {
        day: add_up(
            [(CUMULATIVE, days[day])], [days[each] for each in sorted(days) if each < day], since_ns=since_ns
        ).get("cost", 0)
        for day in days
    }


@given(one=series(), data=st.data())
def test_a_cumulative_series_sums_the_same_however_it_comes(one: Series, data: st.DataObject):
    key, points = one
    sent = [told(key, at, value) for at, value in points]
    shuffled = data.draw(st.permutations(sent + data.draw(st.lists(st.sampled_from(sent), max_size=5))))
    assert sums(shuffled) == sums(sent)
    assert sum(sums(sent).values()) == points[-1][1]


@given(one=series(), data=st.data())
def test_points_lost_between_change_no_total(one: Series, data: st.DataObject):
    key, points = one
    kept = [each for each in points[:-1] if data.draw(st.booleans())] + [points[-1]]
    assert sum(sums([told(key, at, value) for at, value in kept]).values()) == points[-1][1]


@given(one=series(), data=st.data())
def test_cut_into_deltas_it_is_the_same(one: Series, data: st.DataObject):
    key, points = one
    grown = [(at, value - before) for (_, before), (at, value) in pairwise([(0, 0), *points])]
    sent = [Told("s", DELTA, f"{key}{at}", at, 0, {"cost": value}) for at, value in grown]
    days = by_day(data.draw(st.permutations(sent + sent)))
    found = {day: add_up([(DELTA, parts)]).get("cost", 0) for day, parts in days.items()}
    assert found == sums([told(key, at, value) for at, value in points])


@given(one=series())
def test_of_a_series_that_is_older_than_the_agreement_only_what_follows_counts(one: Series):
    key, points = one
    sent = [told(key, at, value, start=0) for at, value in points]
    assert sum(sums(sent, since_ns=1).values()) == points[-1][1] - points[0][1]


def test_a_restart_is_another_series():
    sent = [told("a", 10, 5, start=1), told("b", 20, 2, start=15), told("a", 12, 6, start=1)]
    assert sums(sent) == {0: 8}


def test_one_that_fell_without_saying_so_began_anew():
    assert sums([told("a", 10, 5), told("a", DAY_NS + 10, 2)]) == {0: 5, 1: 2}
