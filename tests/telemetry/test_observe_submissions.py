"""A submission that a collector saw explains the job that follows it, whichever is told first."""

from datetime import timedelta
from typing import Any

import pytest

from portal.core import clock
from principals.models import AgentSession
from telemetry import services
from telemetry.models import Job, RollupDay
from telemetry.services.ingest import running
from tests import factories
from tests.conftest import Cast
from tests.telemetry.activity_batches import AGENT, agent_session, minute, record
from tests.telemetry.logs import ingest, job_row, text

pytestmark = [pytest.mark.django_db, pytest.mark.sql, pytest.mark.usefixtures("standing_clock")]
INNER = "900-1"


def job(number: int = 1, *, after_s: int = 1, user: str = "colleague", ended: bool = False) -> str:
    """A job that waits or ran a minute, submitted so long after the submission that was seen."""
    submit = minute(9) + timedelta(seconds=after_s)
    at, end = (each.strftime("%Y-%m-%dT%H:%M:%S") for each in (submit, submit + timedelta(minutes=1)))
    times = {"Start": at, "End": end, "State": "COMPLETED", "Elapsed": "00:01:00"}
    waits = {"Start": "Unknown", "End": "Unknown", "State": "PENDING", "Elapsed": "00:00:00"}
    return job_row(number, User=user, Submit=at, Eligible=at, **(times if ended else waits))


def seen(**fields: Any) -> dict[str, Any]:
    """Two sessions of one login name, of which the outer one submitted."""
    return {
        "sessions": [agent_session(), agent_session(id=INNER, harness="codex", start=minute(20))],
        "submissions": [{"session": AGENT, "at": minute(9)}],
    } | fields  # fmt: skip


def found() -> list[tuple[Any, ...]]:
    jobs = Job.objects.order_by("raw_id")
    return list(jobs.values_list("actor", "harness", "actor_method", "actor_confidence", "session__process"))


def test_a_job_that_comes_later_is_the_submitting_sessions(cast: Cast):
    record(cast.cluster, **seen())
    ingest(cast.cluster, text(job(1), job(2, after_s=9), job(3, user="pi")))
    process = AgentSession.objects.get(harness="claude-code").process
    assert found()[0] == ("agent", "claude-code", "observed", 0.97, process)
    assert found()[1][:3] == ("agent", "", "declared_sessions_overlapping")
    assert found()[2][:3] == ("unknown", "", "none")


def test_a_submission_that_comes_later_attributes_the_job_and_its_day_again(cast: Cast):
    ingest(cast.cluster, text(job()))
    record(cast.cluster, **seen(submissions=[]))
    assert found()[0][2] == "declared_sessions_overlapping"
    services.catch_up(cluster=cast.cluster)
    record(cast.cluster, **seen())
    assert found()[0][1:3] == ("claude-code", "observed")
    services.catch_up(cluster=cast.cluster)
    assert RollupDay.objects.get(submissions=1).harness == "claude-code"


def test_a_submission_just_before_its_session_ended_explains_a_job_just_after(cast: Cast):
    ended = agent_session(last=minute(9), end=minute(9))
    record(cast.cluster, **seen(sessions=[ended]))
    ingest(cast.cluster, text(job(1, after_s=4), job(2, after_s=6)))
    assert [each[2] for each in found()] == ["observed", "none"]


def test_the_campaign_of_the_submitting_session_is_the_jobs(cast: Cast):
    record(cast.cluster, **seen())
    AgentSession.objects.filter(harness="claude-code").update(campaign="dock")
    ingest(cast.cluster, text(job()))
    assert Job.objects.get().campaign == "dock"


def test_both_orders_and_both_ways_in_come_to_the_same(cast: Cast, monkeypatch: pytest.MonkeyPatch):
    """In columns too: those are for what is history when it arrives."""
    told = []
    for name, many_bytes, first in (("a", 10**9, "jobs"), ("b", 10**9, "batch"), ("c", 0, "jobs"), ("d", 0, "batch")):
        monkeypatch.setattr(running, "MANY_BYTES", many_bytes)
        cluster = factories.make_cluster(name)
        acts = [lambda c=cluster: ingest(c, text(*(job(n, after_s=n - 4, ended=True) for n in range(1, 13)))),
                lambda c=cluster: record(c, **seen())]  # fmt: skip
        with clock.at(clock.now() + timedelta(minutes=20)):
            for act in acts if first == "jobs" else acts[::-1]:
                act()
        jobs = Job.objects.filter(cluster=cluster).order_by("raw_id")
        told.append(list(jobs.values_list("raw_id", "actor", "harness", "actor_method", "session__process")))
    assert told[0] == told[1] == told[2] == told[3]
    assert {each[3] for each in told[0]} == {"observed", "declared_sessions_overlapping"}
