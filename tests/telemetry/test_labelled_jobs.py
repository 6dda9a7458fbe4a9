"""The controller's label says whose a job is, whichever way it is read and whatever sessions say beside it."""

from datetime import UTC, datetime

import pytest
from django.db import connection

from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster
from principals.services import DeclaredSession
from telemetry import services
from telemetry.models import Job
from telemetry.services.ingest import running
from tests import factories
from tests.telemetry.engine.sacct_texts import COLUMNS, row, text
from tests.telemetry.logs import ingest

pytestmark = [pytest.mark.django_db, pytest.mark.sql]

WITH_LABELS = (*COLUMNS[:9], "AdminComment", *COLUMNS[9:])
CLAUDE = "gatehouse:v1:harness=claude-code:marker=CLAUDECODE"
LABELS = ("", CLAUDE, f"trial v1 gpus=1 {CLAUDE}", "gatehouse:v1:harness=codex:marker=CODEX_CI", "gatehouse:v2:x",
          "gatehouse:v1:harness=\u00e9:marker=X")  # fmt: skip
FOUND = {
    1: ("agent", "claude-code", "declared_session", 0.95, True, "screen"),
    2: ("agent", "claude-code", "environment_label", 0.98, True, "screen"),
    3: ("agent", "claude-code", "environment_label", 0.98, True, "screen"),
    4: ("agent", "codex", "environment_label", 0.98, False, ""),  # of another harness than the session
    5: ("agent", "claude-code", "declared_session", 0.95, True, "screen"),
    6: ("agent", "claude-code", "declared_session", 0.95, True, "screen"),
    11: ("unknown", "", "none", 0.0, False, ""),
    12: ("agent", "claude-code", "environment_label", 0.98, False, ""),
    21: ("human", "", "interactive_session", 0.8, True, ""),
    22: ("agent", "claude-code", "environment_label_against_session", 0.75, False, ""),
}


def rows() -> list[str]:
    return [
        row(WITH_LABELS, JobID=str(first + number), JobIDRaw=str(first + number), User=user, AdminComment=label)
        for first, user, labels in ((1, "ada", LABELS), (11, "bob", LABELS[:2]), (21, "cyd", LABELS[:2]))
        for number, label in enumerate(labels)
    ]


def declare(cluster: Cluster) -> None:
    services.declare_sessions(
        actor=SYSTEM_ACTOR, cluster=cluster,
        sessions=[
            DeclaredSession(
                login=login, host="login1", kind=kind, harness=harness, campaign=campaign, ended=None,
                started=datetime(2026, 7, 1, 9, tzinfo=UTC),
            )
            for login, kind, harness, campaign in (
                ("ada", "agent", "claude-code", "screen"), ("cyd", "interactive", "", "")
            )
        ],
    )  # fmt: skip


def found() -> dict[int, tuple[str, str, str, float, bool, str]]:
    return {
        job.raw_id: (
            job.actor, job.harness, job.actor_method, job.actor_confidence, job.session_id is not None, job.campaign
        )
        for job in Job.objects.all()
    }  # fmt: skip


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.make_cluster("aster")


@pytest.mark.parametrize("many_bytes", [0, 10**9], ids=["in columns", "row by row"])
@pytest.mark.parametrize("sessions_first", [True, False])
def test_a_label_speaks_before_the_sessions(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, many_bytes: int, sessions_first: bool
) -> None:
    monkeypatch.setattr(running, "MANY_BYTES", many_bytes)
    monkeypatch.setitem(running.BLOCK_ROWS, connection.vendor, 4)
    if sessions_first:
        declare(cluster)
    ingest(cluster, text(*rows(), columns=WITH_LABELS))
    if not sessions_first:
        declare(cluster)
    assert found() == FOUND


def test_a_label_that_comes_later_changes_whose_the_job_is(cluster: Cluster) -> None:
    ingest(cluster, text(row(WITH_LABELS, AdminComment=""), columns=WITH_LABELS))
    assert Job.objects.get().actor == "unknown"
    ingest(cluster, text(row(WITH_LABELS, AdminComment=CLAUDE), columns=WITH_LABELS))
    assert Job.objects.get().harness == "claude-code"
