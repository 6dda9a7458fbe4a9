import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine import transitions
from telemetry.engine.slurm.values import ENDED_STATES, STATES

NOW_S = 1_000_000


@pytest.mark.parametrize(
    ("old", "new", "event"),
    [
        (None, "PENDING", transitions.SUBMITTED),
        (None, "RUNNING", transitions.STARTED),
        (None, "FAILED", transitions.ENDED),
        ("PENDING", "RUNNING", transitions.STARTED),
        ("PENDING", "CANCELLED", transitions.ENDED),
        ("RUNNING", "COMPLETED", transitions.ENDED),
        ("RUNNING", "COMPLETING", None),
        ("RUNNING", "PENDING", transitions.REQUEUED),
        ("RUNNING", "REQUEUED", transitions.REQUEUED),
        ("REQUEUED", "PENDING", None),
        ("REQUEUED", "RUNNING", transitions.STARTED),
        ("RUNNING", "SUSPENDED", transitions.SUSPENDED),
        ("SUSPENDED", "RUNNING", transitions.RESUMED),
        ("PENDING", "CONFIGURING", None),
        ("COMPLETED", "RUNNING", None),
        ("COMPLETED", "FAILED", None),
    ],
)
def test_a_change_of_state_has_its_name(old: str | None, new: str, event: str | None) -> None:
    assert transitions.name_transition(old, new) == event


@given(st.sampled_from(sorted(STATES)))
def test_the_same_state_is_no_news(state: str) -> None:
    assert transitions.name_transition(state, state) is None


@given(st.sampled_from(sorted(ENDED_STATES)), st.sampled_from(sorted(STATES - ENDED_STATES)))
def test_what_has_ended_is_not_brought_back_by_a_late_report(ended: str, live: str) -> None:
    assert not transitions.supersedes(ended, live)
    assert transitions.supersedes(live, ended)
    assert transitions.name_transition(ended, live) is None
    assert transitions.name_transition(live, ended) == transitions.ENDED


def test_a_requeue_is_not_an_end() -> None:
    assert transitions.name_transition("RUNNING", "REQUEUED") != transitions.ENDED
    assert transitions.supersedes("REQUEUED", "RUNNING")


def test_history_is_not_announced() -> None:
    recent = transitions.find_news("RUNNING", "FAILED", happened_s=NOW_S - 900, now_s=NOW_S)
    assert recent == transitions.Transition(transitions.ENDED, NOW_S - 900)
    assert transitions.find_news("RUNNING", "FAILED", happened_s=NOW_S - 901, now_s=NOW_S) is None
    assert transitions.find_news("RUNNING", "RUNNING", happened_s=NOW_S, now_s=NOW_S) is None


def test_the_moment_of_an_event_is_the_record_s_own() -> None:
    def at(event: str, end_s: int | None = 30) -> int:
        return transitions.moment_of(event, submit_s=10, start_s=20, end_s=end_s, seen_s=99)

    moments = [at(transitions.SUBMITTED), at(transitions.STARTED), at(transitions.ENDED)]
    assert moments == [10, 20, 30]
    assert at(transitions.ENDED, end_s=None) == 99
    assert at(transitions.SUSPENDED) == 99


@pytest.mark.parametrize(
    ("state", "code", "signal", "words"),
    [
        ("COMPLETED", 0, 0, "completed"),
        ("FAILED", 3, 0, "failed, exit code 3"),
        ("FAILED", 0, 11, "failed, ended by SIGSEGV (11)"),
        ("FAILED", 137, 0, "failed, exit code 137 (a process ended by SIGKILL)"),
        ("OUT_OF_MEMORY", 0, 125, "ran out of memory, ended by a Slurm limit"),
        ("TIMEOUT", 0, 0, "reached its time limit"),
        ("FAILED", 0, 64, "failed, ended by signal 64"),
        ("UPDATE_DB", 0, 0, "update db"),
    ],
)
def test_outcomes_are_told_in_plain_words(state: str, code: int, signal: int, words: str) -> None:
    assert transitions.describe_outcome(state, code, signal) == words
