"""What every verb leaves behind: a line of the incident's timeline, an audit row, news for those who may see it."""

from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction

from portal.core import audit, clock, live
from principals.actors import Actor
from security import events
from security.models import Incident, IncidentEvent

FACILITY_TOPIC = "facility:security"


def topics_of(incident: Incident) -> tuple[str, ...]:
    """Return the topics on which an incident is told: the facility's, its lab's managers', the person's concerned."""
    topics = [FACILITY_TOPIC]
    if incident.lab_id:
        topics.append(f"lab-incidents:{incident.lab_id}")
    concerned = {
        incident.cluster_user.user_id if incident.cluster_user else None,
        incident.agent.owner_id if incident.agent else None,
    }
    return (*topics, *sorted(f"user-incidents:{user_id}" for user_id in concerned if user_id))


def tell(incident: Incident, *, name: str = events.INCIDENT_CHANGED, at: datetime) -> live.News | None:
    """Return the news of a change at `at`, or None where it is history; sends the app's signal after commit."""
    transaction.on_commit(
        partial(events.incident_changed.send_robust, Incident, incident_id=incident.pk, state=incident.state)
    )
    if not live.is_news(at):
        return None
    payload = events.IncidentNews(
        id=incident.pk, incident=incident.number, kind=incident.kind, severity=incident.severity,
        state=incident.state, due_at=clock.written(incident.due_at) if incident.due_at else "",
        sightings=incident.sightings,
    )  # fmt: skip
    return live.News(name=name, topics=topics_of(incident), payload=dict(payload), at=at)


def announce(news: list[live.News | None]) -> None:
    """Write what is news."""
    live.announce([each for each in news if each is not None])


def line(
    actor: Actor, incident: Incident, kind: str, *, at: datetime, old: str = "", new: str = "", text: str = ""
) -> IncidentEvent:
    """Return a line of the timeline, not saved."""
    return IncidentEvent(
        incident=incident, at=at, kind=kind, actor_kind=actor.ref.kind, actor_label=actor.ref.label,
        old=old, new=new, text=text,
    )  # fmt: skip


def leave(
    actor: Actor, incident: Incident, kind: str, *, verb: str, at: datetime, old: str = "", new: str = "",
    text: str = "", also: dict[str, Any] | None = None,
) -> None:  # fmt: skip
    """Write the timeline's line, the audit row and the news of one act on one incident."""
    line(actor, incident, kind, at=at, old=old, new=new, text=text).save()
    audit.record(
        actor=actor.ref, verb=verb, object_kind="incident", object_id=incident.pk, object_label=incident.number,
        lab_id=incident.lab_id, before={"is": old} if old else None, after={"is": new, **(also or {})},
        reason=text if kind != IncidentEvent.Kind.NOTE else "",
    )  # fmt: skip
    announce([tell(incident, at=at)])
