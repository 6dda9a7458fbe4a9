"""An owner sees sessions without an agent on My lab, claims them there, registers for them, and takes it back."""

from datetime import timedelta

import pytest

from portal.core import clock
from principals.models import Agent, AgentSession, SessionClaim
from tests import factories
from tests.conftest import Cast, sign_in
from tests.dashboard.test_agents_pages import WISH


@pytest.fixture
def seen(cast: Cast) -> AgentSession:
    """The newest of three sessions of one harness that nobody registered."""
    login = factories.make_cluster_user(cast.cluster, cast.colleague)
    rows = [
        AgentSession.objects.create(
            cluster=cast.cluster, cluster_user=login, kind="agent", harness="claude-code", host=host,
            started=clock.now() - timedelta(hours=hours), process=f"boot:{hours}", source="collector",
        )
        for host, hours in (("login03", 1), ("login01", 9), ("login03", 20))
    ]  # fmt: skip
    return rows[0]


def test_one_click_claims_it_and_another_takes_it_back(cast: Cast, seen: AgentSession) -> None:
    client = sign_in(cast.colleague)
    page = client.get("/my-lab/").content.decode()
    assert "It is okafor-docking" in page and "and 2 earlier ones" in page
    claim = {"agent": "okafor-docking", "earlier": "on"}
    said = client.post(f"/sessions/{seen.pk}/claim/", claim, follow=True).content.decode()
    assert "3 sessions claimed for okafor-docking" in said and "3 sessions claimed by colleague" in said
    assert "Your sessions without an agent" not in client.get("/my-lab/").content.decode()
    made = SessionClaim.objects.get()
    said = client.post(f"/agents/okafor-docking/claims/{made.pk}/undo/", follow=True).content.decode()
    assert "3 sessions taken back" in said
    assert "and 2 earlier ones" in client.get("/my-lab/").content.decode()


def test_a_registration_comes_prefilled_and_takes_the_session(cast: Cast, seen: AgentSession) -> None:
    Agent.objects.filter(pk=cast.agent.pk).update(status="retired")
    client = sign_in(cast.colleague)
    assert f"session={seen.pk}#register" in client.get("/my-lab/").content.decode()
    form = client.get("/my-lab/", {"session": seen.pk}).context["form"]
    values = {name: form[name].value() for name in ("name", "harness", "hosts", "session")}
    assert values == {"name": "okafor-claude-code", "harness": "claude-code", "hosts": "login03", "session": seen.pk}
    wish = WISH | {"hosts": "login03", "session": str(seen.pk), "earlier": "on"}
    assert client.post("/my-lab/okafor/register/", wish).status_code == 302
    agents = dict(AgentSession.objects.values_list("process", "agent__name"))
    assert agents == {"boot:1": "okafor-membrane", "boot:20": "okafor-membrane", "boot:9": None}  # not on login01


def test_a_form_that_comes_back_still_claims(cast: Cast, seen: AgentSession) -> None:
    wish = WISH | {"session": str(seen.pk), "earlier": "on", "accept": ""}
    page = sign_in(cast.colleague).post("/my-lab/okafor/register/", wish).content.decode()
    assert f'name="session" value="{seen.pk}"' in page and "Take along 2 earlier sessions" in page


def test_others_see_it_and_cannot_claim_it(cast: Cast, seen: AgentSession) -> None:
    for who in (cast.pi, cast.manager):
        client = sign_in(who)
        page = client.get("/my-lab/").content.decode()
        assert "Sessions nobody registered" in page and "claims it on their own page" in page
        assert "/claim/" not in page
        assert client.post(f"/sessions/{seen.pk}/claim/", {"agent": "okafor-docking"}).status_code == 403
        assert client.get("/my-lab/", {"session": seen.pk}).context["claimed"] is None
    outsider = sign_in(cast.outsider).post(f"/sessions/{seen.pk}/claim/", {"agent": "marlowe-ingest"})
    assert outsider.status_code == 404
    assert not SessionClaim.objects.exists()


@pytest.mark.parametrize("odd", ["x", "-1", "9" * 30, "٣"], ids=["letter", "negative", "long", "arabic"])
def test_an_odd_session_prefills_nothing(cast: Cast, odd: str) -> None:
    page = sign_in(cast.colleague).get("/my-lab/", {"session": odd})
    assert page.status_code == 200 and page.context["claimed"] is None
