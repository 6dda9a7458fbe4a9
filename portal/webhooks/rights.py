"""Whether a webhook may still be served: its owner's rights as they are now, the site's hosts, its key."""

from dataclasses import dataclass, field
from datetime import timedelta

from django.conf import settings

from portal.core import clock
from portal.core import topics as kernel_topics
from portal.core.errors import Conflict, DomainError, Invalid, NotAllowed
from portal.webhooks import hosts, signing
from portal.webhooks.hosts import Place
from portal.webhooks.models import Webhook
from principals import permissions
from principals.actors import Actor
from principals.models import Hold, User
from principals.services.tokens.issuing import peppers

MAX_TOPICS = 20
# Roles follow groups at a sign-in alone, and a webhook needs none: so long one is believed that nobody has renewed.
ROLES_BELIEVED = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Permit:
    """What a delivery needs: for whom, where to, signed with which keys."""

    actor: Actor
    place: Place
    keys: tuple[bytes, ...] = field(repr=False)


def require_site() -> None:
    """Refuse where the site lets webhooks go nowhere. Errors: `Conflict` `webhooks_off`."""
    if not settings.WEBHOOK_HOSTS:
        raise Conflict(
            "Webhooks are switched off at this site.", code="webhooks_off",
            remedy="Research computing can name the hosts they may go to in GATEHOUSE_WEBHOOK_HOSTS.",
        )  # fmt: skip


def require_place(address: str) -> Place:
    """Return where an address leads. Errors: `Invalid`, `NotAllowed` `host_not_allowed`."""
    place = hosts.read_address(address)
    hosts.require(place, settings.WEBHOOK_HOSTS)
    return place


def require_person(actor: Actor) -> User:
    """Return the person who may have webhooks. Errors: `NotAllowed`: agents, auditors, who left, who is held."""
    user = actor.user
    if user is None or not actor.is_person:
        raise NotAllowed("Webhooks are for people.", code="people_only", remedy="Ask the person you work for.")
    if not user.is_active:
        raise NotAllowed("Its owner has left.", code="owner_inactive")
    if actor.is_auditor:
        raise NotAllowed("An auditor reads everything and is sent nothing.", code="auditor_reads")
    if Hold.objects.in_force().on(Hold.Subject.USER, user.pk).exists():
        raise NotAllowed(
            "Your account is held.", code="owner_held", remedy="Switch it on again once the hold is lifted."
        )  # fmt: skip
    return user


def require_permit(webhook: Webhook) -> Permit:
    """Return what is needed to send for a webhook, by what holds now; `owner` is loaded with it.

    Errors: a `DomainError` that says why nothing may be sent for it any more.
    """
    actor = permissions.actor_for_user(webhook.owner)
    _require_seen_of_late(require_person(actor))
    for topic in webhook.topics:
        if not kernel_topics.authorise(actor, topic):
            raise NotAllowed(
                f"You may not listen to {topic} any more.", code="topic_not_allowed",
                remedy="Take that topic out, then switch it on again.",
            )  # fmt: skip
    return Permit(actor, require_place(webhook.address), keys_of(webhook))


def _require_seen_of_late(user: User) -> None:
    """Refuse who has roles of groups and has not signed in for long: whether they still are in them nobody asked."""
    known = user.last_login is not None and user.last_login > clock.now() - ROLES_BELIEVED
    if user.roles_from_groups and not known:
        raise NotAllowed(
            f"You have roles of your groups, and have not signed in for {ROLES_BELIEVED.days} days.",
            code="roles_unconfirmed", remedy="Sign in, which asks for your groups anew; then switch it on again.",
        )  # fmt: skip


def keys_of(webhook: Webhook) -> tuple[bytes, ...]:
    """Return the keys that sign for a webhook, the present one first. Errors: `Conflict` `key_gone`."""
    known = peppers()
    if webhook.pepper not in known:
        raise Conflict(
            "The secret that its key came from is no longer in use.", code="key_gone",
            remedy="Roll its key over, give its receiver the new one, and switch it on again.",
        )  # fmt: skip
    keys = [signing.derive_key(known[webhook.pepper], webhook.public_id, webhook.generation)]
    if webhook.both_until is not None and webhook.old_pepper in known:
        keys.append(signing.derive_key(known[webhook.old_pepper], webhook.public_id, webhook.generation - 1))
    return tuple(keys)


def require_topics(actor: Actor, topics: list[str]) -> None:
    """Refuse a list of topics that is empty, too long, or holds one that is not `actor`'s; on the field it is of."""
    if not 1 <= len(topics) <= MAX_TOPICS:
        raise Invalid(
            f"A webhook has 1 to {MAX_TOPICS} topics.", code="topics_count", remedy="Choose at least one.",
            extra={"field": "topics"},
        )  # fmt: skip
    try:
        for topic in topics:
            kernel_topics.require(actor, topic)
    except DomainError as error:
        error.remedy = "Choose those that you may hear." if error.code == "topic_not_allowed" else error.remedy
        error.extra["field"] = "others"
        raise
