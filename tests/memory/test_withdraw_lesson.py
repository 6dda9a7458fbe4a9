"""A withdrawn lesson leaves every look-up at once, and says why."""

import pytest

from memory import selectors
from memory import services as memory_services
from memory.models import LessonToken
from portal.core.errors import Conflict, Invalid, NotAllowed
from portal.core.models import AuditEvent
from tests import factories
from tests.conftest import Cast
from tests.memory.lessons import OOM, agent_actor, recorded


def test_it_is_found_no_more(cast: Cast) -> None:
    lesson = recorded(cast.pi, scope="lab", lab=cast.lab)
    actor = factories.actor_of(cast.pi)
    memory_services.withdraw_lesson(actor=actor, lesson=lesson, reason="The partition is gone.")
    assert selectors.look_up(actor, OOM) == []
    assert not LessonToken.objects.exists()
    assert AuditEvent.objects.get(verb="lesson.withdraw").payload["reason"] == "The partition is gone."


def test_it_needs_a_reason(cast: Cast) -> None:
    with pytest.raises(Invalid):
        memory_services.withdraw_lesson(actor=factories.actor_of(cast.pi), lesson=recorded(cast.pi), reason=" ")


@pytest.mark.parametrize("who", ["colleague", "outsider", "staff", "infosec"])
def test_a_labs_lesson_is_its_managers_to_withdraw(cast: Cast, who: str) -> None:
    lesson = recorded(cast.pi, scope="lab", lab=cast.lab)
    with pytest.raises(NotAllowed):
        memory_services.withdraw_lesson(actor=factories.actor_of(getattr(cast, who)), lesson=lesson, reason="no")


def test_a_project_is_its_owners_not_the_agents(cast: Cast) -> None:
    lesson = recorded(agent_actor(cast.agent))
    for actor in (agent_actor(cast.agent), factories.actor_of(cast.pi)):
        with pytest.raises(NotAllowed):
            memory_services.withdraw_lesson(actor=actor, lesson=lesson, reason="no")
    memory_services.withdraw_lesson(actor=factories.actor_of(cast.colleague), lesson=lesson, reason="wrong")


def test_the_source_lab_takes_its_lesson_back_from_a_cluster(cast: Cast) -> None:
    pi = factories.actor_of(cast.pi)
    lab_lesson = recorded(cast.pi, scope="lab", lab=cast.lab)
    wide = memory_services.propose_lesson(actor=pi, lesson=lab_lesson, cluster=cast.cluster)
    memory_services.approve_lesson(actor=factories.actor_of(cast.staff), lesson=wide)
    with pytest.raises(NotAllowed):
        memory_services.withdraw_lesson(actor=factories.actor_of(cast.outsider), lesson=wide, reason="mine")
    memory_services.withdraw_lesson(actor=pi, lesson=wide, reason="It was our file system.")
    with pytest.raises(Conflict):
        memory_services.withdraw_lesson(actor=pi, lesson=wide, reason="again")
