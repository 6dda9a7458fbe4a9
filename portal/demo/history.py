"""History as acts: who did what when. Played in order of time, each with the clock set to its moment."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import NamedTuple

from portal.core import clock
from principals.actors import Actor
from principals.models import Agent, Cluster, User
from principals.permissions import actor_for_user


class Act(NamedTuple):
    """Something that somebody did at a moment, through a service."""

    at: datetime
    does: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Stage:
    """What every app's part of the demo needs: the cluster, the window, a source of chance of its own."""

    cluster: Cluster
    start: datetime
    now: datetime
    rng: Random


def play(acts: Iterable[Act]) -> int:
    """Play acts in order of time; return how many there were."""
    ordered = sorted(acts, key=lambda act: act.at)
    for act in ordered:
        with clock.at(act.at):
            act.does()
    return len(ordered)


def person(login: str) -> Actor:
    """Return a person of the demo as an actor, with the roles and labs they have."""
    return actor_for_user(User.objects.get(username=login))


def agent_named(name: str) -> Agent:
    """Return an agent of the demo."""
    return Agent.objects.select_related("owner", "lab").get(name=name)
