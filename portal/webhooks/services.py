"""What a person does with their webhooks. Nobody else's exist for them."""

from dataclasses import dataclass, field
from typing import Any, Final

from django.db import IntegrityError, transaction

from portal.core import audit, clock, live, throttle
from portal.core.errors import Conflict, Invalid, NotFound
from portal.webhooks import rights, signing
from portal.webhooks.models import Delivery, Webhook
from principals.actors import Actor
from principals.models import User
from principals.services.tokens.issuing import peppers
from security.services.cleaning import clean_text, cleaned

MOST: Final = 5  # of one person
PINGS_A_MINUTE: Final = 10


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person wants a webhook to be."""

    name: str
    address: str
    topics: list[str]


@dataclass(frozen=True, slots=True)
class Keyed:
    """A webhook with its key as its receiver takes it. `key` is shown once and kept nowhere."""

    webhook: Webhook
    key: str = field(repr=False)


def register_webhook(*, actor: Actor, wish: Wish) -> Keyed:
    """Make a webhook that hears of what happens from now on.

    Errors: `NotAllowed` for agents, auditors, hosts and topics that may not be; `Invalid`; `Conflict` `webhooks_off`,
    `webhook_limit`, `webhook_name`.
    """
    user = rights.require_person(actor)
    rights.require_site()
    checked = _checked(actor, wish)
    while live.number_committed():  # what happened before has its position before
        pass
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        if Webhook.objects.filter(owner=user).count() >= MOST:
            raise Conflict(
                f"You have {MOST} webhooks, which is the most.", code="webhook_limit", remedy="Delete one first."
            )
        webhook = _named(Webhook(owner=user, cursor=live.newest_seq(), pepper=max(peppers()), **checked))
        _record(actor, webhook, "webhook.register", after=checked)
    return _keyed(webhook)


def change_webhook(*, actor: Actor, webhook: Webhook, wish: Wish) -> Webhook:
    """Change name, address and topics. What waits is tried at once at the new address, with the topics it was made of.

    Errors: those of `register_webhook`.
    """
    _require_own(actor, webhook)
    rights.require_site()
    checked = _checked(actor, wish)
    before = {name: getattr(webhook, name) for name in checked}
    with transaction.atomic():
        for name, value in checked.items():
            setattr(webhook, name, value)
        _named(webhook, update_fields=[*checked])
        if before["address"] != webhook.address:
            _try_at_once(webhook)
        _record(actor, webhook, "webhook.change", before=before, after=checked)
    return webhook


def switch_on(*, actor: Actor, webhook: Webhook) -> Webhook:
    """Switch a webhook on again: it goes on where it stood. Errors: whatever keeps it from being served."""
    _require_own(actor, webhook)
    rights.require_site()
    rights.require_permit(webhook)
    return _switch(actor, webhook, Webhook.State.ON)


def switch_off(*, actor: Actor, webhook: Webhook) -> Webhook:
    """Switch a webhook off: what waits for it waits."""
    _require_own(actor, webhook)
    return _switch(actor, webhook, Webhook.State.OFF)


def roll_key(*, actor: Actor, webhook: Webhook) -> Keyed:
    """Give a webhook a new key. The one before signs beside it for a day; the one before that no more."""
    _require_own(actor, webhook)
    generation = webhook.generation
    new = {
        "generation": generation + 1, "pepper": max(peppers()), "rolled": clock.now(), "old_pepper": webhook.pepper,
    }  # fmt: skip
    with transaction.atomic():
        if not Webhook.objects.filter(pk=webhook.pk, generation=generation).update(**new):
            raise Conflict("The key was rolled over just now.", code="key_rolled", remedy="Use the newer one.")
        webhook.refresh_from_db()
        _record(actor, webhook, "webhook.roll_key", after={"generation": webhook.generation})
    return _keyed(webhook)


def send_ping(*, actor: Actor, webhook: Webhook) -> Delivery:
    """Ask for one message without events to be sent at once, and once only. Errors: `Conflict`, `TooMany`."""
    user = _require_own(actor, webhook)
    rights.require_site()
    _require_on(webhook)
    throttle.check(
        "webhook-ping", str(user.pk), limit=PINGS_A_MINUTE, what="tests of webhooks", remedy="Wait a little."
    )
    with transaction.atomic():
        ping = Delivery.objects.create(webhook=webhook, kind=Delivery.Kind.PING)
        _record(actor, webhook, "webhook.ping")
        _hint()
    return ping


def send_again(*, actor: Actor, delivery: Delivery) -> Delivery:
    """Send a dead letter on its way again, with as many attempts as the first time. Errors: `Conflict`."""
    _require_own(actor, delivery.webhook)
    _require_on(delivery.webhook)
    if delivery.kind == Delivery.Kind.EVENTS and live.oldest_kept_seq() > delivery.first:
        raise Conflict(
            "Its events are no longer kept.", code="events_gone",
            remedy="Let its receiver load the state again, and drop it.",
        )  # fmt: skip
    now = clock.now()
    again = {"state": Delivery.State.OPEN, "is_again": True, "attempts": 0, "next_at": now, "ended": None}
    return _decide(actor, delivery, "webhook.send_again", again)


def drop(*, actor: Actor, delivery: Delivery) -> Delivery:
    """Drop a dead letter: its receiver goes without. Errors: `Conflict` `not_dead`."""
    _require_own(actor, delivery.webhook)
    return _decide(actor, delivery, "webhook.drop", {"state": Delivery.State.DROPPED})


def delete_webhook(*, actor: Actor, webhook: Webhook) -> None:
    """Delete a webhook and all that was sent or waits for it."""
    _require_own(actor, webhook)
    with transaction.atomic():
        _record(actor, webhook, "webhook.delete", before={"address": webhook.address, "topics": webhook.topics})
        Webhook.objects.filter(pk=webhook.pk).delete()


def _checked(actor: Actor, wish: Wish) -> dict[str, Any]:
    name, topics = clean_text(wish.name)[:60], list(dict.fromkeys(wish.topics))
    if not name:
        raise Invalid("It needs a name.", code="name_missing", extra={"field": "name"})
    address = wish.address.strip()
    rights.require_place(address)
    if cleaned(address).findings:
        raise Invalid(
            "The address seems to hold a secret.", code="address_holds_secret",
            remedy="Addresses are stored and shown: let the receiver check the signature instead.",
            extra={"field": "address"},
        )  # fmt: skip
    rights.require_topics(actor, topics)
    return {"name": name, "address": address, "topics": topics}


def _named(webhook: Webhook, **how: Any) -> Webhook:
    try:
        with transaction.atomic():
            webhook.save(**how)
    except IntegrityError:
        raise Conflict(
            "You have a webhook of that name.", code="webhook_name", remedy="Choose another.", extra={"field": "name"}
        ) from None
    return webhook


def _switch(actor: Actor, webhook: Webhook, state: Webhook.State) -> Webhook:
    with transaction.atomic():
        now = clock.now()
        others = Webhook.objects.filter(pk=webhook.pk).exclude(state=state)
        if others.update(state=state, state_changed=now, off_code="", off_words="", dead_in_a_row=0):
            _record(actor, webhook, f"webhook.switch_{state.value}", after={"state": state})
            if state == Webhook.State.ON:
                _try_at_once(webhook)
        webhook.refresh_from_db()
    return webhook


def _try_at_once(webhook: Webhook) -> None:
    now = clock.now()
    Delivery.objects.filter(webhook=webhook, state=Delivery.State.OPEN, next_at__gt=now).update(next_at=now)
    _hint()


def _decide(actor: Actor, delivery: Delivery, verb: str, fields: dict[str, Any]) -> Delivery:
    with transaction.atomic():
        dead = Delivery.objects.filter(pk=delivery.pk, state=Delivery.State.DEAD)
        if not dead.update(**fields):
            raise Conflict("This is no dead letter any more.", code="not_dead", remedy="Load the page again.")
        delivery.refresh_from_db()
        span = {"delivery": delivery.public_id, "first": delivery.first, "last": delivery.last}
        _record(actor, delivery.webhook, verb, after=span)
        _hint()
    return delivery


def _require_own(actor: Actor, webhook: Webhook) -> User:
    user = rights.require_person(actor)
    if webhook.owner_id != user.pk:
        raise NotFound("There is no such webhook.", remedy="See yours under Webhooks.")
    return user


def _require_on(webhook: Webhook) -> None:
    if not webhook.is_on:
        raise Conflict("This webhook is off.", code="webhook_off", remedy="Switch it on first.")


def _keyed(webhook: Webhook) -> Keyed:
    return Keyed(webhook, signing.written(rights.keys_of(webhook)[0]))


def _record(actor: Actor, webhook: Webhook, verb: str, **more: Any) -> None:
    audit.record(
        actor=actor.ref, verb=verb, object_kind="webhook", object_id=webhook.public_id, object_label=webhook.name,
        **more,
    )  # fmt: skip


def _hint() -> None:
    """Wake the courier after commit; a lost hint costs until the next beat."""
    from portal.webhooks import tasks

    transaction.on_commit(tasks.deliver.delay, robust=True)
