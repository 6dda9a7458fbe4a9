"""Sending the bodies of collectors as they would have come: each at its time, people's shells in a study."""

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from portal.core import clock
from portal.core.errors import Conflict
from portal.demo.paper.activity.bodies import STUDY, Bodies
from portal.demo.paper.plan import Plan
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster
from telemetry import services as telemetry_services
from telemetry.api.activity import MOST_BYTES, batch_of
from telemetry.schemas import ActivityIn

_LATE: Final = timedelta(minutes=1)
_STUDIED: Final = timedelta(days=90)
_STUDY_ENDS: Final = timedelta(days=5)  # behind the window


def send_all(
    plan: Plan, cluster: Cluster, split: Callable[[dict[str, Any]], Iterable[dict[str, Any]]],
    say: Callable[[str], object],
) -> dict[str, Any]:  # fmt: skip
    """Send every body, parted by `split`, and have their days added up; return the books.

    Errors: `Conflict` where a part is refused.
    """
    bodies = Bodies(plan, cluster.name)
    ends = datetime.fromtimestamp(plan.end_s, UTC)
    say(f"Sending what collectors saw in {len(bodies.watches)} watches of {bodies.watch_s // 3600} h …")
    with clock.at(ends + _STUDY_ENDS - _STUDIED):
        telemetry_services.start_study(
            actor=SYSTEM_ACTOR, cluster=cluster, name=STUDY, purpose="The people of the published measurement.",
            approved_by="nobody: these are made up", until=ends + _STUDY_ENDS,
        )  # fmt: skip
    for body in bodies:
        for part in split(body):
            _send(cluster, part)
    with clock.at(ends + _LATE):
        while telemetry_services.refresh_activity(cluster):
            pass
    return bodies.books.as_json()


def _send(cluster: Cluster, body: dict[str, Any]) -> None:
    """Send a body by the way of the API, behind its door."""
    text = json.dumps(body, separators=(",", ":"))
    if len(text) > MOST_BYTES:
        raise Conflict(f"A body has {len(text):,} bytes.", code="too_large")
    batch = batch_of(ActivityIn.model_validate_json(text))
    with clock.at(batch.until + _LATE):
        recorded = telemetry_services.record_activity(actor=SYSTEM_ACTOR, cluster=cluster, batch=batch)
    for refused in recorded.rejected[:1]:
        raise Conflict(f"{refused.part} {refused.index} of {batch.host} is refused: {refused.reason}.", code="refused")
