import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine import usage
from telemetry.engine.slurm.records import JobRecord
from telemetry.engine.slurm.xdmod_text import XdmodReader
from tests.telemetry import usage_by_hand
from tests.telemetry.engine.sacct_texts import NOW_S
from tests.telemetry.engine.shared import shared_file

SPANS = st.tuples(st.integers(0, 2_000_000_000), st.integers(0, 3_000_000)).map(lambda p: (p[0], p[0] + p[1]))


def test_a_span_is_cut_at_midnight() -> None:
    assert list(usage_by_hand.split_by_day(86_400 - 10, 86_400 + 20)) == [(0, 10), (86_400, 20)]
    assert list(usage_by_hand.split_by_day(0, 86_400)) == [(0, 86_400)]
    assert list(usage_by_hand.split_by_day(5, 5)) == []
    assert list(usage_by_hand.split_by_hour(3_599, 3_601)) == [(0, 1), (3_600, 1)]


@given(SPANS)
def test_the_pieces_of_a_span_sum_to_it_and_stay_in_their_periods(span: tuple[int, int]) -> None:
    for cut, period in ((usage_by_hand.split_by_day, usage.DAY_S), (usage_by_hand.split_by_hour, usage.HOUR_S)):
        pieces = list(cut(*span))
        assert sum(piece.seconds for piece in pieces) == span[1] - span[0]
        assert all(piece.period_s % period == 0 and 0 < piece.seconds <= period for piece in pieces)
        assert [piece.period_s for piece in pieces] == sorted({piece.period_s for piece in pieces})


@given(SPANS, st.integers(0, 10_000_000))
def test_prorated_seconds_sum_to_what_the_job_really_ran(span: tuple[int, int], elapsed_s: int) -> None:
    pieces = list(usage_by_hand.split_by_day(*span))
    spread = usage_by_hand.prorate(elapsed_s, pieces)
    assert sum(piece.seconds for piece in spread) == (elapsed_s if pieces else 0)
    assert all(piece.seconds >= 0 for piece in spread)


@pytest.mark.parametrize("limit_s", [60, 300, 3600])
def test_the_reported_limits_are_edges(limit_s: int) -> None:
    counts = Counter(usage_by_hand.histogram_bucket(s) for s in (limit_s - 1, limit_s, limit_s + 1))
    within = usage.share_within([counts[i] for i in range(usage.RUNTIME_BUCKETS)], limit_s)
    assert within == pytest.approx(2 / 3)


def test_edges_rise_and_every_runtime_has_a_bucket() -> None:
    assert list(usage.RUNTIME_EDGES_S) == sorted(set(usage.RUNTIME_EDGES_S))
    assert usage_by_hand.histogram_bucket(0) == 0
    assert usage_by_hand.histogram_bucket(1) == 1
    assert usage_by_hand.histogram_bucket(10**9) == usage.RUNTIME_BUCKETS - 1
    with pytest.raises(ValueError, match="not an edge"):
        usage.share_within([1], 61)


@given(st.lists(st.integers(0, 5_184_000), min_size=1, max_size=200))
def test_the_median_lies_in_the_bucket_of_the_true_one(runtimes: list[int]) -> None:
    counts = [0] * usage.RUNTIME_BUCKETS
    for runtime in runtimes:
        counts[usage_by_hand.histogram_bucket(runtime)] += 1
    median = usage.histogram_median(counts)
    true = sorted(runtimes)[(len(runtimes) - 1) // 2]
    bucket = usage_by_hand.histogram_bucket(true)
    assert median is not None
    assert (usage.RUNTIME_EDGES_S[bucket - 1] if bucket else 0) <= median <= usage.RUNTIME_EDGES_S[bucket]


def test_without_jobs_there_is_no_median_and_no_share() -> None:
    assert usage.histogram_median([0] * usage.RUNTIME_BUCKETS) is None
    assert usage.share_within([0] * usage.RUNTIME_BUCKETS, 60) is None


@pytest.fixture(scope="module")
def phillips() -> list[JobRecord]:
    with shared_file("xdmod", "phillips.log").open("rb") as stream:
        outcomes = list(XdmodReader(stream, now_s=NOW_S))
    assert all(isinstance(outcome, JobRecord) for outcome in outcomes)
    return [outcome for outcome in outcomes if isinstance(outcome, JobRecord)]


def hours(seconds: int) -> float:
    return round(seconds / 3600, 4)


@pytest.mark.shared_data
def test_the_reference_log_gives_the_verified_totals(phillips: list[JobRecord]) -> None:
    expected = json.loads(shared_file("xdmod", "verified_totals.json").read_text())["phillips"]
    jobs = [job for job in phillips if job.started]
    waits = [job.start_s - job.submit_s for job in jobs if job.start_s is not None]
    assert len(phillips) == expected["rows"]
    assert len(phillips) - len(jobs) == expected["skipped_none_assigned"]
    assert len(jobs) == expected["job_count"]
    assert hours(sum(job.elapsed_s * job.cpus for job in jobs)) == expected["total_cpu_hours"]
    assert hours(sum(job.elapsed_s for job in jobs)) == expected["total_wallduration_hours"]
    assert hours(sum(waits)) == expected["total_waitduration_hours"]
    assert hours(sum(job.elapsed_s * job.nodes for job in jobs)) == expected["total_node_hours"]
    assert hours(sum(job.elapsed_s * job.gpus for job in jobs)) == expected["total_gpu_hours"]
    assert len({job.user for job in jobs}) == expected["active_person_count"]
    assert len({job.group for job in jobs}) == expected["active_pi_count"]
    assert max(job.cpus for job in jobs) == expected["max_processors"]


@pytest.mark.shared_data
def test_the_days_of_the_reference_log_sum_to_its_total(phillips: list[JobRecord]) -> None:
    days: Counter[int] = Counter()
    jobs = [job for job in phillips if job.started and job.start_s is not None and job.end_s is not None]
    for job in jobs:
        assert job.end_s is not None
        assert job.start_s is not None
        assert job.elapsed_s == job.end_s - job.start_s
        for piece in usage_by_hand.prorate(job.elapsed_s, list(usage_by_hand.split_by_day(job.start_s, job.end_s))):
            days[piece.period_s] += piece.seconds * job.cpus
    assert len(days) == 11
    assert hours(sum(days.values())) == 11767.9883
