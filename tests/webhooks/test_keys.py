"""Keys: none is stored, each is shown once, a new one signs beside the old one for a day."""

from datetime import timedelta

import pytest
from django.db import connection
from standardwebhooks.webhooks import Webhook as Verifier
from standardwebhooks.webhooks import WebhookVerificationError

from portal.core import clock
from portal.webhooks import services, signing
from portal.webhooks.models import Webhook
from tests import factories
from tests.webhooks.conftest import deliver, register
from tests.webhooks.receivers import Received

pytestmark = [pytest.mark.django_db, pytest.mark.sql]


def _proves(key: str, got: Received) -> bool:
    try:
        Verifier(key).verify(got.body, got.headers)
    except WebhookVerificationError:
        return False
    return True


def _roll(webhook) -> str:
    return services.roll_key(actor=factories.actor_of(webhook.owner), webhook=webhook.now).key


def test_for_a_day_both_keys_prove_a_delivery(webhook, receiver):
    first = webhook.key
    second = _roll(webhook)
    webhook.tell("a")
    deliver()
    Webhook.objects.update(rolled=clock.now() - timedelta(hours=25))
    webhook.tell("b")
    deliver()
    both, later = receiver.got
    assert len(both.headers["webhook-signature"].split()) == 2
    assert (first != second, _proves(first, both), _proves(second, both)) == (True, True, True)
    assert (_proves(first, later), _proves(second, later)) == (False, True)


def test_the_one_before_the_one_before_signs_no_more(webhook, receiver):
    _roll(webhook)
    newest = _roll(webhook)
    webhook.tell("a")
    deliver()
    assert not _proves(webhook.key, receiver.got[0]) and _proves(newest, receiver.got[0])


def test_it_outlives_a_new_pepper_until_the_old_one_is_taken_away(webhook, receiver, settings):
    (old,) = settings.TOKEN_PEPPERS.items()
    settings.TOKEN_PEPPERS = {old[0] + 1: "n" * 40, old[0]: old[1]}
    webhook.tell("a")
    deliver()
    assert _proves(webhook.key, receiver.got[0])
    settings.TOKEN_PEPPERS = {old[0] + 1: "n" * 40}
    webhook.tell("b")
    deliver()
    assert (webhook.now.off_code, len(receiver.got)) == ("key_gone", 1)
    key = _roll(webhook)
    services.switch_on(actor=factories.actor_of(webhook.owner), webhook=webhook.now)
    deliver()
    assert _proves(key, receiver.got[1])


def test_two_webhooks_have_two_keys(cast, webhook, receiver):
    other = register(cast.manager, receiver.address)
    other.tell("a")
    deliver()
    assert not _proves(webhook.key, receiver.got[0])


def test_no_key_is_in_any_column(webhook):
    key, plain = webhook.key.removeprefix(signing.PREFIX), Verifier(webhook.key)._whsecret.hex()
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - names of our own tables
            stored = repr(cursor.fetchall())
            assert key not in stored and plain not in stored, table


def test_a_ping_is_sent_once_whatever_comes_of_it(webhook, receiver):
    receiver.answer = lambda nth: (500, {})
    ping = services.send_ping(actor=factories.actor_of(webhook.owner), webhook=webhook.now)
    deliver()
    with clock.at(clock.now() + timedelta(days=1)):
        deliver()
    (got,) = receiver.got
    assert got.json["type"] == "gatehouse.ping" and _proves(webhook.key, got)
    ping.refresh_from_db()
    assert (ping.state, ping.words, webhook.now.dead_in_a_row) == ("failed", "It answered 500.", 0)
