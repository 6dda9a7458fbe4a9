"""What a viewer's rights rest on, as a value that changes when they do.

`of_actor` says it of an actor that was just built, which costs nothing; `of_viewers` of all who listen, as the rows say
now, in a few queries. What an actor may hear follows from what stands here alone; None stands for no right at all.
"""

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from django.contrib.sessions.models import Session
from django.db.models import Exists, OuterRef

from portal.core import clock
from principals import permissions, selectors
from principals.actors import Actor
from principals.engine import networks
from principals.models import Agent, AgentToken, Hold, LabMembership, ServiceToken, User

if TYPE_CHECKING:
    from portal.realtime.viewers import Viewer

READS_LAB = "lab:read"


def of_actor(actor: Actor) -> Hashable:
    """Return the fingerprint of an actor that was built from its session or token right now; None of any other."""
    if actor.agent is not None:
        agent = actor.agent
        return "agent", agent.pk, agent.owner_id, agent.lab_id, actor.scopes, bool(actor.granted_lab_ids)
    if actor.service is not None:
        return "service", actor.service.pk, actor.scopes
    user = actor.user
    if user is None:
        return None
    # The password's hash is part of a session's right: a new password ends the old sessions.
    roles = (user.password, actor.is_research_computing, actor.is_infosec, actor.is_auditor)
    return *roles, actor.member_lab_ids, actor.managed_lab_ids, actor.pi_lab_ids, actor.granted_lab_ids


def of_viewers(viewers: Iterable["Viewer"]) -> dict[str, Hashable]:
    """Return the fingerprint of each viewer by its key; at most eight queries for all of them."""
    viewers = list(viewers)
    sessions = _sessions({viewer.session_key for viewer in viewers if viewer.session_key})
    people = _people({viewer.user_id for viewer in viewers if viewer.user_id is not None})
    keys = {viewer.token_key for viewer in viewers if viewer.token_key}
    tokens = _agent_tokens(keys) | _service_tokens(keys) if keys else {}
    return {viewer.key: _of_viewer(viewer, sessions, people, tokens) for viewer in viewers}


def _of_viewer(
    viewer: "Viewer", sessions: set[str], people: dict[int, Hashable], tokens: dict[str, tuple[Hashable, list[str]]]
) -> Hashable:
    if not viewer.token_key:
        return people.get(viewer.user_id or 0) if viewer.session_key in sessions else None
    standing, ranges = tokens.get(viewer.token_key, (None, []))
    is_here = not ranges or networks.is_allowed(viewer.address, networks.parse_networks(ranges))
    return standing if is_here else None


def _sessions(keys: set[str]) -> set[str]:
    if not keys:
        return set()
    live = Session.objects.filter(session_key__in=keys, expire_date__gt=clock.now())
    return set(live.values_list("session_key", flat=True))


def _people(ids: set[int]) -> dict[int, Hashable]:
    if not ids:
        return {}
    member: dict[int, set[int]] = {}
    managed: dict[int, set[int]] = {}
    led: dict[int, set[int]] = {}
    places = LabMembership.objects.filter(user_id__in=ids).values_list("user_id", "lab_id", "role")
    for user_id, lab_id, role in places:
        member.setdefault(user_id, set()).add(lab_id)
        if role in permissions.MANAGING_ROLES:
            managed.setdefault(user_id, set()).add(lab_id)
        if role == LabMembership.Role.PI:
            led.setdefault(user_id, set()).add(lab_id)
    granted = permissions.labs_granted_to(ids)
    roles = ("password", "is_research_computing", "is_infosec", "is_auditor")
    rows = User.objects.filter(pk__in=ids, is_active=True).values_list("pk", *roles)
    return {
        row[0]: (*row[1:], *(frozenset(labs.get(row[0], ())) for labs in (member, managed, led, granted)))
        for row in rows
    }


def _agent_tokens(keys: set[str]) -> dict[str, tuple[Hashable, list[str]]]:
    """Return of each token that works its standing and the address ranges it may come from."""
    now = clock.now()
    working = AgentToken.objects.filter(
        ~selectors.is_held("agent__"), key__in=keys, revoked_at=None, expires__gt=now,
        agent__status=Agent.Status.ACTIVE, agent__expires__gt=now, agent__owner__is_active=True,
    )  # fmt: skip
    rows = list(working.values_list("key", "agent_id", "agent__owner_id", "agent__lab_id", "scopes", "networks"))
    owners = {row[2] for row in rows}
    places = LabMembership.objects.filter(user_id__in=owners).values_list("user_id", "lab_id", "role")
    roles = {(user_id, lab_id): role for user_id, lab_id, role in places} if owners else {}
    granted = permissions.labs_granted_to(owners) if any(READS_LAB in row[4] for row in rows) else {}
    standings: dict[str, tuple[Hashable, list[str]]] = {}
    for key, agent_id, owner_id, lab_id, scopes, ranges in rows:
        role = roles.get((owner_id, lab_id))
        if role is None:
            continue
        looks = role in permissions.MANAGING_ROLES or lab_id in granted.get(owner_id, ())
        lends = READS_LAB in scopes and looks  # as permissions.actor_for_agent
        standings[key] = ("agent", agent_id, owner_id, lab_id, frozenset(scopes), lends), ranges
    return standings


def _service_tokens(keys: set[str]) -> dict[str, tuple[Hashable, list[str]]]:
    held = Exists(Hold.objects.in_force().filter(subject_kind="service", subject_id=OuterRef("service_id")))
    working = ServiceToken.objects.filter(
        ~held, key__in=keys, revoked_at=None, expires__gt=clock.now(), service__is_active=True
    )  # fmt: skip
    return {
        key: (("service", service_id, frozenset(scopes)), ranges)
        for key, service_id, scopes, ranges in working.values_list("key", "service_id", "scopes", "networks")
    }
