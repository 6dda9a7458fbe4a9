"""Who may have a webhook, and what ends one: rights are asked again before each sending."""

from datetime import timedelta

import pytest

from portal.core import clock
from portal.core.actors import ActorRef
from portal.core.errors import Conflict, DomainError, NotAllowed, NotFound
from portal.core.models import AuditEvent
from portal.webhooks import hosts, services
from portal.webhooks.models import Delivery, Webhook
from principals.actors import SYSTEM_ACTOR, Actor
from principals.models import LabMembership, User
from principals.services import holds
from tests import factories
from tests.webhooks.conftest import deliver, register, tell

pytestmark = [pytest.mark.django_db, pytest.mark.sql]


def _refused(actor: Actor, address: str, *topics: str, name: str = "x") -> str:
    with pytest.raises(DomainError) as refused:
        services.register_webhook(actor=actor, wish=services.Wish(name, address, list(topics)))
    assert refused.value.remedy or refused.value.code in ("auditor_reads", "name_missing")
    return refused.value.code


@pytest.mark.parametrize("role", ["pi", "manager", "colleague", "outsider", "staff", "infosec"])
def test_people_may_have_one(cast, receiver, role):
    person = getattr(cast, role)
    made = register(person, receiver.address)
    assert made.key.startswith("whsec_") and made.row.owner == person
    event = AuditEvent.objects.get(verb="webhook.register")
    assert (event.actor_label, event.object_id) == (role, made.row.public_id) and made.key not in str(event.payload)


def test_an_agent_a_service_and_an_auditor_may_not(cast, receiver):
    topic = f"user:{cast.colleague.pk}"
    agent = Actor(ref=ActorRef("agent", "1", "okafor-docking"), user=cast.colleague, agent=cast.agent)
    for actor in (agent, Actor(ref=ActorRef("service", "1", "reader")), SYSTEM_ACTOR):
        assert _refused(actor, receiver.address, topic) == "people_only"
    assert _refused(factories.actor_of(cast.auditor), receiver.address, f"user:{cast.auditor.pk}") == "auditor_reads"
    assert not Webhook.objects.exists()


def test_topics_are_those_of_sockets(cast, receiver):
    actor = factories.actor_of(cast.colleague)
    assert _refused(actor, receiver.address, f"lab-jobs:{cast.lab.pk}") == "topic_not_allowed"
    assert _refused(actor, receiver.address, f"user:{cast.pi.pk}") == "topic_not_allowed"
    assert _refused(actor, receiver.address, "all-jobs:aster") == "topic_not_allowed"
    assert _refused(actor, receiver.address, "none") == "topic_malformed"
    assert _refused(actor, receiver.address) == "topics_count"
    assert register(cast.staff, receiver.address, "all-jobs:aster").row.topics == ["all-jobs:aster"]


def test_what_may_not_be_an_address(cast, receiver, settings):
    actor, topic = factories.actor_of(cast.pi), f"user:{cast.pi.pk}"
    assert _refused(actor, "https://example.org/", topic) == "host_not_allowed"
    assert _refused(actor, "http://u:p@127.0.0.1/", topic) == "address_malformed"
    secret = "gh" + "p_" + "a1B2" * 9
    assert _refused(actor, f"{receiver.address}?token={secret}", topic) == "address_holds_secret"
    assert _refused(actor, receiver.address, topic, name=" ") == "name_missing"
    settings.WEBHOOK_HOSTS = ()
    assert _refused(actor, receiver.address, topic) == "webhooks_off"


def test_five_of_a_person_and_one_of_a_name(cast, receiver):
    for n in range(services.MOST):
        register(cast.pi, receiver.address, name=f"n{n}")
    topic = f"user:{cast.pi.pk}"
    assert _refused(factories.actor_of(cast.pi), receiver.address, topic, name="n9") == "webhook_limit"
    register(cast.manager, receiver.address, name="n0")
    topic = f"user:{cast.manager.pk}"
    assert _refused(factories.actor_of(cast.manager), receiver.address, topic, name="n0") == "webhook_name"


def _hold(user: User) -> None:
    holds.place_hold(
        actor=SYSTEM_ACTOR, subject_kind="user", subject_id=user.pk, kind="suspension", code="suspended",
        reason="Secret reason.", remedy="Ask.",
    )  # fmt: skip


def _groups_of(user: User, *, seen: timedelta) -> None:
    """Let groups have given somebody their role, at a sign-in so long ago."""
    User.objects.filter(pk=user.pk).update(
        is_research_computing=True, roles_from_groups=["staff"], last_login=clock.now() - seen
    )


ENDS = {
    "owner_inactive": lambda hook: User.objects.filter(pk=hook.owner.pk).update(is_active=False),
    "owner_held": lambda hook: _hold(hook.owner),
    "auditor_reads": lambda hook: User.objects.filter(pk=hook.owner.pk).update(is_auditor=True),
    "roles_unconfirmed": lambda hook: _groups_of(hook.owner, seen=timedelta(days=31)),
    "topic_not_allowed": lambda hook: LabMembership.objects.filter(user=hook.owner).delete(),
}


@pytest.mark.parametrize("code", ENDS)
def test_a_right_that_is_gone_switches_it_off_before_anything_is_sent(cast, receiver, code):
    hook = register(cast.pi, receiver.address, f"lab:{cast.lab.pk}", f"user:{cast.pi.pk}")
    tell("a", topics=(f"lab:{cast.lab.pk}",))
    ENDS[code](hook)
    deliver()
    row = hook.now
    assert receiver.got == [] and (row.state, row.off_code) == ("off", code) and row.off_words
    event = AuditEvent.objects.get(verb="webhook.switch_off")
    assert (event.actor_kind, event.object_id) == ("system", row.public_id)
    deliver()
    assert receiver.got == []


