"""The look at all jobs of a month takes in what belongs to it, and its figures say what was found."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from principals.actors import SYSTEM_ACTOR
from telemetry.engine.period_study import AFTER_S
from telemetry.figures import Measured, Readings, measure
from telemetry.models import Job
from telemetry.selectors import Period, Scope
from telemetry.selectors.period_study import study
from tests import factories
from tests.telemetry.facility import HOUR, Facility, make_facility
from tests.telemetry.job_rows import DAY_0, make_job

pytestmark = pytest.mark.django_db
JULY = Period.month(2026, 7)
DAY_S = 86_400
ODD = 'sbatch "two\nlines", a|b \U0001f680 \\N \u202etxt'


@pytest.fixture
def facility(db: None) -> Facility:
    return make_facility()


@pytest.fixture
def scope(facility: Facility) -> Scope:
    return Scope(actor=SYSTEM_ACTOR, cluster=facility.cluster, period=JULY)


def test_a_month_is_read_whole_and_nothing_else_in_one_query(facility: Facility, scope: Scope) -> None:
    user = facility.users[0]
    june, august = DAY_0 - HOUR, DAY_0 + 31 * DAY_S
    make_job(user, facility.big, submit=june, start=june, end=DAY_0 + 10, state="FAILED", job_name="j", actor="agent")
    make_job(user, facility.big, submit=june, start=june, end=DAY_0 - 1, state="FAILED", job_name="j", actor="agent")
    make_job(user, facility.big, submit=DAY_0 + 40, job_name="j", actor="agent")
    make_job(user, facility.big, submit=august - 9, start=august - 8, end=august - 5, state="TIMEOUT", job_name="k")
    make_job(user, facility.big, submit=august + 5, start=august + 6, end=august + 9, state="TIMEOUT", job_name="k")
    make_job(user, facility.big, submit=august + AFTER_S, job_name="k")
    other = factories.make_cluster_user(factories.make_cluster("birch"), factories.make_user())
    make_job(other, facility.big, submit=DAY_0 + 5, start=DAY_0 + 6, end=DAY_0 + 7, state="CANCELLED")
    with CaptureQueriesContext(
        connection,
    ) as queries:
        found = study(scope)
    assert len(queries) <= 1
    assert found.submitted == 24 + 2
    failed, timeout = (next(one for one in found.gaps if one.outcome == name) for name in ("failed", "timeout"))
    assert (failed.jobs, failed.again, failed.median_s) == (1, (1, 1, 1, 1), 30)
    assert (timeout.jobs, timeout.again, timeout.median_s) == (1, (1, 1, 1, 1), 10)
    assert sum(one.cancellations for one in found.pauses) == 1  # eight jobs, two of them cancelled in one second


def test_any_text_is_compared(facility: Facility, scope: Scope) -> None:
    for user in facility.users[:6]:
        make_job(user, facility.big, submit=DAY_0, submit_line=ODD, work_dir='/a "b",\n/c')
    make_job(facility.users[0], facility.big, submit=DAY_0, submit_line="sbatch --wrap hostname")
    rows = {row.key: row for row in measure("similar-jobs", Readings(scope)).rows}  # type: ignore[union-attr]
    assert rows["submit_line"].values == (6, 6 / 31, 1, 6)
    assert rows["work_dir"].values == (6, 6 / 31, 1, 6)


def test_what_few_people_share_is_left_out(facility: Facility, scope: Scope) -> None:
    for user in facility.users[:4]:
        make_job(user, facility.big, submit=DAY_0, submit_line="sbatch secret.sh")
    found = measure("similar-jobs", Readings(scope))
    assert found is not None and found.value is None
    assert {row.key: row.values for row in found.rows}["script"] == (None, None, None, None)
    assert "fewer than 5 people" in found.note


def test_figures_say_what_was_found(facility: Facility, scope: Scope) -> None:
    user = facility.users[0]
    make_job(user, facility.big, submit=DAY_0 + 16 * HOUR + 100, actor="agent")
    readings = Readings(scope)
    wait = measure("median-wait", readings)
    assert wait is not None and [row.values[1] for row in wait.rows] == [12, 8, 4]
    pause = measure("cancel-gap", readings)
    assert pause is not None and pause.value == 10 * HOUR - 40  # from 02:00:40 in New York to the noon's submission
    assert pause.rows[0].values == (10 * HOUR - 40, 1, 1.0)
    again = measure("resubmitted", readings)
    assert again is not None and again.value == 0.0
    assert [row.label for row in again.rows] == ["Cancelled, agents"]
    assert again.rows[0].query == {"actor": "agent", "state": "CANCELLED"}


def _oom(facility: Facility, number: int, *, then: int | None, actor: str = "agent", harness: str = "codex") -> None:
    """A job of somebody that ended out of memory with 1 GiB, and the same again with so many GiB, if any."""
    user, at = facility.users[number], DAY_0 + 20 * HOUR
    same = {"job_name": f"oom-{actor}-{number}", "actor": actor, "harness": harness}
    make_job(user, facility.big, submit=at, start=at, end=at + 60, state="OUT_OF_MEMORY", mem_bytes=2**30, **same)
    if then is not None:
        make_job(user, facility.big, submit=at + 300, mem_bytes=then * 2**30, **same)


def oom_rows(scope: Scope) -> dict[str, tuple[object, ...]]:
    found = measure("oom-unchanged", Readings(scope))
    assert found is not None
    return {row.key: row.values for row in found.rows}


def test_out_of_memory_jobs_are_told_by_what_they_were_given_next(facility: Facility, scope: Scope) -> None:
    for number, then in enumerate((1, 1, 2, 4, None)):
        _oom(facility, number, then=then)
    for number in range(4, 9):
        _oom(facility, number, then=1, actor="unknown", harness="")
    rows = oom_rows(scope)
    assert rows["agent"] == rows["harness-codex"] == (0.5, 5, 4, 2, 2, 0, 0)
    assert rows["human"] == (None, 0, 0, 0, 0, 0, 0)
    found = measure("oom-unchanged", Readings(scope))
    assert found is not None and (found.value, found.unknown_share) == (0.5, 1 / 2)
    assert found.rows[0].query == {"actor": "agent", "state": "OUT_OF_MEMORY"}


def test_what_ran_out_of_memory_of_few_people_is_not_shown(facility: Facility, scope: Scope) -> None:
    for number in range(4):
        _oom(facility, number, then=1)
    assert set(oom_rows(scope)["agent"]) == set(oom_rows(scope)["harness-others"]) == {None}
    for number in range(4, 6):
        _oom(facility, number, then=1, harness="cursor")
    # Six people in all: neither harness has five, and the rest of one could be had by subtraction.
    rows = oom_rows(scope)
    assert rows["agent"] == rows["harness-others"] == (1.0, 6, 6, 6, 0, 0, 0)
    assert not {"harness-codex", "harness-cursor"} & rows.keys()


def test_what_is_withheld_of_an_actor_cannot_be_had_from_the_unknown_share(facility: Facility, scope: Scope) -> None:
    for number in range(5):
        _oom(facility, number, then=1)
    for who in ("unknown", "human"):
        _oom(facility, 5, then=1, actor=who, harness="")
        found = measure("oom-unchanged", Readings(scope))
        assert found is not None and (found.value, found.unknown_share) == (1.0, None)
        assert set(oom_rows(scope)[who]) == {None} and "fewer than 5" in found.note


def _fail(facility: Facility, number: int, *, times: int, actor: str = "agent", line: str = "sbatch a.sh") -> None:
    """Jobs of somebody that fail in the same way, six hours after each other."""
    for at in (DAY_0 + 21 * HOUR + place * 6 * HOUR for place in range(times)):
        how = {"state": "FAILED", "actor": actor, "submit_line": line, "exit_code": 1, "exit_signal": 0}
        make_job(facility.users[number], facility.big, submit=at, start=at, end=at + 60, **how)


def failures(scope: Scope) -> tuple[Measured, dict[str, tuple[Any, ...]]]:
    found = measure("repeated-failures", Readings(scope))
    assert found is not None
    return found, {row.key: row.values for row in found.rows}


def test_who_fails_twice_the_same_way_is_told_by_actor(facility: Facility, scope: Scope) -> None:
    for number, times in enumerate((2, 2, 2, 2, 3, 1, 1)):
        _fail(facility, number, times=times)
    for number in range(5):
        _fail(facility, number, times=1, actor="unknown")
    found, rows = failures(scope)
    assert rows["agent"] == (5 / 7, 7, 5, 6, 1.0, 5 / 6, 6 * HOUR, 0.0)
    assert rows["human"] == (None, 0, 0, 0, None, None, None, None)
    assert rows["unknown"] == (0.0, 5, 0, 0, None, None, None, 0.0)
    assert (found.value, found.unknown_share, found.note) == (5 / 7, 5 / 18, "")


def test_what_few_people_fail_at_is_not_told(facility: Facility, scope: Scope) -> None:
    for number in range(6):
        _fail(facility, number, times=2 if number < 4 else 1)
    _fail(facility, 7, times=1, line="")
    found, rows = failures(scope)
    assert rows["agent"] == (None, 6, *(None,) * 6)  # four repeat, and of one the command is not known
    assert found.value is None and found.unknown_share == 0.0 and "fewer than 5" in found.note
    _fail(facility, 8, times=1, actor="human")
    found, rows = failures(scope)
    assert set(rows["human"]) == {None} and found.unknown_share is None


def test_a_month_without_jobs_says_nothing(scope: Scope) -> None:
    empty = Readings(Scope(actor=SYSTEM_ACTOR, cluster=scope.cluster, period=Period.month(2025, 7)))
    assert Job.objects.exists()
    for key in ("median-wait", "cancel-gap", "resubmitted", "oom-unchanged", "similar-jobs", "repeated-failures"):
        found = measure(key, empty)
        assert found is not None and found.value is None
