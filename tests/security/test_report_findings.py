"""Findings join or open incidents, once, for whom they concern, and never bring a secret in."""

import threading
from datetime import timedelta

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import Model

from portal.core import clock
from portal.core.errors import Invalid, NotAllowed
from portal.core.models import AuditEvent, LiveEvent
from principals.actors import SYSTEM_ACTOR
from principals.models import LabMembership
from principals.permissions import actor_for_user
from principals.services.sessions.recording import DeclaredSession, record_sessions
from security.models import Finding, Incident, IncidentEvent
from security.services import MAX_FINDINGS, report_findings
from telemetry.models import IngestSource
from tests import factories
from tests.conftest import Cast, sign_in
from tests.security.support import TOKEN, finding, make_incident, report

pytestmark = pytest.mark.sql


def everything_stored(*, leave_out: tuple[type[Model], ...] = ()) -> str:
    """Every value of every row of every table of ours, as one text."""
    models = [model for model in apps.get_models(include_auto_created=True) if model not in leave_out]
    return "\n".join(str(row) for model in models for row in model._base_manager.all().values())


def test_a_finding_opens_an_incident_with_its_clock(cast: Cast) -> None:
    before = clock.now()
    [outcome] = report(cast, finding())
    incident = Incident.objects.get()
    assert (outcome.outcome, outcome.incident) == ("opened", incident.number)
    assert (incident.severity, incident.state, incident.title) == ("high", "new", "Exposed key on login03")
    assert incident.due_at - incident.opened == timedelta(hours=1)
    assert before <= incident.opened <= clock.now()
    assert incident.sightings == 1
    assert list(incident.events.values_list("kind", flat=True)) == ["opened"]


def test_the_same_secret_in_other_places_joins_it(cast: Cast) -> None:
    report(cast, finding())
    moved = finding(surface="history", host="login01", place="~/.bash_history", evidence=f"export T={TOKEN}")
    [outcome] = report(cast, moved)
    assert outcome.outcome == "joined"
    incident = Incident.objects.get()
    assert (incident.sightings, incident.findings.count()) == (2, 2)


@pytest.mark.parametrize(
    "other",
    [
        {"login": "manager"},
        {"kind": "unsafe_command"},
        {"evidence": "curl -H 'Authorization: token ghp_" + "Zz9Yy8Xx7Ww6Vv5Uu4Tt3Ss2Rr1Qq0Pp9Oo8'"},
    ],
)
def test_another_person_kind_or_secret_is_another_incident(cast: Cast, other: dict) -> None:
    report(cast, finding(), finding(**other))
    assert Incident.objects.count() == 2


def test_sending_it_again_changes_nothing(cast: Cast) -> None:
    said = finding()
    first = report(cast, said)
    heard_last = (IngestSource,)  # of which it is the one thing that changes
    stored = everything_stored(leave_out=heard_last)
    again = report(cast, said, said)
    assert [outcome.outcome for outcome in again] == ["duplicate", "duplicate"]
    assert {outcome.incident for outcome in again} == {first[0].incident}
    assert everything_stored(leave_out=heard_last) == stored


def test_its_source_is_heard_but_not_by_history(cast: Cast) -> None:
    report(cast, finding(), at=clock.now() - timedelta(days=9))
    assert not IngestSource.objects.exists()
    report(cast, finding())
    source = IngestSource.objects.get()
    assert (source.cluster, source.kind) == (cast.cluster, "findings") and source.last_received is not None


def test_no_raw_secret_reaches_any_table(cast: Cast) -> None:
    everywhere = finding(
        agent=cast.agent.name, title=f"saw {TOKEN}", place=f"/scratch/{TOKEN}", reasons=(f"it is {TOKEN}",),
        preview=TOKEN, readable_by=f"who knows {TOKEN}", masked=(TOKEN,),
    )  # fmt: skip
    in_names = [finding(host=TOKEN), finding(login=TOKEN), finding(detector=TOKEN), finding(method=TOKEN)]
    outcomes = report(cast, everywhere, *in_names)
    assert [outcome.code for outcome in outcomes] == ["", *["secret_in_name"] * 4]
    row = Finding.objects.get()
    assert row.masks == ["[REDACTED:github_token]"]
    assert row.fingerprint and row.fingerprint != TOKEN
    assert TOKEN not in everything_stored()
    assert TOKEN[8:30] not in everything_stored()


def test_a_fingerprint_from_the_edge_is_keyed_again(cast: Cast) -> None:
    guessable = "d" * 64
    report(
        cast, finding(evidence="curl -H [token]", fingerprint=guessable), finding(evidence="x", fingerprint=guessable)
    )
    incident = Incident.objects.get()
    assert incident.fingerprint not in ("", guessable)
    assert guessable not in everything_stored()


def test_hostile_characters_are_made_visible(cast: Cast) -> None:
    report(cast, finding(evidence="a\x00b\x1b[31mc\ud800d\u202etxt.exe", title="t\x00t"))
    assert Finding.objects.get().evidence == "a\ufffdb\ufffd[31mc?d\ufffdtxt.exe"


def test_a_cured_incident_opens_again_and_an_old_one_stays_closed(cast: Cast) -> None:
    incident = make_incident(cast, occurred=clock.now() - timedelta(days=40))
    closed = clock.now() - timedelta(days=1)
    Incident.objects.filter(pk=incident.pk).update(state="resolved", closed_at=closed, closed_reason="revoked")
    [outcome] = report(cast, finding(agent=cast.agent.name))
    incident.refresh_from_db()
    assert (outcome.outcome, incident.state, incident.closed_at) == ("reopened", "reopened", None)
    assert incident.due_at - incident.reopened == timedelta(hours=1)

    Incident.objects.filter(pk=incident.pk).update(state="resolved", closed_at=clock.now() - timedelta(days=31))
    [outcome] = report(cast, finding(agent=cast.agent.name, place="elsewhere"))
    assert outcome.outcome == "opened"
    assert list(Incident.objects.order_by("pk").values_list("is_current", "state")) == [
        (False, "resolved"),
        (True, "new"),
    ]


