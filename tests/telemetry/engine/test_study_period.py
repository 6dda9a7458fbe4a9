"""A look at all jobs of a period says what counting them one by one says, in whatever blocks they come."""

from collections import Counter, defaultdict
from itertools import pairwise
from statistics import median_low
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from telemetry.engine import usage
from telemetry.engine.iteration import WITHIN_MINUTES
from telemetry.engine.period_study import AFTER_S, SCHEMA, PeriodStudy, Study
from telemetry.engine.similarity import Keys, keys_of
from tests.telemetry import usage_by_hand

LO, HI = 1_782_864_000, 1_782_950_400  # a day
LOST = {"CANCELLED": "cancelled", "FAILED": "failed", "OUT_OF_MEMORY": "failed", "TIMEOUT": "timeout"}
Job = dict[str, Any]


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    submit = draw(st.integers(LO - 400, HI + AFTER_S - 1))
    start = draw(st.none() | st.integers(submit, submit + 300))
    # One that was submitted before the period is there only if it ended within it.
    earliest = max(start or submit, LO) if submit < LO else (start or submit)
    ended = st.integers(earliest, earliest + 9000) if submit >= LO else st.integers(earliest, HI - 1)
    end = draw(ended if submit < LO else st.none() | ended)
    state = draw(st.sampled_from(["COMPLETED", *LOST])) if end is not None else "RUNNING" if start else "PENDING"
    script = draw(st.sampled_from(["a.sh", "b.sh 1", "b.sh 2", ""]))
    return {
        "user": draw(st.integers(1, 3)), "actor": draw(st.sampled_from(["agent", "human", "unknown"])), "state": state,
        "submit_s": submit, "start_s": start, "end_s": end, "restarts": draw(st.integers(0, 1)),
        "array_tasks": draw(st.integers(1, 3)), "job_name": draw(st.sampled_from(["x", "y"])),
        "work_dir": draw(st.sampled_from(["/w", "/v", ""])), "submit_line": script and f"sbatch {script}",
        "harness": draw(st.sampled_from(["", "codex", "cursor"])),
        "mem_bytes": draw(st.sampled_from([None, 0, 2**20, 2**20 + 5, 2**30, 2**60])),
        "exit_code": draw(st.sampled_from([None, 0, 1, 2])), "exit_signal": draw(st.sampled_from([0, 9])),
    }  # fmt: skip


def studied(rows: list[Job], block: int) -> Study:
    study = PeriodStudy(LO, HI)
    for first in range(0, len(rows), block):
        study.add(pl.DataFrame(rows[first : first + block], schema=SCHEMA))
    return study.finish()


def _key(job: Job, kind: str) -> int:
    return int(getattr(keys_of(job["submit_line"], job["work_dir"]), kind))


def _same(job: Job) -> tuple[Any, ...]:
    return (job["user"], job["job_name"], job["work_dir"], _key(job, "script"))


def _within(at: int | None) -> bool:
    return at is not None and LO <= at < HI


@settings(max_examples=20)
@given(st.lists(jobs(), min_size=1, max_size=25), st.integers(1, 25), st.randoms())
def test_blocks_and_order_change_nothing(rows: list[Job], block: int, random: Any) -> None:
    found = studied(rows, len(rows))
    random.shuffle(rows)
    assert studied(rows, block) == found


@settings(max_examples=20)
@given(st.lists(jobs(), min_size=1, max_size=25))
def test_jobs_are_alike_as_their_keys_are(rows: list[Job]) -> None:
    found = studied(rows, 10)
    submitted = [job for job in rows if _within(job["submit_s"])]
    assert found.submitted == sum(job["array_tasks"] for job in submitted)
    for one in found.alike:
        users: dict[int, set[int]] = defaultdict(set)
        tasks: Counter[int] = Counter()
        for job in submitted:
            if key := _key(job, one.kind):
                users[key].add(job["user"])
                tasks[key] += job["array_tasks"]
        shared = [key for key, who in users.items() if len(who) > 1]
        sharing = set().union(*(users[key] for key in shared))
        assert (one.jobs, one.told, one.keys) == (sum(tasks[key] for key in shared), tasks.total(), len(shared))
        assert (one.most_users, one.users) == (max((len(users[key]) for key in shared), default=0), len(sharing))
    assert [one.kind for one in found.alike] == list(Keys._fields)


@settings(max_examples=20)
@given(st.lists(jobs(), min_size=1, max_size=25))
def test_what_came_to_nothing_is_followed_by_the_next_of_the_same(rows: list[Job]) -> None:
    begun = [(_same(job), job["submit_s"]) for job in rows if not job["restarts"]]
    gaps: dict[tuple[str, str], list[int | None]] = defaultdict(list)
    for job in rows:
        if job["state"] in LOST and _within(job["end_s"]):
            later = [at - job["end_s"] for same, at in begun if same == _same(job) and at > job["end_s"]]
            gaps[LOST[job["state"]], job["actor"]] += [min(later, default=None)] * job["array_tasks"]
    found = {(one.outcome, one.actor): one for one in studied(rows, 10).gaps}
    assert found.keys() == gaps.keys()
    for key, expected in gaps.items():
        near = [gap for gap in expected if gap is not None and gap <= AFTER_S]
        again = tuple(sum(gap <= minutes * 60 for gap in near) for minutes in WITHIN_MINUTES)
        assert (found[key].jobs, found[key].again) == (len(expected), again)
        assert found[key].median_s == (median_low(near) if near else None)


