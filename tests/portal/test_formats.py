"""Numbers, times and amounts read the same on every page; needs neither settings nor a database."""

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.dashboard import formats as f

NY = ZoneInfo("America/New_York")
NOW = dt.datetime(2026, 8, 3, 14, 42, 30, tzinfo=dt.UTC)  # 10:42:30 in the facility


def plain(text):
    return text.replace(f.NBSP, " ").replace(f.NNBSP, " ")


@pytest.mark.parametrize(
    ("value", "text"),
    [(3_955_570, "3,955,570"), (0, "0"), (None, "–"), (float("nan"), "–"), (3.18, "3.18"), (-14, "−14"), (7.0, "7")],
)
def test_a_count_is_written_in_full(value, text):
    assert f.count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(3_955_570, "3.96 M"), (35_700_000, "35.7 M"), (999_999_999, "1.00 G"), (309_199, "309,199"), (2.5, "2.50")],
)
def test_a_label_keeps_three_digits(value, text):
    assert plain(f.short(value)) == text


def test_a_share_has_a_narrow_no_break_space_before_its_sign():
    assert f.percent(0.558) == "55.8\u202f%"
    assert f.percent(0.6405, 0) == "64\u202f%"
    assert f.percent(None) == "–"


@pytest.mark.parametrize(("value", "text"), [(0.021, "+2.1 pt"), (-0.021, "−2.1 pt"), (0, "0.0 pt"), (None, "–")])
def test_a_difference_of_shares_is_in_points(value, text):
    assert plain(f.points(value)) == text


@pytest.mark.parametrize(("value", "text"), [(2.86, "2.9 ×"), (14.1, "14 ×"), (9.96, "10 ×"), (None, "–")])
def test_a_ratio_has_one_decimal_below_ten(value, text):
    assert plain(f.ratio(value)) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (112, "1 min 52 s"),
        (646_200, "7 d 11 h"),
        (7_560, "2 h 06 min"),
        (14_400, "4 h"),
        (0.9, "0.9 s"),
        (0, "0 s"),
        (60, "1 min"),
        (-14, "−14 s"),
        (dt.timedelta(days=1), "1 d"),
        (None, "–"),
    ],
)
def test_a_duration_takes_its_two_largest_units(seconds, text):
    assert plain(f.duration(seconds)) == text


@given(st.integers(min_value=0, max_value=10**9))
def test_a_duration_never_shows_a_unit_past_its_range(seconds):
    words = plain(f.duration(seconds)).replace(",", "").split()
    amounts = dict(zip(words[1::2], map(int, words[::2]), strict=True))
    assert len(amounts) <= 2
    assert amounts.get("s", 0) < 60 and amounts.get("min", 0) < 60 and amounts.get("h", 0) < 24


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12))
def test_a_negative_number_never_carries_a_hyphen(value):
    for text in (f.count(value), f.short(value), f.money(value), f.size(value), f.ratio(value)):
        assert "-" not in text


def test_amounts_are_written_out():
    assert plain(f.hours(5.1, "GPU")) == "5.1 GPU-hours"
    assert plain(f.hours(1, "core")) == "1 core-hour"
    assert plain(f.hours(61_400, "core")) == "61,400 core-hours"
    assert plain(f.size(88_400_000_000)) == "88.4 GB"
    assert plain(f.size(999_600)) == "1.0 MB"
    assert f.money(4812) == "$4,812" and f.money(46.8) == "$46.80" and f.money(-5) == "−$5"


def test_one_of_a_thing_is_written_as_one():
    assert [f.counted(number, "core") for number in (0, 1, 1200)] == ["0 cores", "1 core", "1,200 cores"]
    assert f.counted(1, "core-hour", f.short) == "1 core-hour"
    assert plain(f.counted(35_700_000, "core-hour", f.short)) == "35.7 M core-hours"


def test_dates_and_ranges_read_like_prose():
    first, last = dt.date(2026, 7, 7), dt.date(2026, 8, 1)
    assert plain(f.date_range(first, last)) == "7 Jul – 1 Aug"
    assert plain(f.date_range(first, first)) == "7 Jul"
    assert plain(f.date_range(dt.date(2025, 12, 30), dt.date(2026, 1, 2))) == "30 Dec 2025 – 2 Jan 2026"


@pytest.mark.parametrize(
    ("back", "form", "text"),
    [
        (dt.timedelta(seconds=1), "auto", "just now"),
        (dt.timedelta(seconds=4), "auto", "4 s ago"),
        (dt.timedelta(minutes=38), "auto", "38 min ago"),
        (-dt.timedelta(minutes=12), "auto", "in 12 min"),
        (dt.timedelta(hours=2), "auto", "08:42"),
        (dt.timedelta(days=1, hours=12), "auto", "1 Aug 22:42"),
        (dt.timedelta(days=300), "auto", "7 Oct 2025"),
        (dt.timedelta(minutes=38), "when", "today 10:04"),
        (dt.timedelta(0), "clock", "10:42"),
        (dt.timedelta(0), "second", "10:42:30"),
        (dt.timedelta(0), "date", "3 Aug 2026"),
    ],
)
def test_a_moment_is_relative_below_an_hour_then_clock_then_date(back, form, text):
    assert plain(f.moment(NOW - back, NOW, NY, form)) == text


def test_a_share_of_nothing_is_absent():
    assert f.share_of(1, 0) is None and f.share_of(None, 5) is None and f.share_of(1, 4) == 0.25


@pytest.mark.parametrize(
    ("some", "days", "text"),
    [
        (0, 0, "on no day with jobs"), (0, 1, "on no day with jobs"), (0, 30, "on no day with jobs"),
        (1, 1, "on the one day with jobs"), (1, 2, "on 1 of 2 days with jobs"), (30, 30, "on all 30 days with jobs"),
    ],
)  # fmt: skip
def test_days_are_counted_in_words_that_fit(some: int, days: int, text: str) -> None:
    assert f.on_days(some, days, "with jobs") == text
