"""A finding goes to the incident that is right for it, whatever became of that incident."""

from datetime import UTC, datetime, timedelta

import pytest

from security.engine.incidents import OPEN_STATES, Severity, State
from security.engine.recurrence import Recurrence, is_worse, place_finding

CLOSED = datetime(2026, 7, 1, 12, tzinfo=UTC)


def place(state: State, days: float, found: Severity = Severity.HIGH, known: Severity = Severity.HIGH) -> Recurrence:
    return place_finding(state, CLOSED, CLOSED + timedelta(days=days), found=found, known=known)


@pytest.mark.parametrize("state", sorted(OPEN_STATES, key=lambda state: state.value))
def test_it_joins_an_open_incident(state: State) -> None:
    assert place_finding(state, None, CLOSED, found=Severity.LOW, known=Severity.HIGH) is Recurrence.JOIN


@pytest.mark.parametrize("state", [State.RESOLVED, State.FALSE_ALARM, State.ACCEPTED])
def test_what_happened_before_the_closing_joins(state: State) -> None:
    assert place(state, 0) is Recurrence.JOIN
    assert place(state, -3, found=Severity.CRITICAL) is Recurrence.JOIN


def test_a_cure_that_fails_reopens_and_an_old_cure_is_another_incident() -> None:
    assert place(State.RESOLVED, 0.01) is Recurrence.REOPEN
    assert place(State.RESOLVED, 30) is Recurrence.REOPEN
    assert place(State.RESOLVED, 30.01) is Recurrence.OPEN_NEW


@pytest.mark.parametrize("state", [State.FALSE_ALARM, State.ACCEPTED])
def test_a_ruling_takes_equal_findings_in_and_worse_ones_reopen(state: State) -> None:
    assert place(state, 89) is Recurrence.JOIN
    assert place(state, 1, found=Severity.CRITICAL) is Recurrence.REOPEN
    assert place(state, 1, found=Severity.LOW) is Recurrence.JOIN
    assert place(state, 91) is Recurrence.OPEN_NEW


def test_severities_are_in_order() -> None:
    assert [is_worse(severity, Severity.MEDIUM) for severity in Severity] == [False, False, True, True]
