"""The pages show what may be seen, as text, keep their filters in the address, and do one act a form."""

import csv
import io
import json
from datetime import timedelta

import pytest

from portal.core import clock
from principals.models import Hold
from security.models import Incident
from tests.conftest import Cast, sign_in
from tests.security.support import TOKEN, make_incident

pytestmark = pytest.mark.sql
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def texts(cast: Cast, path: str, user: str = "infosec") -> str:
    answer = sign_in(getattr(cast, user)).get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def test_an_empty_list_says_what_will_come(cast: Cast) -> None:
    assert "No open incident" in texts(cast, "/incidents/")
    assert "No incident matches" in texts(cast, "/incidents/?kind=polling_loop")


def test_the_most_urgent_is_first_and_open_beside_the_list(cast: Cast) -> None:
    make_incident(cast, title="a slow one", kind="polling_loop")
    urgent = make_incident(cast, title="a quick one", severity="critical")
    page = texts(cast, "/incidents/")
    assert page.index("a quick one") < page.index("a slow one")
    assert f'<h2 class="inc-title" id="inc-t">{urgent.title}</h2>' in page


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {"key", "loop"}),
        ("state=all", {"key", "loop", "closed"}),
        ("state=closed", {"closed"}),
        ("state=triaged", {"loop"}),
        ("severity=high", {"key"}),
        ("kind=polling_loop", {"loop"}),
        ("lab=okafor", {"key"}),
        ("lab=none-such", set()),
        ("who=me", {"loop"}),
        ("who=nobody", {"key"}),
        ("late=1", {"loop"}),
        ("month=this&state=all", {"key", "loop", "closed"}),
        ("state=nonsense&severity=%00&sort=;drop", {"key", "loop"}),
    ],
)
def test_filters_live_in_the_address_and_exports_hold_the_same_rows(cast: Cast, query: str, found: set) -> None:
    make_incident(cast, title="key")
    loop = make_incident(cast, title="loop", kind="polling_loop", agent=cast.foreign_agent.name, login="")
    closed = make_incident(cast, title="closed", kind="unsafe_command")
    Incident.objects.filter(pk=loop.pk).update(
        state="triaged", assignee=cast.infosec, due_at=clock.now() - timedelta(1)
    )
    Incident.objects.filter(pk=closed.pk).update(state="accepted", closed_at=clock.now(), due_at=None)
    client = sign_in(cast.infosec)
    listed = {row.incident.title for row in client.get(f"/incidents/?{query}").context["rows"]}
    as_json = json.loads(client.get(f"/incidents/?{query}&format=json").content)
    as_csv = list(csv.DictReader(io.StringIO(client.get(f"/incidents/?{query}&format=csv").content.decode())))
    assert listed == found == {row["title"] for row in as_json} == {row["title"] for row in as_csv}


def test_an_export_holds_all_pages_and_only_what_one_may_see(cast: Cast) -> None:
    for number in range(30):
        make_incident(cast, kind="other", place=str(number))
    make_incident(cast, agent=cast.foreign_agent.name, login="")
    client = sign_in(cast.pi)
    assert len(client.get("/incidents/").context["rows"]) == 25
    assert len(client.get("/incidents/?page=2").context["rows"]) == 5
    assert len(json.loads(client.get("/incidents/?page=2&format=json").content)) == 30
    assert client.get("/incidents/?format=exe").status_code == 422


def test_sorting_changes_the_order(cast: Cast) -> None:
    make_incident(cast, title="old and bad", severity="critical", at=clock.now() - timedelta(days=2))
    make_incident(cast, title="new and mild", kind="polling_loop")
    client = sign_in(cast.infosec)
    orders = {
        sort: [row.incident.title for row in client.get(f"/incidents/?sort={sort}").context["rows"]]
        for sort in ("-opened", "opened", "-severity", "severity")
    }
    bad_first, mild_first = ["old and bad", "new and mild"], ["new and mild", "old and bad"]
    assert orders == {"-opened": mild_first, "opened": bad_first, "-severity": bad_first, "severity": mild_first}


