"""Who has not accepted the policy: agents to hold, people to remind, and the people of a lab."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Final

from django.db.models import QuerySet

from policies.models import AupAcceptance, AupPersonAcceptance, AupVersion
from principals.actors import Actor
from principals.models import Agent, Hold, Lab

EXPORTED: Final = ("version", "digest", "lab", "agent", "owner", "accepted_by", "accepted_at", "how")


class Stage(IntEnum):
    """How near the end of the grace is. A person is reminded once for each stage of a version, and no oftener."""

    PUBLISHED = 1
    WEEK_LEFT = 2
    DAY_LEFT = 3
    HELD = 4


@dataclass(frozen=True, slots=True)
class Due:
    """A person who owns agents for which the newest version is not accepted."""

    user_id: int
    version: str
    holds_from: datetime
    stage: Stage
    agent_ids: tuple[int, ...]

    @property
    def key(self) -> str:
        """What tells this reminder from every other: whoever sends it keeps the key, and sends none twice."""
        return f"aup:{self.version}:{self.user_id}:{self.stage.value}"


@dataclass(frozen=True, slots=True)
class Accepting:
    """How one person of a lab stands to the newest version."""

    username: str
    accepted_at: datetime | None
    waiting: tuple[Agent, ...]


def agents_without(version: AupVersion) -> QuerySet[Agent]:
    """Return the agents that go on and for which neither this version nor a newer one is accepted under their owner."""
    settled = AupAcceptance.objects.standing().filter(version__pk__gte=version.pk).values("agent")
    return Agent.objects.exclude(status=Agent.Status.RETIRED).exclude(pk__in=settled)


def _held() -> QuerySet[Hold, int]:
    held = Hold.objects.in_force().filter(subject_kind=Hold.Subject.AGENT, kind=Hold.Kind.AUP)
    return held.values_list("subject_id", flat=True)


def agents_to_hold(required: AupVersion) -> QuerySet[Agent]:
    """Return the agents without a version that they need, and not held for it already."""
    return agents_without(required).exclude(pk__in=_held()).order_by("pk")


def people_due(at: datetime) -> list[Due]:
    """Return everybody who is to be reminded of the newest version, with the stage they are at: two queries.

    Nothing is sent and nothing is noted here: `services.aup_reminders` tells, and skips each `key` that was told.
    """
    newest = AupVersion.objects.first()
    if newest is None:
        return []
    by_owner: dict[int, list[int]] = {}
    rows = agents_without(newest).filter(owner__is_active=True).order_by("owner_id", "pk").values_list("owner_id", "pk")
    for owner_id, pk in rows:
        by_owner.setdefault(owner_id, []).append(pk)
    stage = stage_of(newest.holds_from - at)
    return [
        Due(user_id, newest.version, newest.holds_from, stage, tuple(agents)) for user_id, agents in by_owner.items()
    ]


def stage_of(left: timedelta) -> Stage:
    """Return the stage for the time that is left of the grace."""
    if left <= timedelta():
        return Stage.HELD
    if left <= timedelta(days=1):
        return Stage.DAY_LEFT
    return Stage.WEEK_LEFT if left <= timedelta(days=7) else Stage.PUBLISHED


def accepting_in(lab: Lab, newest: AupVersion) -> list[Accepting]:
    """Return how the people who own agents in a lab stand to the newest version, who is missing first: two queries."""
    agents = lab.agents.exclude(status=Agent.Status.RETIRED).select_related("owner").order_by("name")
    without = set(agents_without(newest).filter(lab=lab).values_list("pk", flat=True))
    by_owner: dict[tuple[int, str], list[Agent]] = {}
    for agent in agents:
        by_owner.setdefault((agent.owner_id, agent.owner.username), [])
        if agent.pk in without:
            by_owner[agent.owner_id, agent.owner.username].append(agent)
    at = _accepted_at(newest, [pk for pk, _ in by_owner])
    people = [Accepting(name, at.get(pk), tuple(waiting)) for (pk, name), waiting in by_owner.items()]
    return sorted(people, key=lambda each: (not each.waiting and each.accepted_at is not None, each.username))


def _accepted_at(newest: AupVersion, user_ids: Iterable[int]) -> Mapping[int, datetime]:
    rows = AupPersonAcceptance.objects.filter(version=newest, user_id__in=user_ids)
    return dict(rows.values_list("user_id", "at"))


def acceptances_for(actor: Actor) -> QuerySet[AupAcceptance]:
    """Return the acceptances that somebody may take away as a file: staff all, others those of labs they manage."""
    rows = AupAcceptance.objects.visible_to(actor).select_related("version", "agent__lab", "owner", "user")
    if not actor.sees_facility:
        rows = rows.filter(agent__lab_id__in=actor.managed_lab_ids)
    return rows.order_by("-at", "-pk")


def acceptance_fields(row: AupAcceptance) -> dict[str, object]:
    """Return what an export says of an acceptance."""
    return {
        "version": row.version.version, "digest": row.digest, "lab": row.agent.lab.name, "agent": row.agent.name,
        "owner": row.owner.username, "accepted_by": row.user.username, "accepted_at": row.at, "how": row.how,
    }  # fmt: skip
