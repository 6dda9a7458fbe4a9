"""The pages about agents: everybody sees theirs, acts as far as they may, and a token is shown once."""

import re
from datetime import timedelta

import pytest

from policies import services as policy_services
from portal.core import clock
from portal.dashboard.components.words import facility_zone
from principals import selectors
from principals import services as principal_services
from principals.models import Agent, AgentSession, AgentToken, Hold
from tests import factories
from tests.conftest import Api, Cast, sign_in

WISH = {
    "name": "okafor-membrane",
    "harness": "claude-code",
    "purpose": "Prepares membranes.",
    "autonomy": "supervised",
    "owner": "colleague",
    "expires": (clock.now() + timedelta(days=90)).date().isoformat(),
    "hosts": "login03, login04",
    "partitions": "shared",
    "aup_version": "2026-06",
    "accept": "on",
}


def _register(cast: Cast, who: str = "pi", **changes: str):  # type: ignore[no-untyped-def]
    data = {name: value for name, value in (WISH | changes).items() if value != ""}
    return sign_in(getattr(cast, who)).post("/my-lab/okafor/register/", data)


def test_a_pi_registers_accepts_and_gets_a_token_that_works(cast: Cast) -> None:
    response = _register(cast)
    assert response.status_code == 200
    token = re.search(r"gha_\w{12}\.\w{40}", response.content.decode())
    assert token
    assert Api(token[0]).get("/me").json()["agent"] == "okafor-membrane"
    agent = Agent.objects.get(name="okafor-membrane")
    assert (agent.hosts, agent.owner.username) == (["login03", "login04"], "colleague")


