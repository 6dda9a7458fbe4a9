"""Audit: who may see which acts, what the address narrows them to, and that a changed row shows."""

import json

import pytest
from django.core.cache import cache

from portal.core import audit
from portal.core.actors import SYSTEM, ActorRef
from portal.core.models import AuditEvent
from principals.permissions import actor_for_user
from tests.conftest import Cast, sign_in


@pytest.fixture(autouse=True)
def _own_anchors(settings, tmp_path) -> None:  # type: ignore[no-untyped-def]
    settings.AUDIT_ANCHOR_FILE = str(tmp_path / "anchors")


@pytest.fixture
def acts(cast: Cast) -> None:
    AuditEvent.objects.all()._raw_delete("default")  # what making the cast left
    colleague = actor_for_user(cast.colleague).ref
    outsider = actor_for_user(cast.outsider).ref
    agent = ActorRef(kind="agent", id=str(cast.agent.pk), label=cast.agent.name, on_behalf_of="colleague")
    audit.record(actor=SYSTEM, verb="agent.suspend", object_kind="agent", object_id=cast.agent.pk,
                 object_label="okafor-docking", lab_id=cast.lab.pk, before={"status": "active"},
                 after={"status": "suspended"}, reason="<b>tight</b> polling")  # fmt: skip
    audit.record(actor=colleague, verb="agent.issue_token", object_kind="token", object_id="k1")
    audit.record(actor=agent, verb="lesson.add", object_kind="lesson", object_id=5)
    audit.record(actor=outsider, verb="agent.register", object_kind="agent", object_id=99, lab_id=cast.other_lab.pk)


def verbs(client, query: str = "") -> set[str]:  # type: ignore[no-untyped-def]
    response = client.get(f"/audit/?format=json&{query}")
    return {row["verb"] for row in json.loads(b"".join(response.streaming_content))}


EVERYTHING = {"agent.suspend", "agent.issue_token", "lesson.add", "agent.register"}


@pytest.mark.parametrize(
    ("role", "seen"),
    [
        ("staff", EVERYTHING),
        ("auditor", EVERYTHING),
        ("pi", {"agent.suspend"}),
        ("manager", {"agent.suspend"}),
        ("colleague", {"agent.issue_token", "lesson.add"}),
        ("outsider", {"agent.register"}),
    ],
)
def test_each_sees_their_part(cast: Cast, acts: None, role: str, seen: set[str]) -> None:
    client = sign_in(getattr(cast, role))
    assert verbs(client) == seen
    assert {row["event"].verb for row in client.get("/audit/").context["rows"]} == seen


@pytest.mark.parametrize(
    ("query", "seen"),
    [
        ("verb=agent", {"agent.suspend", "agent.issue_token", "agent.register"}),
        ("verb=agent.suspend", {"agent.suspend"}),
        ("actor=colleague", {"agent.issue_token", "lesson.add"}),
        ("object=okafor-docking", {"agent.suspend"}),
        ("kind=token", {"agent.issue_token"}),
        ("lab=marlowe", {"agent.register"}),
        ("from=2001-01-01&to=2001-01-02", set()),
    ],
)
def test_the_address_narrows_it(cast: Cast, acts: None, query: str, seen: set[str]) -> None:
    assert verbs(sign_in(cast.staff), query) == seen


def test_a_row_says_before_and_after_and_why(cast: Cast, acts: None) -> None:
    page = sign_in(cast.pi).get("/audit/").content.decode()
    assert "<del>active</del>" in page and "<ins>suspended</ins>" in page
    assert "&lt;b&gt;tight&lt;/b&gt; polling" in page
    assert "not sealed yet" in page


def test_it_says_how_far_the_chain_is_verified(cast: Cast, acts: None) -> None:
    audit.seal_all()
    assert "Verified up to #4" in sign_in(cast.auditor).get("/audit/").content.decode()


def test_a_changed_row_breaks_it_for_all_to_see(cast: Cast, acts: None) -> None:
    audit.seal_all()
    AuditEvent.objects.filter(verb="lesson.add").update(actor_label="somebody-else")
    cache.clear()
    page = sign_in(cast.auditor).get("/audit/").content.decode()
    assert "The audit chain is broken" in page and "was changed after it was sealed" in page


def test_the_end_of_a_long_chain_is_verified_from_the_row_before(cast: Cast, acts: None) -> None:
    audit.seal_all()
    assert list(audit.verify({}, after=2)) == []
    AuditEvent.objects.filter(seq=4).update(verb="agent.retire")
    assert [fault.seq for fault in audit.verify({}, after=2)] == [4]
    assert [fault.seq for fault in audit.verify({}, after=3)] == [4]


def test_a_malformed_day_is_refused(cast: Cast) -> None:
    assert sign_in(cast.staff).get("/audit/?from=monday").status_code == 422


def test_sixty_events_cost_as_many_queries_as_five(cast: Cast, django_assert_max_num_queries) -> None:  # type: ignore[no-untyped-def]
    client = sign_in(cast.staff)
    asked = []
    for number in (5, 55):
        for each in range(number):
            audit.record(actor=SYSTEM, verb="agent.suspend", object_kind="agent", object_id=each)
        client.get("/audit/")
        with django_assert_max_num_queries(40) as counted:
            client.get("/audit/")
        asked.append(len(counted))
    assert asked[0] == asked[1]


def test_nested_values_are_words_and_digests_are_short(cast: Cast) -> None:
    digest = "4f1c9a" * 10 + "e07b"
    audit.record(actor=SYSTEM, verb="lesson.add", object_kind="lesson", object_id=7, object_label=digest,
                 after={"outcomes": {"joined": 1, "not_known": 2}, "digest": digest,
                        "capabilities": [{"network": True}, "read"]})  # fmt: skip
    audit.record(actor=SYSTEM, verb="incident.assign", object_kind="incident", object_id=8, before={"is": "u0014"},
                 after={"is": "u0015"})  # fmt: skip
    client = sign_in(cast.staff)
    rows = {row["event"].verb: row for row in client.get("/audit/").context["rows"]}
    said = {change.name: str(change.after) for change in rows["lesson.add"]["changes"]}
    assert said == {
        "outcomes": "joined 1, not known 2",
        "digest": f"{digest[:12]}…",
        "capabilities": "(network yes), read",
    }
    assert str(rows["lesson.add"]["object"]) == f"{digest[:12]}…"
    only = rows["incident.assign"]["changes"]
    assert [(change.name, str(change.before), str(change.after)) for change in only] == [("", "u0014", "u0015")]
    page = client.get("/audit/").content.decode()
    assert f'<ins title="{digest}">{digest[:12]}…</ins>' in page
    assert f"<p>digest <ins>{digest}</ins></p>" in page  # for who cannot hover
    assert "{&#x27;" not in page
