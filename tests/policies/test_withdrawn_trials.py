"""While a kill switch stops an agent, its trials that wait are withdrawn; its end gives back exactly what was."""

from datetime import timedelta

import pytest

from policies.models import TrialGrant
from portal.core import clock
from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR
from principals.models import Hold
from principals.services import kill_switches as switches
from tests import factories
from tests.conftest import Api, Cast, sign_in


@pytest.fixture
def trial(cast: Cast, agent_api: Api) -> dict[str, object]:
    """A trial of the lab's agent that waits for its job."""
    return agent_api.post("/trials", {"minutes": 10}).json()


@pytest.fixture
def sibling(cast: Cast) -> Api:
    """Another agent of the same person, on another harness: it sees the person's trials, too."""
    return Api(factories.make_token(factories.make_agent(cast.lab, cast.colleague, harness="codex")))


@pytest.mark.parametrize(("kind", "which"), [("agent", "okafor-docking"), ("harness", "claude-code")])
def test_it_is_withdrawn_and_given_back(cast: Cast, trial, sibling: Api, kind: str, which: str) -> None:
    rows = list(TrialGrant.objects.values())
    before = sibling.get(f"/trials/{trial['id']}").json()
    assert before["withdrawn"] is False and before["sbatch_options"]
    actor, until = factories.actor_of(cast.staff), clock.now() + timedelta(hours=1)
    switch = switches.pull(actor=actor, target=switches.find_target(kind, which), reason="It polls.", until=until)
    for said in (sibling.get(f"/trials/{trial['id']}").json(), sibling.get("/trials").json()["items"][0]):
        assert (said["state"], said["withdrawn"], said["sbatch_options"]) == ("granted", True, [])
    for path in ("/trials/", "/trials/requests/"):
        page = sign_in(cast.colleague).get(path).content.decode()
        assert "Withdrawn by a kill switch" in page and "It polls." in page and "Slurm is not told" in page
    switches.end(actor=actor, switch=switch, reason="Mended.")
    assert sibling.get(f"/trials/{trial['id']}").json() == before
    assert list(TrialGrant.objects.values()) == rows


def test_a_switch_that_lapses_gives_it_back(cast: Cast, trial, sibling: Api) -> None:
    target, until = switches.find_target("agent", "okafor-docking"), clock.now() + timedelta(minutes=5)
    switches.pull(actor=factories.actor_of(cast.staff), target=target, reason="It polls.", until=until)
    assert sibling.get(f"/trials/{trial['id']}").json()["withdrawn"] is True
    with clock.at(until):
        assert sibling.get(f"/trials/{trial['id']}").json()["withdrawn"] is False


def test_another_hold_withdraws_nothing(cast: Cast, trial, sibling: Api) -> None:
    principal_services.place_hold(
        actor=SYSTEM_ACTOR, subject_kind="agent", subject_id=cast.agent.pk, kind=Hold.Kind.FLOOD, code="flood",
        reason="Too many questions.",
    )  # fmt: skip
    assert sibling.get(f"/trials/{trial['id']}").json()["withdrawn"] is False
