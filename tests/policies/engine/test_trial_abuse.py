"""Trials that look like production computation: larger than granted, or one after another, each to its end."""

from typing import Any

import pytest

from policies.engine.trial_abuse import TrialRun, find_abuse

TEN_MINUTES = 600


def run(start_s: int = 0, used_s: int = 590, **more: Any) -> TrialRun:
    said: dict[str, Any] = {
        "person": 1, "work": ("okafor", "relax", "/n/okafor"), "limit_s": TEN_MINUTES, "gpus": 1, "nodes": 1,
        "granted_s": TEN_MINUTES, "granted_gpus": 1, "granted_nodes": 1,
    }  # fmt: skip
    return TrialRun(start_s=start_s, end_s=start_s + used_s, **said | more)


def chained(*runs: TrialRun) -> set[int]:
    return set(find_abuse(runs).chained)


@pytest.mark.parametrize("more", [{"limit_s": 3600}, {"gpus": 2}, {"nodes": 2}, {"used_s": 800, "limit_s": 0}])
def test_what_is_larger_than_granted_is_a_sign(more: dict[str, Any]) -> None:
    assert find_abuse([run(**more)]).larger == {0}


def test_slurms_own_lateness_is_none() -> None:
    assert find_abuse([run(used_s=TEN_MINUTES + 100)]).any == set()


def test_three_in_a_row_that_use_their_time_are_a_chain() -> None:
    runs = [run(0), run(700), run(1400), run(9000)]
    assert chained(*runs[:2]) == set()
    assert chained(*runs) == {0, 1, 2}
    assert chained(*reversed(runs)) == {1, 2, 3}


def test_short_ones_pauses_other_work_and_other_people_are_none() -> None:
    assert chained(run(0), run(700, used_s=60), run(1400)) == set()
    assert chained(run(0), run(900), run(1800)) == set()
    assert chained(run(0), run(700, work=("okafor", "other", "/n")), run(1400)) == set()
    assert chained(run(0), run(700, person=2), run(1400)) == set()


def test_a_sweep_side_by_side_is_none() -> None:
    assert chained(run(0), run(1), run(2), run(3)) == set()