def _mib(job: Job) -> int | None:
    return min(job["mem_bytes"] // 2**20, 2**32 - 1) if job["mem_bytes"] else None


def _next_memory(job: Job, rows: list[Job]) -> str:
    """Say what the next submission of the same had, beside a job that ended out of memory."""
    later = [one for one in rows if not one["restarts"] and _same(one) == _same(job) and one["submit_s"] > job["end_s"]]
    first = min((one["submit_s"] for one in later), default=None)
    if first is None or first - job["end_s"] > AFTER_S:
        return "none"
    had, then = _mib(job), [size for one in later if one["submit_s"] == first and (size := _mib(one)) is not None]
    if had is None or not then:
        return "unknown"
    return "same" if max(then) == had else "more" if max(then) > had else "less"


@settings(max_examples=25)
@given(st.lists(jobs(), min_size=1, max_size=25))
def test_what_ran_out_of_memory_is_held_against_the_next_of_the_same(rows: list[Job]) -> None:
    expected: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    for job in rows:
        if job["state"] == "OUT_OF_MEMORY" and _within(job["end_s"]):
            expected[job["user"], job["actor"], job["harness"]][_next_memory(job, rows)] += job["array_tasks"]
    found = {one[:3]: one for one in studied(rows, 10).out_of_memory}
    assert found.keys() == expected.keys()
    for key, counts in expected.items():
        names = ("same", "more", "less", "unknown")
        assert (found[key].jobs, *(getattr(found[key], name) for name in names)) == (
            counts.total(), *(counts[name] for name in names)
        )  # fmt: skip
        assert found[key].again == counts.total() - counts["none"]


def test_memory_that_is_raised_lowered_or_left_is_told_apart() -> None:
    lost = {
        "user": 1, "actor": "agent", "state": "OUT_OF_MEMORY", "submit_s": LO, "start_s": LO, "end_s": LO + 9,
        "restarts": 0, "array_tasks": 2, "job_name": "x", "work_dir": "/w", "submit_line": "sbatch --mem=1G a.sh",
        "harness": "codex", "mem_bytes": 2**30,
    }  # fmt: skip
    then = {"state": "PENDING", "submit_s": LO + 20, "start_s": None, "end_s": None}
    for size, name in ((2**31, "more"), (2**29, "less"), (2**30, "same"), (None, "unknown"), (0, "unknown")):
        line = {"submit_line": f"sbatch --mem={size} a.sh", "mem_bytes": size}
        (found,) = studied([lost, lost | then | line], 1).out_of_memory
        assert (found.jobs, found.again, getattr(found, name)) == (2, 2, 2)
    (late,) = studied([lost, lost | then | {"submit_s": LO + 10 + AFTER_S}], 1).out_of_memory
    assert (late.jobs, late.again) == (2, 0)


def _failed(rows: list[Job]) -> dict[tuple[Any, ...], dict[int, int]]:
    """Say when which submission first failed, by user, actor and the way it did."""
    found: dict[tuple[Any, ...], dict[int, int]] = defaultdict(dict)
    for job in rows:
        if job["state"] in ("FAILED", "OUT_OF_MEMORY") and _within(job["end_s"]) and _key(job, "template"):
            way = (_key(job, "template"), job["state"], job["exit_code"], job["exit_signal"])
            ends = found[job["user"], job["actor"], *way]
            ends[job["submit_s"]] = min(job["end_s"], ends.get(job["submit_s"], job["end_s"]))
    return found


@settings(max_examples=25)
@given(st.lists(jobs(), min_size=1, max_size=25))
def test_who_fails_twice_the_same_way_is_counted_with_what_lies_between(rows: list[Job]) -> None:
    further: dict[str, list[tuple[int, bool, bool, int]]] = defaultdict(list)
    people: dict[str, set[int]] = defaultdict(set)
    for (user, actor, *_), ends in _failed(rows).items():
        people[actor].add(user)
        by_end = sorted((end, at) for at, end in ends.items())
        for (before, _), (end, at) in pairwise(by_end):
            further[actor].append((end - before, at > by_end[0][0], end // 86_400 != before // 86_400, user))
    lost = [job for job in rows if job["state"] in ("FAILED", "OUT_OF_MEMORY") and _within(job["end_s"])]
    found = {one.actor: one for one in studied(rows, 10).failures}
    assert found.keys() == {job["actor"] for job in lost}
    for actor, one in found.items():
        gaps = further[actor]
        assert (one.people, one.repeated, one.again) == (len(people[actor]), len({gap[3] for gap in gaps}), len(gaps))
        assert (one.later, one.other_day) == (sum(gap[1] for gap in gaps), sum(gap[2] for gap in gaps))
        assert one.median_s == (median_low(gap[0] for gap in gaps) if gaps else None)
        mine = [job for job in lost if job["actor"] == actor]
        untold = [job for job in mine if not _key(job, "template")]
        assert one.jobs == sum(job["array_tasks"] for job in mine)
        assert one.untold == sum(job["array_tasks"] for job in untold)
        assert one.untold_people == len({job["user"] for job in untold})


def test_a_failure_comes_back_under_the_same_command_state_exit_code_and_signal() -> None:
    failed = {
        "user": 1, "actor": "agent", "state": "FAILED", "submit_s": LO, "start_s": LO, "end_s": LO + 9, "restarts": 0,
        "array_tasks": 1, "job_name": "x", "work_dir": "/w", "submit_line": "sbatch -n 2 a.sh 7", "harness": "codex",
        "mem_bytes": None, "exit_code": 1, "exit_signal": 0,
    }  # fmt: skip
    later = failed | {"submit_s": LO + 40, "end_s": LO + 50}
    for other, repeated in (
        ({"submit_line": "sbatch -n 4 /else/a.sh 8", "job_name": "y", "work_dir": "/v"}, 1),
        ({"submit_line": "sbatch b.sh"}, 0), ({"exit_code": 2}, 0), ({"exit_signal": 9}, 0), ({"user": 2}, 0),
        ({"actor": "human"}, 0), ({"state": "OUT_OF_MEMORY"}, 0), ({"state": "TIMEOUT"}, 0),
        ({"state": "NODE_FAIL"}, 0),
        ({"submit_s": LO}, 0),  # a task of the same array
    ):  # fmt: skip
        assert sum(one.repeated for one in studied([failed, later | other], 1).failures) == repeated, other
    at_once = later | {"submit_s": LO + 5, "end_s": HI - 1}
    (found,) = studied([failed, later | {"end_s": LO + 9 + 3600}, at_once], 3).failures
    assert found.values == (1.0, 1, 1, 2, 0.5, 0.0, 3600, 0.0)


@settings(max_examples=20)
@given(st.lists(jobs(), min_size=1, max_size=25))
def test_who_cancelled_acts_again(rows: list[Job]) -> None:
    cancelled = {(job["user"], job["end_s"], job["actor"]) for job in rows if job["state"] == "CANCELLED"}
    acts = {(job["user"], job["submit_s"]) for job in rows if not job["restarts"]}
    acts |= {(user, at) for user, at, _ in cancelled}
    pauses: dict[str, list[int | None]] = defaultdict(list)
    for user, at, actor in cancelled:
        if _within(at):
            pauses[actor].append(min((then - at for who, then in acts if who == user and then > at), default=None))
    found = {one.actor: one for one in studied(rows, 10).pauses}
    assert found.keys() == pauses.keys()
    for actor, expected in pauses.items():
        followed = [pause for pause in expected if pause is not None]
        assert (found[actor].cancellations, found[actor].followed) == (len(expected), len(followed))
        assert found[actor].median_s == (median_low(followed) if followed else None)


@settings(max_examples=20)
@given(st.lists(jobs(), min_size=1, max_size=25))
def test_waits_are_of_jobs_that_ended_after_having_started(rows: list[Job]) -> None:
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * usage.RUNTIME_BUCKETS)
    for job in rows:
        if _within(job["end_s"]) and job["start_s"] is not None:
            counts[job["actor"]][usage_by_hand.histogram_bucket(job["start_s"] - job["submit_s"])] += job["array_tasks"]
    found = studied(rows, 10).waits
    assert found.keys() == counts.keys()
    for actor, of_actor in counts.items():
        assert (found[actor].jobs, found[actor].median_s) == (sum(of_actor), usage.histogram_median(of_actor))


def test_no_jobs_say_nothing() -> None:
    assert PeriodStudy(LO, HI).finish() == Study(0, (), (), (), {})


def test_a_block_of_jobs_submitted_outside_counts_for_its_ends() -> None:
    job = {
        "user": 1, "actor": "agent", "state": "CANCELLED", "submit_s": LO - 9, "start_s": LO - 5, "end_s": LO + 1,
        "restarts": 0, "array_tasks": 1, "job_name": "x", "work_dir": "/w", "submit_line": "sbatch a.sh",
    }  # fmt: skip
    found = studied([job, job | {"submit_s": LO + 8, "start_s": None, "end_s": None, "state": "PENDING"}], 1)
    assert (found.submitted, found.gaps[0].jobs, found.gaps[0].median_s, found.waits["agent"].jobs) == (1, 1, 7, 1)
