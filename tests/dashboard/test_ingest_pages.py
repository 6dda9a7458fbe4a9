"""Ingest health: each source's state, what batches brought, and every refused row as text."""

import json
from datetime import timedelta

import pytest

from portal.core import audit, clock
from portal.core.actors import SYSTEM
from portal.core.errors import Invalid, NotAllowed
from portal.core.models import AuditEvent
from portal.dashboard.formats import duration
from principals.actors import SYSTEM_ACTOR
from principals.models import ClusterUser
from principals.permissions import actor_for_user
from telemetry.models import (
    IngestBatch,
    IngestGap,
    IngestSource,
    InventoryReading,
    QuarantinedRow,
    SchedulerCalls,
    ShimUse,
    SlurmReader,
)
from telemetry.selectors.sources import SourceState, state_of
from telemetry.services import expect_source
from tests.conftest import Cast, sign_in

HOSTILE = "<script>alert(1)</script>|FAILED|'\""


@pytest.fixture(autouse=True)
def _own_anchors(settings, tmp_path) -> None:  # type: ignore[no-untyped-def]
    settings.AUDIT_ANCHOR_FILE = str(tmp_path / "anchors")


@pytest.fixture
def batch(cast: Cast) -> IngestBatch:
    made = IngestBatch.objects.create(
        cluster=cast.cluster, source="api", name=HOSTILE, format="sacct", sent_by="reader", state="running",
        bytes_total=1000, offset=400, created_rows=5, updated_rows=2, duplicate_rows=3, late_rows=1, rejected_rows=2,
        started=clock.now(),
    )  # fmt: skip
    for line, reason in ((3, "columns"), (9, "time")):
        QuarantinedRow.objects.create(batch=made, line=line, reason=reason, detail="what is wrong", raw=HOSTILE)
    return made


@pytest.mark.parametrize(
    ("age_s", "every_s", "state"),
    [
        (None, 5, SourceState.NOT_CONFIGURED),
        (9, 5, SourceState.CURRENT),
        (11, 5, SourceState.LATE),
        (51, 5, SourceState.DOWN),
        (10**6, None, SourceState.CURRENT),
    ],
)
def test_a_source_is_judged_by_its_own_interval(age_s: int | None, every_s: int | None, state: SourceState) -> None:
    assert state_of(age_s, every_s) is state


def test_every_source_has_a_row_and_a_kind_without_one_too(cast: Cast) -> None:
    now = clock.now()
    for name, age in (("reader", 2), ("spool", 3600)):
        IngestSource.objects.create(
            cluster=cast.cluster, name=name, kind="jobs", expected_every_s=60,
            last_received=now - timedelta(seconds=age), last_record_at=now - timedelta(seconds=age + 7),
        )  # fmt: skip
    spool = IngestSource.objects.get(name="spool")
    IngestGap.objects.create(source=spool, since=now - timedelta(hours=9), until=now - timedelta(hours=2))
    response = sign_in(cast.staff).get("/ingest/")
    rows = response.context["sources"]
    assert [(row.gaps, row.silent_s) for row in rows[:2]] == [(0, 0), (1, 7 * 3600)]
    assert f'1<span class="sub">{duration(7 * 3600)}</span>' in response.content.decode()
    assert [(row.name, row.kind, str(row.state)) for row in rows] == [
        ("reader", "jobs", "current"), ("spool", "jobs", "down"),
        ("", "sessions", "not_configured"), ("", "findings", "not_configured"), ("", "gpu", "not_configured"),
        ("", "activity", "not_configured"), ("", "gateway", "not_configured"),
    ]  # fmt: skip
    assert rows[0].lag_s == 7


@pytest.mark.parametrize(("role", "status"), [("staff", 200), ("auditor", 200), ("infosec", 403), ("pi", 403)])
def test_staff_and_auditors_look(cast: Cast, batch: IngestBatch, role: str, status: int) -> None:
    client = sign_in(getattr(cast, role))
    assert client.get("/ingest/").status_code == status
    assert client.get(f"/ingest/batches/{batch.public_id}/").status_code == status


def test_refused_rows_are_shown_as_text_by_reason(cast: Cast, batch: IngestBatch) -> None:
    client = sign_in(cast.staff)
    for path in ("/ingest/", f"/ingest/batches/{batch.public_id}/"):
        page = client.get(path).content.decode()
        assert "<script>alert" not in page and "&lt;script&gt;alert" in page
        assert "columns" in page and "time" in page
        only = client.get(f"{path}?reason=time").content.decode()
        assert "what is wrong" in only
    assert [row.line for row in client.get("/ingest/?reason=time").context["rows"]] == [9]


