"""What login nodes told is kept for its term, and no longer; what is added up outlives what it was made of."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from portal.core import clock
from principals.models import AgentSession
from telemetry import services
from telemetry.models import (
    ActivityDay,
    ActivityMinute,
    ActivitySubmission,
    CollectorReport,
    ExperimentLoop,
    Job,
    PollingLoop,
)
from telemetry.services.activity.days import MINUTES_KEPT
from telemetry.services.retention import DAYS_KEPT, REPORTS_KEPT, SESSIONS_KEPT
from tests.conftest import Cast
from tests.telemetry.activity_batches import AGENT, agent_session, counted, minute, record
from tests.telemetry.logs import ingest, live_row, text

pytestmark = [pytest.mark.django_db, pytest.mark.sql, pytest.mark.usefixtures("standing_clock")]
HOUR = timedelta(hours=1)


def told(cast: Cast, ago: timedelta, **fields: Any) -> None:
    """A batch of so long ago, with its day added up then."""
    with clock.at(clock.now() - ago):
        record(
            cast.cluster, run=str(uuid4()), sessions=[agent_session(**fields)],
            minutes=[counted(), counted("", "human")], submissions=[{"session": AGENT, "at": minute(9)}],
            polling=[{"session": AGENT, "first": minute(9), "last": minute(8), "queries": 5, "period_s": 5}],
            loops=[{"session": AGENT, "submitted": minute(9), "again": minute(8)}],
        )  # fmt: skip
        services.refresh_activity()


def counts() -> dict[str, int]:
    tables = (
        ActivityMinute,
        CollectorReport,
        ActivitySubmission,
        PollingLoop,
        ExperimentLoop,
        AgentSession,
        ActivityDay,
    )
    return {table.__name__: table.objects.count() for table in tables}


def test_minutes_go_by_whole_days_and_their_sums_stay(cast: Cast):
    told(cast, MINUTES_KEPT + timedelta(days=1))
    told(cast, MINUTES_KEPT - timedelta(days=1))
    pruned = services.prune()
    assert (pruned["minutes"], pruned["reports"], pruned["sessions"], pruned["activity_days"]) == (2, 0, 0, 0)
    assert counts() == {
        "ActivityMinute": 2, "CollectorReport": 2, "ActivitySubmission": 2, "PollingLoop": 2, "ExperimentLoop": 2,
        "AgentSession": 1, "ActivityDay": 4,
    }  # fmt: skip
    assert ActivityMinute.objects.filter(minute__gte=clock.now() - MINUTES_KEPT).count() == 2
    services.refresh_activity()
    assert ActivityDay.objects.count() == 4


def test_reports_stay_until_the_figures_of_their_time_are_settled(cast: Cast):
    told(cast, REPORTS_KEPT + HOUR)
    told(cast, MINUTES_KEPT + timedelta(days=30))
    assert services.prune()["reports"] == 1
    assert CollectorReport.objects.get().until >= clock.now() - REPORTS_KEPT


def test_sessions_go_with_what_they_submitted_and_their_jobs_and_sums_stay(cast: Cast):
    told(cast, SESSIONS_KEPT + HOUR)
    with clock.at(clock.now() - SESSIONS_KEPT - HOUR):
        ago_s = int((clock.now() - minute(9)).total_seconds()) - 1
        ingest(cast.cluster, text(live_row(1, "PENDING", ago_s=ago_s, User="colleague")))
    assert Job.objects.get().actor_method == "observed"
    pruned = services.prune()
    assert (pruned["submissions"], pruned["polling_loops"], pruned["experiment_loops"], pruned["sessions"]) == (1,) * 4
    assert {name: number for name, number in counts().items() if number} == {"ActivityDay": 2}
    job, kept = Job.objects.get(), ActivityDay.objects.get(driver="agent")
    assert (job.actor, job.session_id, job.actor_method) == ("agent", None, "observed")
    assert (kept.session, kept.cluster_user.login, kept.harness) == (None, "colleague", "claude-code")


def test_a_long_session_stays_while_it_is_seen_and_lets_its_old_acts_go(cast: Cast):
    told(cast, SESSIONS_KEPT + HOUR)
    record(cast.cluster, sessions=[agent_session()])
    pruned = services.prune()
    assert (pruned["submissions"], pruned["polling_loops"], pruned["sessions"]) == (1, 1, 0)
    assert AgentSession.objects.get().last_seen == minute(9)


def test_declared_sessions_are_not_a_collectors_to_forget(cast: Cast):
    AgentSession.objects.create(
        cluster=cast.cluster, cluster_user=cast.cluster.cluster_users.get(login="pi"), host="login1", harness="codex",
        started=clock.now() - SESSIONS_KEPT * 2, ended=clock.now() - SESSIONS_KEPT - HOUR,
    )  # fmt: skip
    assert services.prune()["sessions"] == 0


def test_daily_sums_go_after_three_years(cast: Cast):
    for ago in (DAYS_KEPT + timedelta(days=2), DAYS_KEPT - timedelta(days=2)):
        ActivityDay.objects.create(
            cluster=cast.cluster, day=(clock.now() - ago).date(), host="login1", driver="unknown", minutes=1,
            counts={"commands": 1},
        )  # fmt: skip
    assert services.prune()["activity_days"] == 1
    assert ActivityDay.objects.get().day > (clock.now() - DAYS_KEPT).date()
