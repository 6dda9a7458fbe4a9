"""An upgrade leaves the jobs of registered agents to the sweep, which gives each its agent."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.db.migrations.loader import MigrationLoader

from telemetry import services
from telemetry.models import Job, JobReceipt, PendingAttribution
from tests import factories
from tests.telemetry.facility import make_session
from tests.telemetry.job_rows import DAY_0, make_job

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sql]


def _migration() -> Any:
    """Return the one that adds the column, whatever its number."""
    nodes = MigrationLoader(None).disk_migrations.items()
    (found,) = (each for (app, name), each in nodes if app == "telemetry" and "_job_agent" in name)
    return found


@pytest.fixture
def current(transactional_db: None) -> Iterator[None]:
    """The schema of today, also after a test that fails on the way back to it."""
    yield
    call_command("migrate", verbosity=0)


def test_jobs_from_before_the_column_are_found(current: None) -> None:
    cluster, lab, owner = factories.make_cluster("aster"), factories.make_lab(), factories.make_user()
    agent = factories.make_agent(lab, owner, harness="codex")
    by_session, by_receipt = (factories.make_cluster_user(cluster, owner), factories.make_cluster_user(cluster, owner))
    stranger = factories.make_cluster_user(cluster, factories.make_user())
    session = make_session(by_session, "agent", started=DAY_0, ended=DAY_0 + 60)
    type(session).objects.update(agent=agent)
    given = {"agent": agent, "cluster": cluster, "issued": DAY_0 + 100, "valid_until": DAY_0 + 200}
    JobReceipt.objects.create(public_id="rcp_222222222222", **given)
    known = {"actor": "agent", "harness": "codex"}
    declared = make_job(by_session, lab, submit=DAY_0, **known, session=session, actor_method="declared_session",
                        actor_confidence=0.95)  # fmt: skip
    comment = {"Comment": "rcp_222222222222"}
    receipted = make_job(by_receipt, lab, submit=DAY_0 + 150, **known, extra=comment, actor_method="receipt",
                         actor_confidence=0.99)  # fmt: skip
    make_job(stranger, lab, submit=DAY_0 + 150, extra=comment)

    (before,) = (name for app, name in _migration().dependencies if app == "telemetry")
    call_command("migrate", "telemetry", before, verbosity=0)
    call_command("migrate", "telemetry", verbosity=0)

    waiting = set(PendingAttribution.objects.values_list("cluster_user", flat=True))
    assert waiting == {by_session.pk, by_receipt.pk}
    assert not Job.objects.exclude(agent=None).exists()
    assert services.sweep_attributions() == 2
    assert set(Job.objects.filter(agent=agent).values_list("pk", flat=True)) == {declared.pk, receipted.pk}
    assert services.sweep_attributions() == 0
