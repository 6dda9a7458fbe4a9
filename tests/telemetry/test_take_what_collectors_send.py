"""What a collector makes of a node's processes is taken whole: both sides read one contract."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.db import transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.cli.collect.spool import sign
from portal.core import clock
from principals.models import AgentSession
from telemetry import services
from telemetry.engine.collector.batches import Sender, make
from telemetry.models import ActivityMinute, ActivitySubmission, CollectorReport, ExperimentLoop, PollingLoop
from tests import factories
from tests.conftest import Api, Cast
from tests.telemetry.engine.collector.node import BOOT_S, TTY, Node

pytestmark = pytest.mark.django_db
BOOT = "3f6cd7a2-0d8e-4a53-9a51-9be2a6a0c9d1"
RUN = str(uuid4())
LINES = (
    ("claude",), ("-bash",), ("bash", "-c", "sbatch a.sh"), ("sbatch", "a.sh"), ("squeue", "-j", "7"), ("tail", "a"),
    ("env", "A=1", "python3", "x.py"), ("rm", "-rf", "/"), ("curl", "https://github.com/a"), ("nosuch", "x"), (),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _soon_after() -> Iterator[None]:
    """The nodes of these tests stand in a time of their own."""
    with clock.at(datetime.fromtimestamp(BOOT_S, UTC) + timedelta(minutes=30)):
        yield


def bodies(node: Node, *, study: str = "") -> list[bytes]:
    sender = Sender("aster", "login1", BOOT, RUN, "0.1.0", study)
    made = make(node.close(), sender=sender, mode="events", login=lambda _: "colleague", new_id=lambda: str(uuid4()))
    return [each.body for each in made]


def post(api: Api, body: bytes):  # type: ignore[no-untyped-def]
    headers = {
        "idempotency-key": json.loads(body)["batch"], "x-gatehouse-signature": sign(api.token.encode(), body),
    }  # fmt: skip
    return api.client.post("/api/v1/ingest/activity", body, content_type="application/json", headers=headers)


def busy(*, study: bool) -> Node:
    """A harness that submits, looks, submits and polls, and a person at a terminal."""
    node = Node(study=study)
    shell = node.run(node.run(1, "claude"), "bash", "-c", "text")
    for argv in (("sbatch", "a.sh"), ("tail", "a"), ("sbatch", "a.sh"), *[("squeue", "-j", "7")] * 3):
        node.now_s += 2
        node.run(shell, *argv)
    node.run(node.run(1, "-bash", tty=TTY), "cat", "b", tty=TTY)
    node.say(events=50, execs=9)
    return node


@pytest.mark.parametrize("study", ["", "spring"])
def test_all_of_it_is_taken(cast: Cast, service_api: Api, study: str):
    if study:
        services.start_study(
            actor=factories.actor_of(cast.staff), cluster=cast.cluster, name=study, purpose="p", approved_by="a",
            starts=datetime.fromtimestamp(BOOT_S, UTC), until=clock.now() + timedelta(days=1),
        )  # fmt: skip
    [body] = bodies(busy(study=bool(study)), study=study)
    answer = post(service_api, body)
    assert (answer.status_code, answer.json()["rejected"]) == (200, [])
    kinds = ["agent", "interactive"] if study else ["agent"]
    assert list(AgentSession.objects.order_by("kind").values_list("kind", flat=True)) == kinds
    assert AgentSession.objects.get(kind="agent").agent == cast.agent
    acts = [ActivitySubmission.objects.count(), PollingLoop.objects.count(), ExperimentLoop.objects.count()]
    assert acts == [2, 1, 1]
    assert set(ActivityMinute.objects.values_list("driver", flat=True)) == {"agent", "human"}
    assert CollectorReport.objects.get().events == 50


@pytest.mark.parametrize("case", ["altered", "cut"])
def test_a_body_that_the_disk_altered_or_cut_is_refused_for_good(cast: Cast, service_api: Api, case: str):
    [body] = bodies(busy(study=False))
    signature = sign(service_api.token.encode(), body)
    arrived = body[:-9] if case == "cut" else body.replace(b'"events":50', b'"events":51')
    answer = service_api.client.post(
        "/api/v1/ingest/activity", arrived, content_type="application/json",
        headers={"x-gatehouse-signature": signature},
    )  # fmt: skip
    assert (answer.status_code, answer.json()["code"]) == (422, "signature_invalid")


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(LINES), st.sampled_from([0, TTY]), st.booleans())))
def test_whatever_runs_on_a_node_nothing_of_it_is_refused(
    starts: list[tuple[int, tuple[str, ...], int, bool]],
) -> None:
    node, pids = Node(), [1]
    for pick, argv, tty, ended in starts:
        node.now_s += 7
        pids.append(node.run(pids[pick % len(pids)], *argv, tty=tty, ended=ended))
    with transaction.atomic():
        api = Api(factories.make_service_token())
        for body in bodies(node):
            answer = post(api, body)
            assert (answer.status_code, answer.json()["rejected"]) == (200, [])
        transaction.set_rollback(True)