def test_a_false_alarm_takes_the_same_finding_in_silently(cast: Cast) -> None:
    incident = make_incident(cast)
    closed = clock.now() - timedelta(days=1)
    Incident.objects.filter(pk=incident.pk).update(state="false_alarm", closed_at=closed)
    [outcome] = report(cast, finding(agent=cast.agent.name))
    incident.refresh_from_db()
    assert (outcome.outcome, incident.state, incident.sightings) == ("joined", "false_alarm", 2)


def test_a_worse_finding_raises_severity_and_shortens_the_clock(cast: Cast) -> None:
    incident = make_incident(cast)
    report(cast, finding(agent=cast.agent.name, severity="critical"))
    report(cast, finding(agent=cast.agent.name, severity="low", place="other"))
    incident.refresh_from_db()
    assert incident.severity == "critical"
    assert incident.due_at - incident.opened == timedelta(minutes=15)
    assert incident.events.filter(kind=IncidentEvent.Kind.RAISED).count() == 1


def test_it_knows_the_agent_and_lab_by_the_session(cast: Cast) -> None:
    start = clock.now() - timedelta(hours=1)
    declared = DeclaredSession(login="colleague", host="login03", kind="agent", harness="claude-code", started=start)
    [session] = record_sessions(cluster=cast.cluster, sessions=[declared])
    report(cast, finding())
    row = Finding.objects.get()
    assert (row.session, row.agent, row.lab) == (session.row, cast.agent, cast.lab)
    assert row.method == "seen in its session"


def test_a_person_of_two_labs_belongs_to_neither_here(cast: Cast) -> None:
    LabMembership.objects.create(lab=cast.other_lab, user=cast.colleague)
    report(cast, finding())
    assert Incident.objects.get().lab is None


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"kind": "strange"}, "kind_unknown"),
        ({"severity": "dire"}, "severity_unknown"),
        ({"surface": "moon"}, "surface_unknown"),
        ({"occurred": clock.now() + timedelta(hours=1)}, "occurred_in_future"),
        ({"occurred": clock.now().replace(tzinfo=None)}, "occurred_naive"),
        ({"agent": "nobody-knows-it"}, "agent_unknown"),
        ({"login": "", "host": ""}, "subject_missing"),
        ({"login": "a b"}, "login_malformed"),
        ({"detector": ""}, "detector_missing"),
        ({"evidence": "x" * 4001}, "too_long"),
        ({"confidence": 1.5}, "confidence_out_of_range"),
    ],
)
def test_a_bad_finding_is_refused_alone_with_its_reason(cast: Cast, said: dict, code: str) -> None:
    outcomes = report(cast, finding(**said), finding(place="good"))
    assert [outcome.outcome for outcome in outcomes] == ["rejected", "opened"]
    assert (outcomes[0].code, bool(outcomes[0].reason)) == (code, True)
    assert AuditEvent.objects.get(verb="finding.reject").payload["after"] == {"rejected": {code: 1}}


def test_it_asks_for_a_right_and_a_bound(cast: Cast) -> None:
    for user in (cast.pi, cast.colleague, cast.auditor):
        with pytest.raises(NotAllowed):
            report_findings(actor=actor_for_user(user), cluster=cast.cluster, findings=[finding()])
    with pytest.raises(Invalid, match="More than 500"):
        report(cast, *[finding()] * (MAX_FINDINGS + 1))
    assert not Finding.objects.exists()


def test_it_tells_those_who_may_see_it_and_history_tells_nobody(cast: Cast) -> None:
    incident = make_incident(cast)
    [event] = LiveEvent.objects.filter(name="incident.opened")
    assert set(event.topics) == {
        "facility:security",
        f"lab-incidents:{cast.lab.pk}",
        f"user-incidents:{cast.colleague.pk}",
    }
    assert event.payload["incident"] == incident.number
    report(cast, finding(login="manager", occurred=clock.now() - timedelta(days=3)))
    assert LiveEvent.objects.filter(name__startswith="incident.").count() == 1


def test_queries_do_not_grow_with_findings_that_join(cast: Cast, django_assert_max_num_queries) -> None:  # type: ignore[no-untyped-def]
    report(cast, finding())
    many = [finding(place=f"/scratch/{number}") for number in range(50)]
    with django_assert_max_num_queries(25):
        report(cast, *many)
    assert Incident.objects.get().sightings == 51


@pytest.mark.django_db(transaction=True)
def test_two_equal_findings_at_once_open_one_incident() -> None:
    lab = factories.make_lab("okafor", member=factories.make_user("colleague"))
    cluster = factories.make_cluster("aster")
    factories.make_cluster_user(cluster, lab.members.get())
    start, outcomes = threading.Barrier(4), []

    def send(place: str) -> None:
        try:
            start.wait(timeout=10)
            outcomes.extend(report_findings(actor=SYSTEM_ACTOR, cluster=cluster, findings=[finding(place=place)]))
        finally:
            connection.close()

    threads = [threading.Thread(target=send, args=(f"/scratch/{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert sorted(outcome.outcome for outcome in outcomes) == ["joined", "joined", "joined", "opened"]
    assert Incident.objects.get().sightings == 4


def test_it_works_end_to_end_for_the_person_concerned(cast: Cast) -> None:
    incident = make_incident(cast)
    assert sign_in(cast.colleague).get(incident.get_absolute_url()).status_code == 200
