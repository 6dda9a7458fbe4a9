"""Publishing the acceptable-use policy, and accepting it for an agent."""

from django.db import transaction

from policies import events, permissions
from policies.engine import aup as aup_engine
from policies.models import AupAcceptance, AupVersion
from portal.core import audit, live
from portal.core.errors import Conflict, Invalid, NotAllowed
from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR, Actor
from principals.models import Agent, Hold
from principals.services.agents import AUP_REQUIRED


def current_aup() -> AupVersion:
    """Return the version in force; a new site starts with the one that ships."""
    newest = AupVersion.objects.first()
    if newest is not None:
        return newest
    source = aup_engine.default_source()
    policy = aup_engine.parse_aup(source)
    return AupVersion.objects.get_or_create(
        version=policy.version,
        defaults={"source": source, "digest": aup_engine.aup_digest(policy), "published_by": SYSTEM_ACTOR.ref.label},
    )[0]


def publish_aup(*, actor: Actor, source: str) -> AupVersion:
    """Publish a new version from TOML. Every agent is held until the version is accepted for it.

    Errors: `Invalid` naming the clause and its fault, `Conflict` for a version that exists.
    """
    permissions.require(actor, "aup.publish")
    try:
        policy = aup_engine.parse_aup(source)
    except (ValueError, KeyError) as error:
        raise Invalid(f"The policy cannot be read: {error}", code="aup_malformed") from error
    if AupVersion.objects.filter(version=policy.version).exists():
        raise Conflict(
            f"Version {policy.version} is published already.",
            code="aup_version_exists",
            remedy="Give the edited text a `version` of its own.",
        )
    with transaction.atomic():
        _lock()
        version = AupVersion.objects.create(
            version=policy.version, source=source, digest=aup_engine.aup_digest(policy), published_by=actor.ref.label
        )
        audit.record(
            actor=actor.ref, verb="aup.publish", object_kind="aup", object_id=version.pk, object_label=version.version,
            after={"digest": version.digest},
        )  # fmt: skip
        for agent in Agent.objects.exclude(status=Agent.Status.RETIRED):
            _hold(agent, version)
        live.announce([live.News(events.AUP_PUBLISHED, ("facility:policies",), {"version": version.version})])
    return version


def _lock() -> None:
    """Keep publishing and accepting apart: else an acceptance of the old version lifts the hold of the new one.

    The oldest version is the lock, for it is the one row that every caller finds.
    """
    AupVersion.objects.select_for_update(no_key=True).order_by("published", "pk").first()


def _hold(agent: Agent, version: AupVersion) -> None:
    principal_services.place_hold(
        actor=SYSTEM_ACTOR, subject_kind=Hold.Subject.AGENT, subject_id=agent.pk, kind=Hold.Kind.AUP,
        code=AUP_REQUIRED, reason=f"The acceptable-use policy {version.version} is not accepted for {agent.name}.",
        remedy="Its owner, PI or lab manager accepts it on My lab.",
    )  # fmt: skip


def accept_aup(*, actor: Actor, agent: Agent, version: str) -> AupAcceptance:
    """Accept the current version for an agent and lift its AUP hold. Accepting twice changes nothing.

    `version` is the one the person was shown: `Conflict` where a newer one was published meanwhile.
    """
    if not (actor.is_person and actor.user is not None and permissions.can(actor, "aup.accept", agent)):
        raise NotAllowed("Its owner, PI or lab manager accepts the policy for an agent.", code="not_answerable")
    with transaction.atomic():
        _lock()
        current = current_aup()
        if version != current.version:
            raise Conflict(
                f"Version {current.version} was published meanwhile.", code="aup_version_outdated",
                remedy="Read the new version and accept that.",
            )  # fmt: skip
        acceptance, new = AupAcceptance.objects.get_or_create(
            version=current, agent=agent, defaults={"user": actor.user, "digest": current.digest}
        )
        if new:
            audit.record(
                actor=actor.ref, verb="aup.accept", object_kind="agent", object_id=agent.pk, object_label=agent.name,
                lab_id=agent.lab_id, after={"version": current.version, "digest": current.digest},
            )  # fmt: skip
        principal_services.lift_holds(
            actor=SYSTEM_ACTOR, subject_kind=Hold.Subject.AGENT, subject_id=agent.pk, kind=Hold.Kind.AUP,
            reason=f"AUP {current.version} accepted by {actor.ref.label}",
        )  # fmt: skip
    return acceptance
