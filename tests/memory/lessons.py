"""Lessons for tests."""

from typing import Any

from memory import services as memory_services
from memory.models import Lesson
from memory.services import LessonContent
from principals.actors import Actor
from principals.models import Agent, AgentToken, User
from principals.permissions import actor_for_agent
from tests import factories

OOM = "slurmstepd: error: Detected 1 oom_kill event in StepId=48211977.batch. Some step tasks have been OOM Killed."
GLIBCXX = "./solver: /lib64/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by ./solver)"


def content(**changes: Any) -> LessonContent:
    """What a lesson says, unless a test says otherwise."""
    said: dict[str, Any] = {"error_text": OOM, "cause": "The matrix is held twice.", "fix": "Ask for 96 GB."}
    return LessonContent(**(said | changes))


def recorded(who: User | Actor, **kwargs: Any) -> Lesson:
    """A lesson recorded by a person or an actor; texts and `scope`, `lab`, `cluster` as given."""
    actor = who if isinstance(who, Actor) else factories.actor_of(who)
    place = {name: kwargs.pop(name) for name in ("scope", "lab", "cluster", "owner") if name in kwargs}
    return memory_services.record_lesson(actor=actor, content=content(**kwargs), **place).lesson


def agent_actor(agent: Agent) -> Actor:
    """The actor of an agent's token."""
    plain = factories.make_token(agent, "lessons:read", "lessons:write")
    row: AgentToken = factories.token_row(plain)
    return actor_for_agent(row)
