"""Codes of devices, and what a question is answered with (RFC 8628)."""

from datetime import UTC, datetime, timedelta

import pytest

from principals.engine.device import LETTERS, Answer, Asked, Standing, answer_to, make_user_code, read_user_code

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def test_a_code_comes_back_however_it_is_typed():
    code = make_user_code()
    letters = code.replace("-", "")
    assert set(letters) <= set(LETTERS) and len(letters) == 8
    for typed in (code, code.lower(), letters, f" {letters[:2]} {letters[2:]} ", code.replace("-", ".")):
        assert read_user_code(typed) == code


@pytest.mark.parametrize("typed", ["", "BCDF", "BCDF-GHJKL", "BCDF-GHJA", "1234-5678", "BCDF-GHJ\u212a"], ids=ascii)
def test_what_is_no_code_is_none(typed):
    assert read_user_code(typed) is None


@pytest.mark.parametrize(
    ("standing", "left_s", "since_s", "answer"),
    [
        (Standing.WAITING, 60, None, Answer.PENDING), (Standing.WAITING, 60, 5, Answer.PENDING),
        (Standing.WAITING, 60, 4, Answer.SLOW_DOWN), (Standing.APPROVED, 60, 4, Answer.TOKEN),
        (Standing.REFUSED, 60, 4, Answer.DENIED), (Standing.WAITING, 0, None, Answer.EXPIRED),
        (Standing.APPROVED, 0, None, Answer.EXPIRED), (Standing.USED, 60, None, Answer.USED),
        (Standing.USED, 0, None, Answer.USED),
    ],
)  # fmt: skip
def test_what_a_question_is_answered_with(standing, left_s, since_s, answer):
    last = None if since_s is None else NOW - timedelta(seconds=since_s)
    assert answer_to(Asked(standing, NOW + timedelta(seconds=left_s), last, 5), NOW) is answer
