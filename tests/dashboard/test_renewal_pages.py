"""Renewing with one click, handing over, and rolling a lab over, on their pages."""

from datetime import timedelta

from portal.core import clock
from principals.models import Agent, AgentHandover, LabMembership
from tests import factories
from tests.conftest import Cast, sign_in


def _ends_in(cast: Cast, days: int) -> None:
    Agent.objects.filter(pk=cast.agent.pk).update(expires=clock.now() + timedelta(days=days))


def test_who_answers_for_it_renews_with_one_click(cast: Cast) -> None:
    _ends_in(cast, 5)
    client = sign_in(cast.colleague)
    page = client.get("/my-lab/")
    until = page.context["renew_until"].isoformat()
    assert f'name="expires" value="{until}"' in page.content.decode()
    client.post(f"/agents/{cast.agent.name}/renew/", {"expires": until})
    cast.agent.refresh_from_db()
    assert cast.agent.expires > clock.now() + timedelta(days=178)
    assert "Renew until" not in client.get("/my-lab/").content.decode()


def test_handing_over_is_asked_and_settled_on_its_page(cast: Cast) -> None:
    here = f"/agents/{cast.agent.name}/"
    owner, taker = sign_in(cast.colleague), sign_in(cast.manager)
    assert 'value="manager"' in owner.get(here).content.decode()
    owner.post(f"{here}hand-over/", {"taker": "manager"})
    asked = AgentHandover.objects.get()
    assert "asks you to answer for okafor-docking" in taker.get("/my-lab/").content.decode()
    assert "Withdraw" in owner.get(here).content.decode() and "Agree" in taker.get(here).content.decode()
    said = taker.post(f"{here}hand-over/{asked.pk}/", {"agree": "yes"}, follow=True).content.decode()
    assert "okafor-docking is manager’s now." in said and "manager answers for okafor-docking now" in said
    cast.agent.refresh_from_db()
    assert cast.agent.owner == cast.manager


def test_a_handover_is_declined(cast: Cast) -> None:
    here = f"/agents/{cast.agent.name}/"
    sign_in(cast.colleague).post(f"{here}hand-over/", {"taker": "manager"})
    asked = AgentHandover.objects.get()
    sign_in(cast.manager).post(f"{here}hand-over/{asked.pk}/", {"agree": "no"})
    asked.refresh_from_db()
    assert asked.state == "closed"
    assert sign_in(cast.pi).post(f"{here}hand-over/", {"taker": "outsider"}).status_code == 422


def test_an_owner_who_left_waits_for_the_pi(cast: Cast) -> None:
    LabMembership.objects.filter(user=cast.colleague).delete()
    pi = sign_in(cast.pi)
    assert "has left" in pi.get("/my-lab/").content.decode()
    assert "cannot act until somebody else answers for it" in pi.get(f"/agents/{cast.agent.name}/").content.decode()
    assert "left: hand it over" in pi.get("/my-lab/okafor/roll-over/").content.decode()


def test_a_pi_rolls_the_lab_over_on_one_page(cast: Cast) -> None:
    idle = factories.make_agent(cast.lab, cast.manager, "okafor-idle")
    pi = sign_in(cast.pi)
    page = pi.get("/my-lab/okafor/roll-over/").content.decode()
    assert "okafor-docking" in page and "okafor-idle" in page
    end = (clock.now() + timedelta(days=120)).date().isoformat()
    chosen = {"expires": end, f"agent-{cast.agent.pk}": "renew", f"agent-{idle.pk}": "retire"}
    said = pi.post("/my-lab/okafor/roll-over/", chosen, follow=True).content.decode()
    assert "1 agent renewed, 1 retired, 0 left as they are." in said
    late = pi.post("/my-lab/okafor/roll-over/", chosen | {"expires": "2036-01-01"})
    assert late.status_code == 422 and "within a year" in late.content.decode()