def test_an_active_agent_that_is_held_is_not_listed_as_active(cast: Cast, django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    other = factories.make_agent(cast.lab, cast.manager, "okafor-free")
    client = sign_in(cast.pi)

    def listed(query: str = "") -> dict[str, str]:
        return {row["agent"].name: row["state"] for row in client.get(f"/agents/{query}").context["rows"]}

    assert listed() == {cast.agent.name: "active", other.name: "active"}
    Hold.objects.create(
        subject_kind="user", subject_id=cast.colleague.pk, kind="aup", code="aup_lapsed", reason="AUP not accepted",
        placed_by="gatehouse",
    )  # fmt: skip
    assert listed() == {cast.agent.name: "aup_required", other.name: "active"}
    page = client.get("/agents/").content.decode()
    assert "AUP required" in page and "AUP not accepted" in page
    assert "AUP required" in client.get(f"/agents/{cast.agent.name}/").content.decode()
    Hold.objects.create(
        subject_kind="lab", subject_id=cast.lab.pk, kind="containment", code="contained", reason="Key seen",
        placed_by="infosec",
    )  # fmt: skip
    assert listed() == {cast.agent.name: "held", other.name: "held"}
    counted = {tile["state"]: tile["count"] for tile in client.get("/agents/").context["states"]}
    assert (counted["active"], counted["held"]) == (0, 2)
    Hold.objects.filter(kind="containment").update(lifted_at=clock.now())
    counted = {tile["state"]: tile["count"] for tile in client.get("/agents/").context["states"]}
    assert (counted["active"], counted["held"]) == (1, 1)
    assert listed("?status=active") == {other.name: "active"}
    assert listed("?status=held") == {cast.agent.name: "aup_required"}
    assert len(listed("?status=active,held")) == 2 and listed("?status=held,retired").keys() == {cast.agent.name}
    exported = client.get("/agents/?format=json").json()
    assert {row["name"]: row["held"] for row in exported} == {cast.agent.name: True, other.name: False}
    Hold.objects.update(lifted_at=clock.now())
    assert listed() == {cast.agent.name: "active", other.name: "active"}
    with django_assert_num_queries(1):
        assert selectors.holds_on_agents([cast.agent, other]) == {cast.agent.pk: [], other.pk: []}


def test_the_token_is_shown_once(cast: Cast) -> None:
    response = _register(cast)
    secret = re.search(r"gha_\w{12}\.(\w{40})", response.content.decode())[1]  # type: ignore[index]
    assert "no-store" in response["Cache-Control"]
    page = sign_in(cast.pi).get("/agents/okafor-membrane/").content.decode()
    assert secret not in page


def test_reloading_the_page_of_a_first_token_leads_to_its_agent(cast: Cast) -> None:
    client = sign_in(cast.pi)
    assert "gha_" in client.post("/my-lab/okafor/register/", WISH).content.decode()
    again = client.post("/my-lab/okafor/register/", WISH, follow=True)
    assert again.redirect_chain == [("/agents/okafor-membrane/", 302)]
    page = again.content.decode()
    assert "was shown once and cannot be shown again" in page and "Make a token" in page
    assert AgentToken.objects.count() == 1


def test_reloading_the_page_of_another_token_makes_none(cast: Cast) -> None:
    client = sign_in(cast.colleague)
    wish = {"label": "night", "scopes": ["me:read"], "csrfmiddlewaretoken": "of one page"}
    assert "gha_" in client.post("/agents/okafor-docking/tokens/", wish).content.decode()
    assert client.post("/agents/okafor-docking/tokens/", wish).status_code == 302
    assert AgentToken.objects.count() == 1
    fresh = client.post("/agents/okafor-docking/tokens/", wish | {"csrfmiddlewaretoken": "of another"})
    assert "gha_" in fresh.content.decode()


def test_without_acceptance_nothing_is_registered_and_nothing_typed_is_lost(cast: Cast) -> None:
    response = _register(cast, accept="")
    assert response.status_code == 422
    assert not Agent.objects.filter(name="okafor-membrane").exists()
    assert "Prepares membranes." in response.content.decode()


def test_the_pass_follows_the_form(cast: Cast) -> None:
    client = sign_in(cast.pi)
    assert "Standard" in _pass(client.get("/my-lab/").content.decode())
    said = {"autonomy": "unattended", "owner": "colleague", "hosts": "login03", "partitions": "gpu-shared"}
    shown = client.get("/my-lab/okafor/pass.html", said).content.decode()
    for words in ("Elevated", "3 points", "Unattended", "colleague", "login03", "gpu-shared", "then staff", "30 days"):
        assert words in shown, words
    named = {"autonomy": "unattended", "partitions": "shared"}
    assert "then staff" not in client.get("/my-lab/okafor/pass.html", named).content.decode()
    odd = client.get("/my-lab/okafor/pass.html", {"autonomy": "wild", "owner": "outsider"}).content.decode()
    assert "Supervised" in odd and "outsider" not in odd


def test_the_pass_stands_as_it_was_chosen_when_the_form_comes_back(cast: Cast) -> None:
    page = _register(cast, accept="", autonomy="unattended", partitions="gpu-shared").content.decode()
    shown = _pass(page)
    assert "Elevated" in shown and "login03, login04" in shown and "colleague" in shown


def _pass(page: str) -> str:
    return page.split('id="pass"')[1].split('id="next"')[0]


def test_the_form_says_when_staff_approve_too(cast: Cast) -> None:
    page = sign_in(cast.pi).get("/my-lab/").content.decode()
    assert "Staff approve this too" not in page
    assert "What has 3 points and more also waits for staff" in page


def test_a_bad_name_gets_a_free_one_suggested_at_its_field(cast: Cast) -> None:
    response = _register(cast, name="okafor membrane")
    assert response.status_code == 422
    assert "okafor-membrane" in response.content.decode()


def test_every_fault_of_a_registration_is_told_at_once(cast: Cast) -> None:
    far = (clock.now() + timedelta(days=900)).date().isoformat()
    response = _register(cast, name="okafor membrane", harness="abacus", purpose=" ", expires=far, accept="")
    assert response.status_code == 422
    assert set(response.context["form"].errors) == {"name", "harness", "purpose", "expires", "accept"}
    assert "okafor-membrane" in response.context["form"].errors["name"][0]


def test_an_aup_published_meanwhile_stops_the_registration_whole(cast: Cast) -> None:
    policy_services.current_aup()
    response = _register(cast, aup_version="2025-01")
    assert response.status_code == 409
    assert not Agent.objects.filter(name="okafor-membrane").exists()


def test_a_member_waits_for_the_pi(cast: Cast) -> None:
    response = _register(cast, "colleague")
    assert response.status_code == 302
    assert "asks to be registered" in sign_in(cast.pi).get("/my-lab/").content.decode()
    sign_in(cast.pi).post("/agents/okafor-membrane/approve/")
    assert Agent.objects.get(name="okafor-membrane").status == "active"


def test_an_empty_registry_offers_registering_to_the_people_of_a_lab_alone(cast: Cast) -> None:
    Agent.objects.all().delete()
    offer = "Register one on My lab"
    assert offer in sign_in(cast.pi).get("/agents/").content.decode()
    for staff in (cast.staff, cast.infosec):
        page = sign_in(staff).get("/agents/").content.decode()
        assert offer not in page and "The people of a lab register its agents" in page


def test_without_a_lab_staff_are_told_that_they_need_none_and_others_who_adds_them(cast: Cast) -> None:
    assert "Your office needs none" in sign_in(cast.staff).get("/my-lab/").content.decode()
    stranger = factories.make_user("stranger")
    assert "Staff add you to the lab of your PI" in sign_in(stranger).get("/my-lab/").content.decode()


def test_another_lab_is_not_there(cast: Cast) -> None:
    assert sign_in(cast.outsider).post("/my-lab/okafor/register/", WISH).status_code == 404
    assert sign_in(cast.outsider).get("/my-lab/?lab=okafor").status_code == 404
    assert sign_in(cast.outsider).get("/agents/okafor-docking/").status_code == 404


def test_suspending_asks_why_and_stops_it(cast: Cast) -> None:
    client = sign_in(cast.staff)
    assert client.post("/agents/okafor-docking/suspend/", {}).status_code == 422
    client.post("/agents/okafor-docking/suspend/", {"reason": "tight polling", "days": "7"})
    hold = selectors.holds_on_agent(cast.agent).get()
    assert "tight polling" in hold.reason
    page = client.get("/agents/okafor-docking/").content.decode()
    assert "tight polling" in page and "Resume agent" in page
    client.post("/agents/okafor-docking/resume/", {"reason": "talked to them"})
    assert not selectors.holds_on_agent(cast.agent).exists()


def test_revoking_a_token(cast: Cast) -> None:
    plain = factories.make_token(cast.agent)
    row = factories.token_row(plain)
    assert sign_in(cast.outsider).post(f"/agents/okafor-docking/tokens/{row.key}/revoke/").status_code == 404
    sign_in(cast.colleague).post(f"/agents/okafor-docking/tokens/{row.key}/revoke/")
    assert AgentToken.objects.get().state == "revoked"


def test_making_a_token_needs_something_it_may_do(cast: Cast) -> None:
    client = sign_in(cast.colleague)
    assert client.post("/agents/okafor-docking/tokens/", {}).status_code == 422
    response = client.post("/agents/okafor-docking/tokens/", {"scopes": ["me:read"], "networks": "10.0.0.0/8"})
    assert "gha_" in response.content.decode()
    assert AgentToken.objects.get().networks == ["10.0.0.0/8"]


def test_the_registry_is_filtered_by_its_address(cast: Cast) -> None:
    client = sign_in(cast.staff)
    assert "marlowe-ingest" in client.get("/agents/").content.decode()
    page = client.get("/agents/?lab=okafor&status=active").content.decode()
    assert "okafor-docking" in page and "marlowe-ingest" not in page
    assert "No agent matches" in client.get("/agents/?status=retired").content.decode()


@pytest.mark.parametrize("who", ["pi", "staff"])
def test_an_export_holds_what_the_list_shows(cast: Cast, who: str) -> None:
    rows = sign_in(getattr(cast, who)).get("/agents/?format=json").json()
    expected = {"okafor-docking", "marlowe-ingest"} if who == "staff" else {"okafor-docking"}
    assert {row["name"] for row in rows} == expected


def test_hostile_text_stays_text(cast: Cast) -> None:
    Agent.objects.filter(pk=cast.agent.pk).update(purpose="<script>alert(1)</script>")
    page = sign_in(cast.pi).get("/agents/okafor-docking/").content.decode()
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page


def test_the_agent_page_asks_a_bounded_number_of_questions(cast: Cast, django_assert_max_num_queries) -> None:  # type: ignore[no-untyped-def]
    client = sign_in(cast.pi)
    client.get("/agents/okafor-docking/")
    with django_assert_max_num_queries(32):
        client.get("/agents/okafor-docking/")


def test_the_policy_names_who_has_not_accepted_it(cast: Cast) -> None:
    page = sign_in(cast.pi).get("/aup/").content.decode()
    assert "Not measured. We rely on you." in page
    assert "okafor-docking" in page and "marlowe-ingest" not in page


def test_whoever_answers_for_it_renews_it(cast: Cast) -> None:
    day = clock.now().astimezone(facility_zone()).date() + timedelta(days=200)
    assert sign_in(cast.outsider).post("/agents/okafor-docking/renew/", {"expires": day}).status_code == 404
    assert sign_in(cast.staff).post("/agents/okafor-docking/renew/", {"expires": day}).status_code == 403
    told = sign_in(cast.colleague).post("/agents/okafor-docking/renew/", {"expires": day}, follow=True)
    cast.agent.refresh_from_db()
    assert cast.agent.expires.astimezone(facility_zone()).date() == day
    assert f"ends on {day}" in told.content.decode()
    too_far = day + timedelta(days=300)
    assert sign_in(cast.colleague).post("/agents/okafor-docking/renew/", {"expires": too_far}).status_code == 422


def test_a_member_sees_no_sessions_and_no_history_of_a_colleagues_agent(cast: Cast) -> None:
    member = factories.make_user("member")
    cast.lab.memberships.create(user=member)
    login = factories.make_cluster_user(cast.cluster, cast.colleague)
    AgentSession.objects.create(
        cluster=cast.cluster, cluster_user=login, host="login-secret", harness="codex", started=0, agent=cast.agent
    )
    principal_services.suspend_agent(actor=factories.actor_of(cast.pi), agent=cast.agent, reason="a private reason")
    for person, sees in ((cast.pi, True), (cast.colleague, True), (cast.auditor, True), (member, False)):
        found = sign_in(person).get("/agents/okafor-docking/")
        assert ("login-secret" in found.content.decode(), found.context["session_count"]) == (sees, int(sees))
        assert ("agent suspend" in found.content.decode(), found.context["audit_count"] > 0) == (sees, sees)


def test_hours_and_version_are_declared_in_the_form(cast: Cast) -> None:
    response = _register(cast, start="08:00", end="18:00", harness_version="2.1")
    assert response.status_code == 422 and "Choose the days of the week" in response.content.decode()
    wish = WISH | {"days": ["0", "1", "2", "3", "4"], "start": "08:00", "end": "18:00", "harness_version": "2.1"}
    sign_in(cast.pi).post("/my-lab/okafor/register/", wish)
    page = sign_in(cast.pi).get("/agents/okafor-membrane/").content.decode()
    assert "Mon to Fri, 08:00 to 18:00" in page and "Claude Code 2.1" in page


def test_a_pi_switches_the_labs_rule_on_and_a_member_registers_without_a_click_of_theirs(cast: Cast) -> None:
    pi = sign_in(cast.pi)
    assert "Let agents of low risk in" in pi.get("/my-lab/").content.decode()
    assert "Let agents of low risk in" not in sign_in(cast.colleague).get("/my-lab/").content.decode()
    pi.post("/my-lab/okafor/rule/", {"on": "yes"})
    page = sign_in(cast.colleague).get("/my-lab/").content.decode()
    assert "the lab’s rule for agents of low risk, at once" in _pass(page)
    assert "gha_" in _register(cast, "colleague").content.decode()
    pi.post("/my-lab/okafor/rule/", {"on": "no"})
    _register(cast, "colleague", name="okafor-second")
    assert Agent.objects.get(name="okafor-second").status == "requested"
