"""An upgrade keeps what rollups say, and has all of them computed anew."""

from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from telemetry.engine.packed import unpack
from tests import factories

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sql]
DAY = date(2026, 7, 1)


@pytest.fixture
def before_0015(transactional_db: None) -> Iterator[Any]:
    """The apps of the schema in which a histogram is rows of its own."""
    call_command("migrate", "telemetry", "0014", verbosity=0)
    yield MigrationExecutor(connection).loader.project_state([("telemetry", "0014_rollup_keys_unchecked")]).apps
    call_command("migrate", verbosity=0)


def test_histograms_move_into_the_rows_of_users(before_0015: Any) -> None:
    user = factories.make_cluster_user(factories.make_cluster("aster"), factories.make_user())
    other = factories.make_cluster_user(user.cluster, factories.make_user())
    lab = factories.make_lab()
    RollupDay, RollupUser, RollupRuntime = (
        before_0015.get_model("telemetry", name) for name in ("RollupDay", "RollupUser", "RollupRuntime")
    )
    for owner, partitions in ((user, ("shared", "test")), (other, ("shared",))):
        key = {
            "cluster_id": user.cluster_id,
            "day": DAY,
            "cluster_user_id": owner.pk,
            "lab_id": lab.pk,
            "actor": "agent",
        }
        RollupUser.objects.create(**key)
        for place, partition in enumerate(partitions):
            day = RollupDay.objects.create(**key, partition=partition)
            if owner == user:
                RollupRuntime.objects.create(rollup_id=day.pk, bucket=3, jobs=2 + place)
                RollupRuntime.objects.create(rollup_id=day.pk, bucket=7 + place, jobs=1)
    call_command("migrate", "telemetry", verbosity=0)
    from telemetry.models import RollupDirty
    from telemetry.models import RollupUser as Now

    found = {row.cluster_user_id: sorted(unpack(row.runtimes)) for row in Now.objects.all()}
    assert found == {user.pk: [[3, 5], [7, 1], [8, 1]], other.pk: []}
    marked = RollupDirty.objects.values_list("cluster_id", "day", "cluster_user_id")
    assert set(marked) == {(user.cluster_id, DAY, each.pk) for each in (user, other)}