def test_a_role_of_groups_is_believed_for_a_month_after_a_sign_in(cast, receiver):
    hook = register(cast.pi, receiver.address, f"lab:{cast.lab.pk}")
    _groups_of(cast.pi, seen=timedelta(days=29))
    tell("a", topics=(f"lab:{cast.lab.pk}",))
    deliver()
    assert len(receiver.got) == 1 and hook.now.is_on


def test_so_does_a_host_that_the_site_names_no_more(webhook, receiver, settings):
    settings.WEBHOOK_HOSTS = hosts.read_allowed(["hooks.example.org"])
    webhook.tell("a")
    deliver()
    assert (webhook.now.off_code, receiver.got) == ("host_not_allowed", [])


def test_a_right_that_goes_between_two_attempts_ends_the_second(cast, receiver):
    hook = register(cast.pi, receiver.address, f"lab:{cast.lab.pk}")
    receiver.answer = lambda nth: (500, {})
    tell("a", topics=(f"lab:{cast.lab.pk}",))
    deliver()
    LabMembership.objects.filter(user=cast.pi).delete()
    with clock.at(clock.now() + timedelta(minutes=1)):
        deliver()
    assert len(receiver.got) == 1 and hook.now.off_code == "topic_not_allowed"


def test_what_was_put_up_for_a_topic_that_is_lost_leaves_it_out(cast, receiver):
    hook = register(cast.pi, receiver.address, f"lab:{cast.lab.pk}", f"user:{cast.pi.pk}")
    receiver.answer = lambda nth: (500 if nth == 1 else 200, {})
    tell("lab", topics=(f"lab:{cast.lab.pk}",))
    tell("own", topics=(f"user:{cast.pi.pk}",))
    deliver()
    LabMembership.objects.filter(user=cast.pi).delete()
    wish = services.Wish("ops", receiver.address, [f"user:{cast.pi.pk}"])
    services.change_webhook(actor=factories.actor_of(cast.pi), webhook=hook.now, wish=wish)
    with clock.at(clock.now() + timedelta(minutes=1)):
        deliver()
    assert [event["name"] for event in receiver.got[0].json["data"]["events"]] == ["lab", "own"]
    assert [event["name"] for event in receiver.got[1].json["data"]["events"]] == ["own"]


def test_with_its_owner_it_goes(cast, webhook, receiver):
    webhook.tell("a")
    LabMembership.objects.filter(user=cast.pi).delete()
    cast.pi.delete()
    assert (deliver(), Webhook.objects.count(), Delivery.objects.count()) == (0, 0, 0)


def test_it_is_switched_on_only_when_it_may_be(cast, webhook):
    row = webhook.now
    services.switch_off(actor=factories.actor_of(cast.pi), webhook=row)
    _hold(cast.pi)
    with pytest.raises(NotAllowed):
        services.switch_on(actor=factories.actor_of(cast.pi), webhook=row)


VERBS = {
    "change": lambda actor, row: services.change_webhook(
        actor=actor, webhook=row, wish=services.Wish("x", row.address, [f"user:{actor.ref.id}"])
    ),
    "on": lambda actor, row: services.switch_on(actor=actor, webhook=row),
    "off": lambda actor, row: services.switch_off(actor=actor, webhook=row),
    "roll": lambda actor, row: services.roll_key(actor=actor, webhook=row),
    "ping": lambda actor, row: services.send_ping(actor=actor, webhook=row),
    "delete": lambda actor, row: services.delete_webhook(actor=actor, webhook=row),
    "again": lambda actor, row: services.send_again(actor=actor, delivery=_dead(row)),
    "drop": lambda actor, row: services.drop(actor=actor, delivery=_dead(row)),
}  # fmt: skip


def _dead(row: Webhook) -> Delivery:
    return Delivery.objects.create(webhook=row, kind="resync", state="dead")


@pytest.mark.parametrize("verb", VERBS)
def test_nobody_touches_anothers(cast, webhook, verb):
    for other in (cast.staff, cast.infosec, cast.manager):
        with pytest.raises(NotFound):
            VERBS[verb](factories.actor_of(other), webhook.now)
    assert not Webhook.objects.visible_to(factories.actor_of(cast.staff)).exists()


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_is_on_record(cast, webhook, verb):
    before = AuditEvent.objects.count()
    row = webhook.now
    if verb == "on":
        services.switch_off(actor=factories.actor_of(cast.pi), webhook=row)
        before += 1
    VERBS[verb](factories.actor_of(cast.pi), row)
    assert AuditEvent.objects.count() == before + 1


def test_a_dead_letter_is_dropped_once(cast, webhook):
    row = _dead(webhook.row)
    services.drop(actor=factories.actor_of(cast.pi), delivery=row)
    for verb in (services.drop, services.send_again):
        with pytest.raises(Conflict) as refused:
            verb(actor=factories.actor_of(cast.pi), delivery=row)
        assert refused.value.code == "not_dead"


def test_a_dead_letter_whose_events_are_gone_is_not_sent_again(webhook):
    webhook.tell("a")
    row = Delivery.objects.create(webhook=webhook.row, kind="events", state="dead", first=0, last=0, events=1)
    with pytest.raises(Conflict) as refused:
        services.send_again(actor=factories.actor_of(webhook.owner), delivery=row)
    assert refused.value.code == "events_gone"
