from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from security.engine.incidents import (
    CLOCKS,
    KINDS,
    OPEN_STATES,
    TRANSITIONS,
    Kind,
    Severity,
    State,
    allowed_transitions,
    dedup_key,
    find_transition,
    format_span,
    next_deadline,
)

OPENED = datetime(2026, 8, 3, 10, 4, tzinfo=UTC)


def test_every_kind_and_severity_and_state_is_covered():
    assert set(KINDS) == set(Kind)
    assert set(CLOCKS) == set(Severity)
    assert set(TRANSITIONS) == set(State)


def test_a_worse_finding_never_has_more_time():
    order = [Severity.CRITICAL, Severity.HIGH, Severity.MEDIUM, Severity.LOW]
    for step in ("triage_s", "contain_s", "resolve_s"):
        times = [getattr(CLOCKS[severity], step) for severity in order]
        assert times == sorted(times)


def test_an_incident_is_worked_in_order():
    path = [State.NEW, State.TRIAGED, State.CONTAINED, State.RESOLVED, State.REOPENED, State.TRIAGED]
    assert all(find_transition(a, b) for a, b in pairwise(path))
    assert find_transition(State.NEW, State.RESOLVED) is None
    assert find_transition(State.RESOLVED, State.NEW) is None
    assert allowed_transitions(State.NEW)[0].target is State.TRIAGED


@pytest.mark.parametrize("state", State)
def test_closing_and_reopening_need_a_reason_and_nothing_else_does(state):
    for step in allowed_transitions(state):
        assert step.needs_reason == (step.target not in OPEN_STATES or step.target is State.REOPENED)


@pytest.mark.parametrize("state", sorted(OPEN_STATES, key=lambda each: each.value))
def test_every_open_incident_can_be_a_false_alarm_or_an_accepted_risk(state):
    assert find_transition(state, State.FALSE_ALARM)
    assert find_transition(state, State.ACCEPTED)


def test_a_closed_incident_can_only_be_reopened():
    for state in set(State) - OPEN_STATES:
        assert [step.target for step in allowed_transitions(state)] == [State.REOPENED]


def test_one_key_seen_in_three_places_is_one_incident():
    def key(place, fingerprint="fp1"):
        return dedup_key(kind=Kind.EXPOSED_SECRET, cluster="aster", subject="a1", fingerprint=fingerprint, place=place)

    assert key("argv") == key("job output") == key("history")
    assert key("argv") != key("argv", "fp2")
    assert key("argv", "") != key("history", "")


@given(st.tuples(st.text(), st.text(), st.text()), st.tuples(st.text(), st.text(), st.text()))
def test_different_findings_never_share_a_key(one, two):
    keys = [dedup_key(kind=Kind.OTHER, cluster=c, subject=s, place=p) for c, s, p in (one, two)]
    assert (keys[0] == keys[1]) == (one == two)


def test_a_fingerprint_is_not_mistaken_for_a_place():
    assert dedup_key(kind=Kind.OTHER, cluster="c", subject="s", fingerprint="x") != dedup_key(
        kind=Kind.OTHER, cluster="c", subject="s", place="x"
    )


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0 s"),
        (59, "59 s"),
        (112, "1 min 52 s"),
        (60, "1 min"),
        (3900, "1 h 05 min"),
        (86400 * 7 + 1, "7 d"),
    ],
)
def test_a_span_is_written_in_its_two_largest_units(seconds, words):
    assert format_span(seconds) == words


def test_the_next_deadline_follows_the_state():
    clock = CLOCKS[Severity.HIGH]
    assert next_deadline(Severity.HIGH, State.NEW, OPENED) == OPENED + timedelta(seconds=clock.triage_s)
    assert next_deadline(Severity.HIGH, State.CONTAINED, OPENED) == OPENED + timedelta(seconds=clock.resolve_s)
    assert next_deadline(Severity.HIGH, State.ACCEPTED, OPENED) is None
