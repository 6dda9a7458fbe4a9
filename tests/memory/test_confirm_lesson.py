"""Evidence is append-only, one voice a person, and not for oneself."""

import pytest

from memory import selectors
from memory import services as memory_services
from portal.core.errors import Conflict, Invalid, NotAllowed
from tests import factories
from tests.conftest import Cast
from tests.memory.lessons import agent_actor, recorded


def test_a_person_and_their_agent_are_one_voice(cast: Cast) -> None:
    lesson = recorded(cast.pi, scope="lab", lab=cast.lab)
    person, agent = factories.actor_of(cast.colleague), agent_actor(cast.agent)
    first = memory_services.confirm_lesson(actor=agent, lesson=lesson, job_key="aster:48211977")
    assert memory_services.confirm_lesson(actor=person, lesson=lesson) == first
    memory_services.confirm_lesson(actor=factories.actor_of(cast.manager), lesson=lesson, holds=False)
    seen = selectors.find_lesson(person, lesson.public_id)
    assert (seen.confirmations, seen.refutations) == (1, 1)


def test_nobody_confirms_their_own(cast: Cast) -> None:
    lesson = recorded(agent_actor(cast.agent))
    with pytest.raises(Conflict):
        memory_services.confirm_lesson(actor=factories.actor_of(cast.colleague), lesson=lesson)


def test_only_readers_and_only_what_is_in_force(cast: Cast) -> None:
    lesson = recorded(cast.pi, scope="lab", lab=cast.lab)
    for who in (cast.outsider, cast.staff):
        with pytest.raises(NotAllowed):
            memory_services.confirm_lesson(actor=factories.actor_of(who), lesson=lesson)
    memory_services.withdraw_lesson(actor=factories.actor_of(cast.pi), lesson=lesson, reason="wrong")
    with pytest.raises(NotAllowed):
        memory_services.confirm_lesson(actor=factories.actor_of(cast.colleague), lesson=lesson)


def test_a_job_is_an_id(cast: Cast) -> None:
    lesson = recorded(cast.pi, scope="lab", lab=cast.lab)
    with pytest.raises(Invalid):
        memory_services.confirm_lesson(actor=factories.actor_of(cast.manager), lesson=lesson, job_key="<b>1</b>")


def test_evidence_is_never_changed(cast: Cast) -> None:
    row = recorded(cast.pi).evidence.get()
    with pytest.raises(RuntimeError):
        row.save()
    with pytest.raises(RuntimeError):
        row.delete()
