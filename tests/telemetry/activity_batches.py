"""Batches of a collector for tests, as the API takes them: today's, so that nothing is too old."""

import json
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from portal.core import clock
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster
from telemetry import services
from telemetry.api.activity import batch_of
from telemetry.api.signatures import HEADER, signature_of
from telemetry.schemas import ActivityIn
from telemetry.services import RecordedActivity
from tests.conftest import Api

BOOT = "3f6cd7a2-0d8e-4a53-9a51-9be2a6a0c9d1"
RUN = "6a1f3c52-6f9b-44f1-8b33-2f9f6f4a7c11"
AGENT = "812-99731"
SHELL = "640-88120"


def minute(ago: int = 10) -> datetime:
    """The whole minute so many minutes ago."""
    return clock.now().replace(second=0, microsecond=0) - timedelta(minutes=ago)


def agent_session(**fields: Any) -> dict[str, Any]:
    """A session of Claude Code under the colleague's login, an hour old and going on."""
    return {
        "id": AGENT, "kind": "agent", "harness": "claude-code", "user": "colleague",
        "start": minute(70), "last": minute(9), "end": None,
    } | fields  # fmt: skip


def shell_session(**fields: Any) -> dict[str, Any]:
    """A person's shell."""
    return agent_session(**{"id": SHELL, "kind": "interactive", "harness": "", "user": "bystander"} | fields)


def counted(session: str = AGENT, driver: str = "agent", ago: int = 10, **counts: int) -> dict[str, Any]:
    """A minute of three commands, two of them text tools; `counts` are more measures (`category__build=1`)."""
    more = {name.replace("__", ":"): number for name, number in counts.items()}
    named = {"commands": 3, "category:text": 2} | more
    return {"session": session, "driver": driver, "minute": minute(ago), "counts": named}


def batch(**fields: Any) -> dict[str, Any]:
    """A batch of the last quarter of an hour on login1, of aster."""
    health = {
        "events": 900, "lost": 0, "argv_missed": 2, "vanished": 1, "sampled_share": 1.0, "cpu_s": 0.4,
        "memory_bytes": 41_000_000, "processes": 212,
    }  # fmt: skip
    return {
        "cluster": "aster", "host": "login1", "boot": BOOT, "run": RUN, "batch": str(uuid4()), "collector": "0.1.0",
        "mode": "events", "study": "", "from": minute(15), "to": minute(1), "health": health,
    } | fields  # fmt: skip


def record(cluster: Cluster, **fields: Any) -> RecordedActivity:
    """Record a batch as the system itself."""
    return services.record_activity(
        actor=SYSTEM_ACTOR, cluster=cluster, batch=batch_of(ActivityIn.model_validate(batch(**fields)))
    )


def reasons(recorded: RecordedActivity) -> list[tuple[str, int, str]]:
    """What was not taken."""
    return [(each.part, each.index, each.reason) for each in recorded.rejected]


def post(api: Api, sent: dict[str, Any], *, signed_as: bytes | None = None, key: str = "", token: str = ""):  # type: ignore[no-untyped-def]
    """Send a batch as a collector does."""
    body = json.dumps(sent, default=clock.written).encode()
    headers = {
        "idempotency-key": key or sent["batch"],
        HEADER: signature_of(body if signed_as is None else signed_as, token or api.token),
    }
    return api.client.post("/api/v1/ingest/activity", body, content_type="application/json", headers=headers)
