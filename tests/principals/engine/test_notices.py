"""When a mail goes, what goes together, and what a subject may hold."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from principals.engine.notices import Due, How, mail_time, mails_of, one_line, some_lines

ZONE = ZoneInfo("America/New_York")
NOW = datetime(2026, 11, 30, 23, 0, tzinfo=UTC)  # a Monday, 18:00 there


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (How.AT_ONCE, NOW),
        (How.OFF, None),
        (How.DAILY, datetime(2026, 12, 1, 12, tzinfo=UTC)),
        (How.WEEKLY, datetime(2026, 12, 7, 12, tzinfo=UTC)),
        (How.MONTHLY, datetime(2026, 12, 1, 12, tzinfo=UTC)),
    ],
    ids=["at-once", "off", "daily", "weekly", "monthly"],
)
def test_digests_go_at_seven_local_time(how: How, expected: datetime | None):
    assert mail_time(how, now=NOW, zone=ZONE) == expected


def test_before_seven_it_is_the_same_day():
    early = datetime(2026, 12, 1, 11, 59, tzinfo=UTC)
    assert mail_time(How.MONTHLY, now=early, zone=ZONE) == datetime(2026, 12, 1, 12, tzinfo=UTC)


def test_single_ones_have_mails_of_their_own_while_there_is_room():
    due = [Due(1, False), Due(2, False), Due(3, True), Due(4, True)]
    assert mails_of(due, room=6) == [[1], [2], [3, 4]]
    assert mails_of(due, room=2) == [[1], [2, 3, 4]]
    assert mails_of(due[:2], room=2) == [[1], [2]]
    assert mails_of(due, room=0) == []


@given(st.lists(st.booleans(), max_size=40), st.integers(-2, 8))
def test_none_is_lost_none_is_doubled_and_the_cap_holds(kinds: list[bool], room: int):
    due = [Due(number, kind) for number, kind in enumerate(kinds)]
    made = mails_of(due, room=room)
    assert len(made) <= max(0, room)
    assert all(made)
    if room > 0:
        assert sorted(one for mail in made for one in mail) == [one.id for one in due]


def test_a_subject_is_one_line_without_tricks():
    assert one_line("a\r\nBcc: x@y\u202e\x00 b\t c") == "a Bcc: x@y b c"
    assert some_lines("one\x1b[31m\n\n\n\ntwo  three") == "one[31m\n\ntwo three"
