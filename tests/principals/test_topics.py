"""Who hears a person's and a lab's news: that person and that lab's people, and no agent."""

import pytest

from portal.core import topics
from principals.auth import actor_for_token
from tests import factories
from tests.conftest import Cast


@pytest.mark.parametrize(
    ("who", "lab", "own"),
    [("pi", True, True), ("colleague", True, True), ("outsider", False, True), ("staff", True, True)],
)
def test_people(cast: Cast, who: str, lab: bool, own: bool) -> None:
    user = getattr(cast, who)
    actor = factories.actor_of(user)
    assert topics.authorise(actor, f"lab:{cast.lab.pk}") is lab
    assert topics.authorise(actor, f"user:{user.pk}") is own
    assert not topics.authorise(actor, f"user:{cast.infosec.pk}")


def test_an_agent_hears_neither(cast: Cast) -> None:
    actor = actor_for_token(factories.make_token(cast.agent, "events:read", "lab:read"), address="10.0.0.1")
    assert not topics.authorise(actor, f"lab:{cast.lab.pk}")
    assert not topics.authorise(actor, f"user:{cast.colleague.pk}")
    assert topics.default_topics(actor)[:1] == [f"agent:{cast.agent.pk}"]


def test_a_person_of_many_agents_hears_of_all_else_first(cast: Cast) -> None:
    """Whoever listens to the first hundred topics loses agents of hundreds, and neither jobs nor their own news."""
    for number in range(3):
        factories.make_agent(cast.lab, cast.colleague, f"okafor-{number}")
    heard = topics.default_topics(factories.actor_of(cast.colleague))
    assert [topic.partition(":")[0] for topic in heard[-4:]] == ["agent"] * 4
    assert f"user:{cast.colleague.pk}" in heard[:-4]


@pytest.mark.parametrize("key", ["", "x", "-1", "1 or 1=1", "9" * 30])
def test_an_odd_key_is_nobodys(cast: Cast, key: str) -> None:
    assert not topics.authorise(factories.actor_of(cast.staff), f"lab:{key}")