def test_it_asks_again_only_while_something_runs(cast: Cast, batch: IngestBatch) -> None:
    client = sign_in(cast.staff)
    for path in ("/ingest/", f"/ingest/batches/{batch.public_id}/"):
        assert 'hx-trigger="every 2s"' in client.get(path).content.decode()
    IngestBatch.objects.update(state="done", finished=clock.now())
    for path in ("/ingest/", f"/ingest/batches/{batch.public_id}/"):
        assert "every 2s" not in client.get(path).content.decode()


@pytest.mark.parametrize(
    ("state", "taken", "says"),
    [
        ("failed", 0, "It was not read far enough for a row to be taken or refused."),
        ("failed", 7, "No row was refused before that; 7 rows were taken."),
        ("running", 7, "7 rows were taken from it so far."), ("done", 7, "7 rows were taken from it."),
    ],
)  # fmt: skip
def test_a_batch_without_refused_rows_says_why(cast: Cast, state: str, taken: int, says: str) -> None:
    made = IngestBatch.objects.create(
        cluster=cast.cluster, source="file", format="sacct", sent_by="x", state=state, created_rows=taken,
        error="The header is not known." if state == "failed" else "",
    )  # fmt: skip
    page = sign_in(cast.staff).get(f"/ingest/batches/{made.public_id}/").content.decode()
    assert says in page
    assert ("No row was refused<" in page) == (state == "done")


def test_each_list_is_exported_whole(cast: Cast, batch: IngestBatch) -> None:
    client = sign_in(cast.auditor)

    def rows(query: str) -> list[dict[str, object]]:
        response = client.get(f"/ingest/?format=json&{query}")
        return json.loads(b"".join(response.streaming_content) if response.streaming else response.content)

    assert [row["created_rows"] for row in rows("of=batches")] == [5]
    assert {row["reason"] for row in rows("of=quarantine")} == {"columns", "time"}
    assert {row["reason"] for row in rows("of=quarantine&reason=time")} == {"time"}
    assert {row["state"] for row in rows("of=sources")} == {"not_configured"}
    response = client.get(f"/ingest/batches/{batch.public_id}/?format=csv")
    assert b"".join(response.streaming_content).count(b"alert(1)") == 2


def test_the_page_says_how_far_chain_and_stream_are(cast: Cast) -> None:
    audit.record(actor=SYSTEM, verb="agent.suspend", object_kind="agent", object_id=1)
    audit.seal_all()
    context = sign_in(cast.staff).get("/ingest/").context
    assert context["chain"].words == "Verified up to #1" and context["chain"].anchored == 0


def test_a_reader_says_how_far_it_is_what_it_costs_and_what_went_wrong(cast: Cast) -> None:
    page = sign_in(cast.staff).get("/ingest/").content.decode()
    assert "Readers of Slurm" not in page
    now = clock.now()
    SlurmReader.objects.create(
        cluster=cast.cluster, looked=now, swept_until=now, unsettled=3, calls=40, busy_s=2.0,
        counted=now - timedelta(minutes=10), problem="squeue: <b>no controller</b>",
    )  # fmt: skip
    page = sign_in(cast.staff).get("/ingest/").content.decode()
    assert "squeue: &lt;b&gt;no controller&lt;/b&gt;" in page
    assert ("3 jobs" in page, ">4.0<" in page, "50 ms" in page) == (True, True, True)


def test_what_is_known_of_a_cluster_is_shown_with_its_age_and_what_went_wrong(cast: Cast) -> None:
    page = sign_in(cast.staff).get("/ingest/").content.decode()
    assert "What we know of the cluster" not in page
    for kind, number, read, problem in (
        ("nodes", 1740, clock.now(), ""), ("associations", 0, None, "sacctmgr: <b>denied</b>"),
    ):  # fmt: skip
        InventoryReading.objects.create(cluster=cast.cluster, kind=kind, number=number, read=read, problem=problem)
    page = sign_in(cast.staff).get("/ingest/").content.decode()
    assert ("Nodes<" in page, ">1,740<" in page) == (True, True)
    assert "sacctmgr: &lt;b&gt;denied&lt;/b&gt;" in page and "not yet" in page


