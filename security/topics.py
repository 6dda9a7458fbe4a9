"""Topics that incidents are told on: `lab-incidents:<lab id>` and `user-incidents:<user id>`.

The facility hears of them on `facility:security`. Agents hear of none: whoever may be contained is not warned.
"""

from portal.core.topics import TopicKind, register
from principals.actors import Actor


def _may_hear_lab(actor: Actor, key: str) -> bool:
    return actor.sees_facility or (actor.is_person and key in {str(lab_id) for lab_id in actor.managed_lab_ids})


def _managed_labs(actor: Actor) -> list[str]:
    return [f"lab-incidents:{lab_id}" for lab_id in sorted(actor.managed_lab_ids)] if actor.is_person else []


def _may_hear_user(actor: Actor, key: str) -> bool:
    return actor.sees_facility or (actor.is_person and actor.user is not None and key == str(actor.user.pk))


def _oneself(actor: Actor) -> list[str]:
    return [f"user-incidents:{actor.user.pk}"] if actor.is_person and actor.user is not None else []


def register_topics() -> None:
    """Register the kinds of this app; called once, when it starts."""
    register(TopicKind("lab-incidents", "Incidents of a lab, for those who manage it", _may_hear_lab, _managed_labs))
    register(TopicKind("user-incidents", "Incidents about a person and their agents", _may_hear_user, _oneself))