def test_evidence_is_text_and_masked(cast: Cast) -> None:
    incident = make_incident(cast, title=HOSTILE, place=HOSTILE, evidence=f"{HOSTILE} {TOKEN}", reasons=(HOSTILE,))
    page = texts(cast, incident.get_absolute_url())
    assert HOSTILE not in page and "<img" not in page and TOKEN not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert '<span class="mask">[REDACTED:github_token]</span>' in page


@pytest.mark.parametrize("user", ["pi", "colleague", "staff", "auditor"])
def test_others_read_and_find_nothing_to_press(cast: Cast, user: str) -> None:
    page = texts(cast, make_incident(cast).get_absolute_url(), user)
    assert 'name="act"' not in page
    assert "InfoSec works on incidents" in page


def test_somebody_elses_incident_is_not_there(cast: Cast) -> None:
    answer = sign_in(cast.outsider).get(make_incident(cast).get_absolute_url())
    assert (answer.status_code, b"none you may see" in answer.content) == (404, True)


def test_an_act_comes_back_to_the_same_list(cast: Cast) -> None:
    incident = make_incident(cast)
    client = sign_in(cast.infosec)
    answer = client.post(f"{incident.get_absolute_url()}?severity=high", {"act": "move:new:triaged"})
    assert answer["Location"] == f"{incident.get_absolute_url()}?severity=high#inc-t"
    incident.refresh_from_db()
    assert incident.state == "triaged"
    assert f"{incident.number} is triaged." in client.get(incident.get_absolute_url()).content.decode()


@pytest.mark.parametrize(
    ("form", "state"),
    [
        ({"act": "move:new:false_alarm", "reason": "A test key."}, "false_alarm"),
        ({"act": "contain", "reason": "It can write."}, "contained"),
        ({"act": "assign:me"}, "new"),
        ({"act": "note", "text": "Asked the owner."}, "new"),
    ],
)
def test_every_form_does_its_act(cast: Cast, form: dict, state: str) -> None:
    incident = make_incident(cast)
    assert sign_in(cast.infosec).post(incident.get_absolute_url(), form).status_code == 302
    incident.refresh_from_db()
    assert incident.state == state
    assert incident.events.count() > 1
    assert Hold.objects.in_force().exists() == (form["act"] == "contain")


@pytest.mark.parametrize(
    ("form", "status", "words"),
    [
        ({"act": "contain", "reason": ""}, 422, "Say why."),
        ({"act": "contain", "reason": "long " * 200}, 422, "at most 500"),
        ({"act": "note", "text": ""}, 422, "The note is empty."),
        ({"act": "move:triaged:contained"}, 409, "Somebody else moved"),
        ({"act": "move:new"}, 422, "something unknown"),
        ({"act": "move:new:mars"}, 422, "no such state"),
        ({"act": "rm -rf"}, 422, "something unknown"),
        ({}, 422, "something unknown"),
    ],
)
def test_a_refused_act_says_why_and_keeps_what_was_typed(cast: Cast, form: dict, status: int, words: str) -> None:
    incident = make_incident(cast)
    answer = sign_in(cast.infosec).post(incident.get_absolute_url(), form)
    page = answer.content.decode()
    assert (answer.status_code, words in page) == (status, True)
    assert form.get("reason", "") in page
    incident.refresh_from_db()
    assert (incident.state, incident.events.count()) == ("new", 1)


def test_queries_do_not_grow_with_rows(cast: Cast, django_assert_max_num_queries) -> None:  # type: ignore[no-untyped-def]
    for number in range(30):
        make_incident(cast, kind="other", place=str(number))
    client = sign_in(cast.infosec)
    client.get("/incidents/")
    with django_assert_max_num_queries(28):
        client.get("/incidents/")
    with django_assert_max_num_queries(14):
        client.get("/incidents/?format=csv")
