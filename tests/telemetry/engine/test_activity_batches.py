"""What a portal takes of a collector agrees with what a collector counts."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine.activity import measures_of
from telemetry.engine.activity_batches import (
    REMEDIES,
    Batch,
    Health,
    MinutePart,
    Place,
    SessionPart,
    find_minute_fault,
    find_session_fault,
    is_session_id,
)
from telemetry.engine.commands import classify

NOW = datetime(2026, 7, 8, 12, 10, tzinfo=UTC)
BATCH = Batch(
    host="login1", boot="b", run="r", batch="1", collector="0.1.0", mode="events", study="",
    since=NOW - timedelta(minutes=10), until=NOW, health=Health(0, 0, 0, 0, 1.0, 0.0, 0, 0),
)  # fmt: skip
LINES = (
    ["ls", "-R", "/scratch"], ["squeue", "-u", "ada"], ["sbatch", "a.sh"], ["grep", "-r", "x", "."], ["vim", "a"],
    ["git", "reset", "--hard"], ["rm", "-rf", "/"], ["curl", "https://github.com/a/b"], ["bash", "-c", "cat a | wc -l"],
    ["env", "A=1", "python3", "x.py"], ["nosuch"], [""], ["find", ".", "-exec", "sed", "-i", "s/a/b/", "{}", ";"],
)  # fmt: skip


@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=20))
def test_whatever_a_collector_counts_is_taken(lines: list[list[str]]) -> None:
    counts = Counter(measure for line in lines for measure in measures_of(classify(line)))
    if counts:
        part = MinutePart("1-1", "agent", NOW - timedelta(minutes=5), counts)
        assert find_minute_fault(part, BATCH, NOW) == ""


def test_a_minute_at_either_edge_of_a_batch_is_in_it() -> None:
    def fault(at: datetime) -> str:
        return find_minute_fault(MinutePart("", "unknown", at, {"commands": 1}), BATCH, NOW)

    assert fault(BATCH.since) == fault(BATCH.until) == fault(BATCH.since - timedelta(minutes=1)) == ""
    assert fault(BATCH.since - timedelta(minutes=2)) == fault(BATCH.until + timedelta(minutes=1)) == "outside_batch"


@pytest.mark.parametrize("text", ["", "1", "1-", "-1", "1-1 ", "1-1\n", "a-1", "١-١", "1" * 11 + "-1", "1-" + "1" * 21])
def test_a_session_is_named_by_process_and_start(text: str) -> None:
    assert not is_session_id(text)
    assert is_session_id("812-99731")


@given(st.datetimes(timezones=st.just(UTC)), st.datetimes(timezones=st.just(UTC)))
def test_any_times_are_judged_without_an_error(first: datetime, last: datetime) -> None:
    part = SessionPart("1-1", "agent", "codex", "ada", first, last, None)
    fault = find_session_fault(part, NOW)
    assert (fault == "") == (first <= last <= NOW + timedelta(minutes=5))
    assert fault in REMEDIES or not fault


@pytest.mark.parametrize(
    ("place", "job", "fault"),
    [("job", 7, ""), ("job", None, ""), ("login", 7, "job_elsewhere"), ("ssh", 7, "job_elsewhere"),
     ("gateway", None, "place_of_gateways"), ("agent_host", None, "")],
)  # fmt: skip
def test_a_place_is_one_that_a_collector_can_see(place: Place, job: int | None, fault: str) -> None:
    at = NOW - timedelta(minutes=5)
    assert find_session_fault(SessionPart("1-1", "agent", "codex", "ada", at, at, None, place, job), NOW) == fault
    assert fault in REMEDIES or not fault
