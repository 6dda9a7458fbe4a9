"""The topics an incident is told on are open to exactly those who may see it."""

import pytest

from portal.core import topics
from portal.core.models import LiveEvent
from principals.permissions import actor_for_agent, actor_for_user
from security.models import Incident
from tests import factories
from tests.conftest import Cast
from tests.security.support import make_incident

pytestmark = pytest.mark.sql
PEOPLE = ("pi", "manager", "colleague", "outsider", "staff", "infosec", "auditor")


@pytest.mark.parametrize("who", PEOPLE)
def test_who_sees_it_hears_of_it_and_nobody_else(cast: Cast, who: str) -> None:
    make_incident(cast)
    actor = actor_for_user(getattr(cast, who))
    told_on = LiveEvent.objects.get(name="incident.opened").topics
    hears = any(topics.authorise(actor, topic) for topic in told_on)
    assert hears == Incident.objects.visible_to(actor).exists()


def test_managers_and_persons_hear_without_asking_and_agents_never(cast: Cast) -> None:
    make_incident(cast)
    told_on = LiveEvent.objects.get(name="incident.opened").topics
    for user in (cast.pi, cast.manager, cast.colleague):
        assert set(topics.default_topics(actor_for_user(user))) & set(told_on)
    agent = actor_for_agent(factories.token_row(factories.make_token(cast.agent, "me:read", "lab:read")))
    assert not any(topics.authorise(agent, topic) for topic in told_on)
    assert not set(topics.default_topics(agent)) & set(told_on)


@pytest.mark.parametrize("key", ["x", "-1", "9" * 30, "0", "%00"])
def test_odd_keys_are_refused(cast: Cast, key: str) -> None:
    actor = actor_for_user(cast.pi)
    assert not topics.authorise(actor, f"lab-incidents:{key}")
    assert not topics.authorise(actor, f"user-incidents:{key}")
