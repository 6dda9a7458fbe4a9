"""A trial that waits for its job can be given back; what was charged is back at once."""

from datetime import timedelta

import pytest

from policies import selectors
from policies import services as policy_services
from portal.core import clock
from portal.core.errors import Conflict, NotAllowed
from portal.core.models import AuditEvent
from tests import factories
from tests.conftest import Cast
from tests.policies import worlds


@pytest.mark.parametrize("who", ["colleague", "pi", "manager", "staff"])
def test_those_who_answer_for_it_give_it_back(cast: Cast, who: str) -> None:
    trial = worlds.make_trial(cast)
    policy_services.cancel_trial(actor=factories.actor_of(getattr(cast, who)), trial=trial)
    trial.refresh_from_db()
    assert trial.state == "cancelled"
    assert selectors.trial_budget(cast.colleague, cast.lab).trials_used == 0
    assert AuditEvent.objects.get(verb="trial.cancel").object_label == trial.public_id


def test_an_agent_gives_back_its_owners_trial_in_its_lab(cast: Cast) -> None:
    policy_services.cancel_trial(actor=worlds.agent_actor(cast.agent), trial=worlds.make_trial(cast))
    assert AuditEvent.objects.get(verb="trial.cancel").actor_label == cast.agent.name


@pytest.mark.parametrize("who", ["outsider", "infosec", "auditor"])
def test_nobody_else_does(cast: Cast, who: str) -> None:
    with pytest.raises(NotAllowed):
        policy_services.cancel_trial(actor=factories.actor_of(getattr(cast, who)), trial=worlds.make_trial(cast))


@pytest.mark.parametrize("state", ["used", "expired", "cancelled"])
def test_what_ended_stays_as_it_is(cast: Cast, state: str) -> None:
    trial = worlds.make_trial(cast, state=state)
    with pytest.raises(Conflict, match=state):
        policy_services.cancel_trial(actor=factories.actor_of(cast.colleague), trial=trial)
    trial.refresh_from_db()
    assert trial.state == state


def test_past_its_time_it_is_over_even_before_it_is_settled(cast: Cast) -> None:
    at = clock.now() - timedelta(hours=2)
    trial = worlds.make_trial(cast, granted_at=at)
    with pytest.raises(Conflict, match="over"):
        policy_services.cancel_trial(actor=factories.actor_of(cast.colleague), trial=trial)
