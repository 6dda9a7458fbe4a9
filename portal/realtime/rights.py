"""Whether those who listen still may: a fingerprint of every viewer's rights in a few queries for all of them.

Only where a fingerprint changed is the actor built again and each topic authorised again.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from django.contrib.sessions.models import Session

from portal.core import clock, topics
from portal.core.errors import DomainError
from portal.realtime.viewers import Viewer
from principals import permissions, selectors
from principals.models import AgentToken, LabMembership, Place, ServiceToken, User

Fingerprints = dict[str, Hashable]


@dataclass(slots=True)
class Loss:
    """What a viewer may no longer do: look at all, or hear some topics."""

    whole: DomainError | None = None
    topics: dict[str, DomainError] = field(default_factory=dict)

    def touching(self, heard: Collection[str]) -> DomainError | None:
        """Return why a listener to `heard` must end, or None."""
        return self.whole or next((error for topic, error in self.topics.items() if topic in heard), None)


class Rights:
    """What was last known of each viewer's rights."""

    def __init__(self) -> None:
        self._seen: Fingerprints = {}

    def losses(self, watched: Mapping[Viewer, Collection[str]]) -> dict[str, Loss]:
        """Return what each watched viewer lost since the last call, by viewer key. Touches the database.

        A viewer seen for the first time is checked in full: its right may have gone between opening and now.
        """
        # The fingerprint is taken first: a change during the check is then found by the next one.
        now = fingerprints(watched)
        changed = [
            viewer for viewer in watched if viewer.key not in self._seen or self._seen[viewer.key] != now[viewer.key]
        ]
        found = {viewer.key: _loss_of(viewer, watched[viewer]) for viewer in changed}
        self._seen = now
        return found


def _loss_of(viewer: Viewer, heard: Iterable[str]) -> Loss:
    loss = Loss()
    try:
        actor = viewer.load()
    except DomainError as error:
        loss.whole = error
        return loss
    for topic in heard:
        try:
            topics.require(actor, topic)
        except DomainError as error:
            loss.topics[topic] = error
    return loss


def fingerprints(viewers: Iterable[Viewer]) -> Fingerprints:
    """Return for each viewer's key a value that changes when its rights do; at most eight queries for all."""
    viewers = list(viewers)
    sessions = _sessions({viewer.session_key for viewer in viewers if viewer.session_key})
    people = _people({viewer.user_id for viewer in viewers if viewer.user_id is not None})
    tokens = _tokens({viewer.token_key for viewer in viewers if viewer.token_key})
    return {
        viewer.key: (
            tokens.get(viewer.token_key)
            if viewer.token_key
            else (viewer.session_key in sessions, people.get(viewer.user_id or 0))
        )
        for viewer in viewers
    }


def _sessions(keys: set[str]) -> set[str]:
    if not keys:
        return set()
    live = Session.objects.filter(session_key__in=keys, expire_date__gt=clock.now())
    return set(live.values_list("session_key", flat=True))


def _people(ids: set[int]) -> dict[int, Hashable]:
    if not ids:
        return {}
    labs: dict[int, set[tuple[int, str]]] = {}
    for user_id, lab_id, role in LabMembership.objects.filter(user_id__in=ids).values_list("user_id", "lab_id", "role"):
        labs.setdefault(user_id, set()).add((lab_id, role))
    granted = permissions.labs_granted_to(ids)
    # The password's hash is part of a session's right: a new password ends the old sessions.
    roles = ("is_active", "password", "is_research_computing", "is_infosec", "is_auditor")
    return {
        row[0]: (*row[1:], frozenset(labs.get(row[0], ())), granted.get(row[0], frozenset()))
        for row in User.objects.filter(pk__in=ids).values_list("pk", *roles)
    }


def _tokens(keys: set[str]) -> dict[str, Hashable]:
    if not keys:
        return {}
    now = clock.now()
    agents = AgentToken.objects.filter(key__in=keys).select_related("agent__owner")
    services = ServiceToken.objects.filter(key__in=keys).select_related("service")
    subjects: dict[str, tuple[Place, ...]] = {}
    states: dict[str, tuple[Hashable, ...]] = {}
    for token in agents:
        agent = token.agent
        subjects[token.key] = selectors.places_of(agent)
        states[token.key] = (token.state, *token.scopes, agent.status, agent.expires <= now, agent.owner.is_active)
    for row in services:
        subjects[row.key] = (Place("service", row.service_id),)
        states[row.key] = (row.state, *row.scopes, row.service.is_active)
    places = _places({token.agent.owner_id for token in agents})
    for token in agents:
        # An agent hears what its owner may hear of its lab, so a change of the owner's place there is one of its own.
        states[token.key] += (places.get((token.agent.owner_id, token.agent.lab_id)),)
    held = selectors.places_held({subject for named in subjects.values() for subject in named})
    return {key: (*states[key], *named, frozenset(held.intersection(named))) for key, named in subjects.items()}


def _places(owner_ids: set[int]) -> dict[tuple[int, int], str]:
    rows = LabMembership.objects.filter(user_id__in=owner_ids).values_list("user_id", "lab_id", "role")
    return {(user_id, lab_id): role for user_id, lab_id, role in rows}