def test_who_asks_the_scheduler_most_is_shown(cast: Cast) -> None:
    user = ClusterUser.objects.create(cluster=cast.cluster, login="<poller>")
    SchedulerCalls.objects.create(
        cluster=cast.cluster, day=clock.now().date(), cluster_user=user, calls=12_345, busy_us=12_345_000
    )
    page = sign_in(cast.staff).get("/ingest/").content.decode()
    assert "&lt;poller&gt;" in page
    assert ("12,345" in page, "1.0 ms" in page) == (True, True)


def test_sixty_batches_cost_as_many_queries_as_five(cast: Cast, django_assert_max_num_queries) -> None:  # type: ignore[no-untyped-def]
    def add(number: int) -> None:
        for _ in range(number):
            IngestBatch.objects.create(cluster=cast.cluster, source="api", format="sacct", sent_by="x", state="done")

    client = sign_in(cast.staff)
    asked = []
    for number in (5, 55):
        add(number)
        client.get("/ingest/")
        with django_assert_max_num_queries(40) as counted:
            client.get("/ingest/")
        asked.append(len(counted))
    assert asked[0] == asked[1]


@pytest.fixture
def source(cast: Cast) -> IngestSource:
    heard = clock.now() - timedelta(seconds=150)
    return IngestSource.objects.create(cluster=cast.cluster, name="reader", kind="jobs", last_received=heard)


def _expect(client, source: IngestSource, every_s: str):  # type: ignore[no-untyped-def]
    return client.post("/ingest/expected/", {"source": source.pk, "every_s": every_s})


def test_staff_say_how_often_a_source_is_expected_and_it_shows_as_late(cast: Cast, source: IngestSource) -> None:
    client = sign_in(cast.staff)
    before = client.get("/ingest/")
    assert [str(row.state) for row in before.context["sources"] if row.name] == ["current"]
    assert _expect(client, source, "60").status_code == 302
    page = client.get("/ingest/")
    assert [str(row.state) for row in page.context["sources"] if row.name] == ["late"]
    assert "reader of" in page.content.decode() and "is expected every" in page.content.decode()
    told = AuditEvent.objects.get(verb="ingest.expect").payload
    assert (told["before"], told["after"]) == ({"expected_every_s": None}, {"expected_every_s": 60})
    assert _expect(client, source, "").status_code == 302
    source.refresh_from_db()
    assert source.expected_every_s is None
    assert AuditEvent.objects.filter(verb="ingest.expect").count() == 2
    assert _expect(client, source, "").status_code == 302
    assert AuditEvent.objects.filter(verb="ingest.expect").count() == 2, "nothing changed, nothing to tell"


@pytest.mark.parametrize("every_s", ["0", "-5", "2678401", "often"])
def test_an_interval_that_is_none_is_refused_on_its_field(cast: Cast, source: IngestSource, every_s: str) -> None:
    answer = _expect(sign_in(cast.staff), source, every_s)
    assert answer.status_code == 422
    assert set(answer.context["expect_form"].errors) == {"every_s"}
    source.refresh_from_db()
    assert source.expected_every_s is None


def test_a_source_that_is_gone_is_refused_on_its_field(cast: Cast, source: IngestSource) -> None:
    gone = IngestSource(pk=source.pk + 1)
    assert set(_expect(sign_in(cast.staff), gone, "60").context["expect_form"].errors) == {"source"}


@pytest.mark.parametrize("role", ["auditor", "infosec", "pi"])
def test_others_set_no_interval_and_see_no_form(cast: Cast, source: IngestSource, role: str) -> None:
    client = sign_in(getattr(cast, role))
    assert _expect(client, source, "60").status_code == 403
    source.refresh_from_db()
    assert source.expected_every_s is None
    assert 'id="expect"' not in client.get("/ingest/").content.decode()


def test_the_service_refuses_what_no_form_would_send(cast: Cast, source: IngestSource) -> None:
    with pytest.raises(Invalid) as caught:
        expect_source(actor=SYSTEM_ACTOR, source=source, every_s=0)
    assert caught.value.code == "interval_out_of_range"
    with pytest.raises(NotAllowed):
        expect_source(actor=actor_for_user(cast.pi), source=source, every_s=60)


def test_it_shows_how_often_agents_asked_the_portal_instead_of_slurm(cast: Cast) -> None:
    given = {"cluster": cast.cluster, "day": clock.now().date(), "program": "squeue"}
    ShimUse.objects.create(**given, outcome="printed", times=4711)
    ShimUse.objects.create(**given, outcome="passed", reason="all_users", times=12)
    text = sign_in(cast.staff).get("/ingest/").content.decode()
    assert "Asked of the portal instead" in text and "4,711" in text and "all users" in text
