"""An agent asks, by the API, for another one of its owner's: people decide."""

from datetime import timedelta

import pytest

from portal.core import clock
from principals import services as principal_services
from principals.models import Agent
from tests import factories
from tests.conftest import Api, Cast

WISH = {
    "name": "okafor-helper", "harness": "codex", "purpose": "Writes tests.", "partitions": ["shared"],
    "hours": {"days": ["Mon", "Tue", "Wed"], "start": "08:00", "end": "18:00"},
    "expires": (clock.now() + timedelta(days=60)).isoformat(),
}  # fmt: skip


@pytest.fixture
def asking(cast: Cast) -> Api:
    return Api(factories.make_token(cast.agent, "agents:request", "me:read"))


def test_it_waits_for_people(cast: Cast, asking: Api) -> None:
    principal_services.set_low_risk_rule(actor=factories.actor_of(cast.pi), lab=cast.lab, on=True)
    answer = asking.post("/agents", WISH)
    assert answer.status_code == 201
    said = answer.json()
    assert (said["status"], said["acts_for"], said["approvals_missing"]) == ("requested", "colleague", ["lab"])
    assert said["tier"] == {"name": "standard", "score": 0, "reasons": ["Supervised; unattended would add 2"]}
    assert said["page"].endswith("/agents/okafor-helper/") and "accept the AUP" in said["remedy"]
    agent = Agent.objects.get(name="okafor-helper")
    assert agent.working_hours and agent.working_hours.words.startswith("Mon to Wed, 08:00 to 18:00")
    assert agent.owner == cast.colleague


def test_no_agent_of_a_pi_lets_another_in(cast: Cast) -> None:
    agent = factories.make_agent(cast.lab, cast.pi)
    api = Api(factories.make_token(agent, "agents:request"))
    assert api.post("/agents", WISH).json()["status"] == "requested"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"harness": "skynet"}, "unknown_harness"),
        ({"accounts": ["marlowe_lab"]}, "account_not_associated"),
        ({"expires": "2036-01-01T00:00:00Z"}, "expiry_out_of_range"),
        ({"name": "okafor-docking"}, "agent_name"),
        ({"hours": {"days": ["Mon"], "start": "08:00", "end": "08:00"}}, "hours_malformed"),
        ({"hours": {"days": [], "start": "08:00", "end": "09:00"}}, "invalid"),
    ],
    ids=["harness", "account", "expiry", "name", "hours", "days"],
)
def test_what_the_form_refuses_the_api_refuses(cast: Cast, asking: Api, change: dict[str, object], code: str) -> None:
    answer = asking.post("/agents", WISH | change)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert not Agent.objects.filter(name="okafor-helper").exists()


def test_a_token_without_the_scope_asks_for_nothing(agent_api: Api) -> None:
    answer = agent_api.post("/agents", WISH)
    assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")


def test_a_secret_in_the_purpose_is_not_kept(asking: Api) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    asking.post("/agents", WISH | {"purpose": f"Uses {secret} for tests."})
    assert secret[:36] not in Agent.objects.get(name="okafor-helper").purpose


def test_it_asks_for_no_more_than_people_decide(cast: Cast, asking: Api) -> None:
    codes = [asking.post("/agents", WISH | {"name": f"okafor-helper-{each}"}).status_code for each in range(6)]
    assert codes == [201] * 5 + [409]
    Agent.objects.filter(name="okafor-helper-3").update(status="retired")
    assert asking.post("/agents", WISH | {"name": "okafor-helper-7"}).status_code == 201
