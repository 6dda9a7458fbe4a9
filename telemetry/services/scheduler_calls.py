"""What users asked of the scheduler's controller, added up by UTC day."""

from collections.abc import Mapping
from datetime import date
from typing import Final

from django.db import connection, transaction

from principals.actors import Actor
from principals.models import Cluster
from principals.services import Directory
from telemetry import permissions
from telemetry.engine.slurm.statistics import Asked

_ADD: Final = (
    "INSERT INTO telemetry_schedulercalls (cluster_id, day, cluster_user_id, calls, busy_us) "
    "VALUES (%s, %s, %s, %s, %s) "
    "ON CONFLICT (cluster_id, day, cluster_user_id) DO UPDATE SET "
    "calls = telemetry_schedulercalls.calls + excluded.calls, "
    "busy_us = telemetry_schedulercalls.busy_us + excluded.busy_us"
)


def add_calls(*, actor: Actor, cluster: Cluster, day: date, asked: Mapping[str, Asked]) -> None:
    """Add what login names asked on a UTC day to what is known of it. Errors: `NotAllowed`."""
    permissions.require_feed(actor, "jobs", cluster.name)
    directory = Directory(cluster)
    lines = [(cluster.pk, day, directory.user_id(login), *each) for login, each in sorted(asked.items())]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.executemany(_ADD, lines)
