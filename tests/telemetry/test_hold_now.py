"""What Slurm can hold now: not what a file of last year left in an active state."""

from datetime import timedelta

import pytest
from django.db import connection

from portal.core import clock
from principals.models import AgentSession, ClusterUser
from telemetry import selectors
from telemetry.models import Job
from telemetry.selectors import JobFilter, held_now
from tests import factories
from tests.conftest import Cast, sign_in
from tests.dashboard.live_rows import make_job

HOUR, DAY = 3600, 86_400


@pytest.fixture
def user(cast: Cast) -> ClusterUser:
    return factories.make_cluster_user(cast.cluster, cast.colleague)


def is_held(job: Job) -> bool:
    return held_now(Job.objects.filter(pk=job.pk)).exists() and selectors.find_stale([job]) == set()


@pytest.mark.parametrize(
    ("state", "ago_s", "seen_ago_s", "limit_s", "held"),
    [
        ("RUNNING", 2 * HOUR, None, 4 * HOUR, True),  # its limit has not run out, though nobody looked again
        ("RUNNING", 200 * DAY, None, 4 * HOUR, False),  # a record of an old file
        ("RUNNING", 200 * DAY, None, 365 * DAY, True),
        ("RUNNING", 5 * HOUR, 600, 4 * HOUR, True),  # over its limit, and seen running ten minutes ago
        ("RUNNING", 4 * HOUR + 1800, None, 4 * HOUR, True),  # readers tell an end a little late
        ("COMPLETING", 9 * HOUR, None, 4 * HOUR, False),
        ("RUNNING", 6 * DAY, None, None, True),  # no limit: a week after it was last seen
        ("RUNNING", 8 * DAY, None, None, False),
        ("RUNNING", 30 * DAY, 6 * DAY, None, True),
        ("SUSPENDED", 2 * DAY, None, 4 * HOUR, True),  # its clock stands still
        ("SUSPENDED", 9 * DAY, None, 4 * HOUR, False),
    ],
)
def test_what_started_is_held_until_its_end_should_have_come(
    cast: Cast, user: ClusterUser, state: str, ago_s: int, seen_ago_s: int | None, limit_s: int | None, held: bool
) -> None:
    job = make_job(user, cast.lab, state=state, ago_s=ago_s, timelimit_s=limit_s)
    if seen_ago_s is not None:
        Job.objects.filter(pk=job.pk).update(usage_end=clock.now() - timedelta(seconds=seen_ago_s))
        job.refresh_from_db()
    # Read in today, it is no younger for it.
    Job.objects.filter(pk=job.pk).update(changed=clock.now())
    assert is_held(job) is held


def test_what_waits_is_held_while_its_cluster_tells_of_anything(cast: Cast, user: ClusterUser) -> None:
    waits = make_job(user, cast.lab, ago_s=30 * DAY, changed=clock.now())
    young = make_job(user, cast.lab, ago_s=6 * DAY)
    make_job(user, cast.lab, state="COMPLETED", ago_s=20 * DAY)
    assert not is_held(waits) and is_held(young)
    make_job(user, cast.lab, state="COMPLETED", ago_s=2 * DAY)
    assert is_held(waits)


def test_no_page_shows_it_as_running_now(cast: Cast, user: ClusterUser) -> None:
    old = make_job(user, cast.lab, state="RUNNING", ago_s=200 * DAY)
    runs = make_job(user, cast.lab, state="RUNNING", ago_s=HOUR)
    client = sign_in(cast.staff)
    listed = client.get("/jobs/live/")
    assert [row.job for row in listed.context["rows"]] == [runs]
    assert {tile["state"]: tile["count"] for tile in listed.context["states"]}["RUNNING"] == 1
    page = client.get(f"/jobs/{old.pk}/").content.decode()
    assert "Last reported running" in page and ">Running<" not in page
    assert ">Running<" in client.get(f"/jobs/{runs.pk}/").content.decode()
    session = AgentSession.objects.create(
        cluster=cast.cluster, cluster_user=user, host="login1", harness="codex", started=1, agent=cast.agent
    )  # fmt: skip
    Job.objects.update(session=session, agent=cast.agent)
    of_agent = client.get(f"/agents/{cast.agent.name}/").context["jobs"]
    assert {row.job.pk: row.state for row in of_agent} == {old.pk: "Last reported running", runs.pk: "Running"}
    rows = {row.job.pk: row for row in client.get("/jobs/").context["rows"]}
    assert (rows[old.pk].state, rows[old.pk].ran_s) == ("Last reported running", old.elapsed_s)
    assert rows[runs.pk].state == "Running"


def test_stale_ones_of_a_page_cost_one_query(cast: Cast, user: ClusterUser, django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    jobs = [make_job(user, cast.lab, state="RUNNING", ago_s=number * DAY) for number in range(1, 30)]
    ended = make_job(user, cast.lab, state="COMPLETED")
    with django_assert_num_queries(1):
        assert len(selectors.find_stale([*jobs, ended])) == len(jobs)
    with django_assert_num_queries(0):
        assert selectors.find_stale([ended]) == set()


def test_the_rule_walks_active_jobs_alone(cast: Cast) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("the plan of PostgreSQL follows its statistics")
    plan = selectors.live_jobs(factories.actor_of(cast.staff), JobFilter()).order_by().explain()
    assert "telemetry_job_active" in plan and plan.count("telemetry_job_cluster_end") == 2
    assert "SCAN telemetry_job" not in plan and "SCAN U0" not in plan
