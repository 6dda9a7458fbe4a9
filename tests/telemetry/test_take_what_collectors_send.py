"""What the collector makes, the portal takes: all of it, as it was signed."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.db import transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.cli.posting import sign
from portal.core import clock
from principals.models import AgentSession
from telemetry import services
from telemetry.engine.collector.batches import Batch, Sender, make
from telemetry.models import ActivityMinute, ActivitySubmission, CollectorReport, ExperimentLoop, PollingLoop
from tests import factories
from tests.conftest import Api, Cast
from tests.telemetry.engine.collector.node import BOOT_S, TTY, Node
from tests.telemetry.engine.collector.records.sensors import FORMS, facts_of, parts_of, work
from tests.telemetry.engine.collector.test_places import connect, run

pytestmark = pytest.mark.django_db
STUDY = "spring-2027"
LINES = (
    ("claude",), ("-bash",), ("bash", "-c", "sbatch a.sh"), ("sbatch", "a.sh"), ("squeue", "-j", "7"), ("tail", "a"),
    ("env", "A=1", "python3", "x.py"), ("rm", "-rf", "/"), ("curl", "https://github.com/a"), ("nosuch", "x"), (),
)  # fmt: skip
DAY = datetime.fromtimestamp(BOOT_S, UTC)


@pytest.fixture(autouse=True)
def _time_of_the_node() -> Iterator[None]:
    with clock.at(datetime.fromtimestamp(BOOT_S + 600, UTC)):
        yield


def batches_of(node: Node, study: str = "") -> list[Batch]:
    sender = Sender("aster", "login1", str(uuid4()), str(uuid4()), "0.1.0", study)
    return list(
        make(node.close(), sender=sender, mode="events", login=lambda _: "colleague", new_id=lambda: str(uuid4()))
    )


def send(api: Api, batch: Batch) -> dict[str, object]:
    signature = sign(api.token.encode(), batch.body)
    answer = api.client.post(
        "/api/v1/ingest/activity", batch.body, content_type="application/json",
        headers={"idempotency-key": batch.id, "x-gatehouse-signature": signature},
    )  # fmt: skip
    assert answer.status_code == 200, answer.content
    told: dict[str, object] = json.loads(answer.content)
    return told


def busy(*, study: bool) -> Node:
    """An agent that submits, looks and submits again, and asks in a loop; a person; a service. One shell becomes a
    harness, and one program's words are gone."""
    node = Node(study=study)
    claude = node.run(1, "claude")
    shell = node.run(claude, "bash", "-c", "x")
    for argv in (("sbatch", "a"), ("tail", "out"), ("sbatch", "a"), *[("squeue", "-j", "7")] * 4):
        node.now_s += 5
        node.run(shell, *argv)
    node.run(shell, "true", ended=True)
    person = node.run(1, "-bash", tty=TTY)
    node.run(person, "ls", tty=TTY)
    node.execute(person, "codex", tty=TTY)
    node.run(person, "sbatch", "b")
    node.run(1, "cron-job")
    node.exit(claude)
    return node


def test_by_default(cast: Cast, service_api: Api) -> None:
    [batch] = batches_of(busy(study=False))
    told = send(service_api, batch)
    assert told["rejected"] == []
    assert told["accepted"] == {"sessions": 2, "minutes": 5, "submissions": 3, "polling": 1, "loops": 1, "ssh": 0}
    assert set(AgentSession.objects.values_list("kind", "harness")) == {("agent", "claude-code"), ("agent", "codex")}
    assert (ActivitySubmission.objects.count(), PollingLoop.objects.count(), ExperimentLoop.objects.count()) == (
        3,
        1,
        1,
    )
    assert {each.driver for each in ActivityMinute.objects.filter(session=None)} == {"human", "unknown"}


def test_where_it_was_done(cast: Cast, service_api: Api) -> None:
    node = Node(markers=("codex",))
    run(node, run(node, run(node, 1, "bash", "slurm_script", job=7), "claude"), "ls")
    run(node, connect(node, "bash", "-c", "ls", marker=1), "ls")
    run(node, connect(node, "bash", "-c", "cd"), "ls")
    connect(node, "bash", "-c", "cd")
    run(node, 1, "cron-job")
    [batch] = batches_of(node)
    told = send(service_api, batch)
    assert told["rejected"] == []
    sessions = AgentSession.objects.values_list("harness", "place", "raw_job_id")
    assert set(sessions) == {("claude-code", "job", 7), ("codex", "ssh", None)}
    node_minutes = {each.place: each.counts for each in ActivityMinute.objects.filter(session=None)}
    assert (node_minutes["ssh"]["ssh_connection"], node_minutes["ssh"]["commands"]) == (2, 1)
    assert node_minutes.keys() == {"login", "job", "ssh"}


def test_in_a_study(cast: Cast, service_api: Api) -> None:
    services.start_study(
        actor=factories.actor_of(cast.staff), cluster=cast.cluster, name=STUDY, purpose="A test.", approved_by="IRB",
        starts=DAY - timedelta(days=1), until=DAY + timedelta(days=1),
    )  # fmt: skip
    [batch] = batches_of(busy(study=True), STUDY)
    told = send(service_api, batch)
    assert told["rejected"] == []
    kinds = set(AgentSession.objects.values_list("kind", "harness"))
    assert kinds == {("agent", "claude-code"), ("agent", "codex"), ("interactive", "")}


@pytest.mark.parametrize("form", FORMS)
def test_what_a_site_s_own_sensor_records(cast: Cast, service_api: Api, form: str) -> None:
    parts = parts_of(facts_of(form, FORMS[form](work())))
    sender = Sender("aster", "login1", str(uuid4()), str(uuid4()), "0.1.0", "")
    made = make(parts, sender=sender, mode="records", login=lambda _: "colleague", new_id=lambda: str(uuid4()))
    with clock.at(datetime.fromtimestamp(parts.to_s, UTC)):
        [told] = [send(service_api, batch) for batch in made]
    assert told == {
        "accepted": {"sessions": 1, "minutes": 3, "submissions": 2, "polling": 1, "loops": 1, "ssh": 0}, "rejected": [],
    }  # fmt: skip
    assert CollectorReport.objects.get().mode == CollectorReport.Mode.RECORDS


@pytest.mark.parametrize("case", ["altered", "cut"])
def test_a_body_that_the_way_altered_or_cut_is_refused_for_good(cast: Cast, service_api: Api, case: str) -> None:
    [batch] = batches_of(busy(study=False))
    answer = service_api.client.post(
        "/api/v1/ingest/activity", batch.body[:-9] if case == "cut" else batch.body.replace(b"login1", b"login2"),
        content_type="application/json",
        headers={"x-gatehouse-signature": sign(service_api.token.encode(), batch.body)},
    )  # fmt: skip
    assert (answer.status_code, answer.json()["code"]) == (422, "signature_invalid")
    assert not AgentSession.objects.exists()


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
        assert all(send(api, each)["rejected"] == [] for each in batches_of(node))
        transaction.set_rollback(True)
