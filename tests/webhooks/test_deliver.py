"""Deliveries over real sockets: in order, at least once, signed, and nobody slow holds up others."""

import json
import threading
import time
from contextlib import ExitStack
from datetime import timedelta

import pytest
from django.db import transaction
from standardwebhooks.webhooks import Webhook as Verifier
from standardwebhooks.webhooks import WebhookVerificationError

from portal.core import clock, leases, live
from portal.core.models import LiveEvent
from portal.webhooks import batches, courier, hosts, pace, posting, services, tasks
from portal.webhooks.models import Delivery, Webhook
from portal.webhooks.selectors import metrics
from principals.models import Notice
from tests import factories
from tests.webhooks.conftest import deliver, register, tell
from tests.webhooks.receivers import Receiver, receiving

pytestmark = [pytest.mark.django_db, pytest.mark.sql]


def test_events_arrive_in_order_and_prove_whom_they_are_from(webhook, receiver):
    seqs = webhook.tell("a", "b", "c")
    assert deliver() == 1
    (got,) = receiver.got
    assert Verifier(webhook.key).verify(got.body, got.headers) == got.json
    assert got.headers["gatehouse-delivery"] == got.id and got.id.startswith("msg_")
    assert got.json["type"] == "gatehouse.events" and got.seqs == seqs
    assert got.json["data"]["next"] == seqs[-1]
    assert [event["topics"] for event in got.json["data"]["events"]] == [[f"user:{webhook.owner.pk}"]] * 3
    assert (webhook.now.cursor, deliver()) == (seqs[-1], 0)


def test_another_key_or_a_changed_body_proves_nothing(webhook, receiver):
    webhook.tell("a")
    deliver()
    (got,) = receiver.got
    for key, body in ((webhook.key[:-8] + "AAAAAAA=", got.body), (webhook.key, got.body + b" ")):
        with pytest.raises(WebhookVerificationError):
            Verifier(key).verify(body, got.headers)


def test_more_than_a_hundred_come_in_several_one_after_the_other(webhook, receiver):
    seqs = webhook.tell(*(f"e{n}" for n in range(250)))
    assert deliver() == 3
    assert [len(got.seqs) for got in receiver.got] == [100, 100, 50]
    assert [seq for got in receiver.got for seq in got.seqs] == seqs


def test_large_events_come_fewer_at_a_time(webhook, receiver):
    topics = (f"user:{webhook.owner.pk}",)
    live.announce(live.News("big", topics, {"text": "x" * 100_000}) for _ in range(5))
    live.number_committed()
    deliver()
    assert [len(got.seqs) for got in receiver.got] == [2, 2, 1]
    assert max(len(got.body) for got in receiver.got) < batches.MAX_BYTES


def test_nothing_of_others_is_in_it(cast, webhook, receiver):
    tell("theirs", topics=(f"user:{cast.colleague.pk}", f"lab:{cast.lab.pk}"))
    tell("both", topics=(f"user:{cast.colleague.pk}", f"user:{cast.pi.pk}"))
    deliver()
    (got,) = receiver.got
    (event,) = got.json["data"]["events"]
    assert (event["name"], event["topics"]) == ("both", [f"user:{cast.pi.pk}"])


def test_what_happened_before_it_was_made_is_not_sent(cast, receiver):
    with transaction.atomic():  # and nobody gave it its position yet
        live.announce([live.News("before", (f"user:{cast.pi.pk}",))])
    register(cast.pi, receiver.address).tell("after")
    deliver()
    assert [event["name"] for got in receiver.got for event in got.json["data"]["events"]] == ["after"]


def test_a_stream_of_others_moves_the_cursor_in_strides(cast, webhook, receiver, monkeypatch):
    monkeypatch.setattr(batches, "STRIDE", 10)
    stood = webhook.now.cursor
    tell(*"abcde", topics=(f"user:{cast.colleague.pk}",))
    deliver()
    assert webhook.now.cursor == stood
    tell(*"abcde", topics=(f"user:{cast.colleague.pk}",))
    deliver()
    assert (webhook.now.cursor, receiver.got) == (stood + 10, [])


def test_each_attempt_carries_the_same_id_and_body(webhook, receiver):
    receiver.answer = lambda nth: (500 if nth < 3 else 204, {})
    webhook.tell("a")
    deliver()
    webhook.tell("b")  # waits for its turn
    at = clock.now()
    for wait in (10, 60):
        with clock.at(at + timedelta(seconds=wait)):
            deliver()
    first, second, third, fourth = receiver.got
    assert first.id == second.id == third.id != fourth.id
    assert first.body == second.body == third.body
    assert [event["name"] for event in fourth.json["data"]["events"]] == ["b"]
    assert Verifier(webhook.key).sign(third.id, clock.now(), "")  # the library's own form of an id


def test_it_is_not_tried_before_its_time(webhook, receiver):
    receiver.answer = lambda nth: (503, {"Retry-After": "3600"})
    webhook.tell("a")
    deliver()
    row = Delivery.objects.get()
    assert timedelta(minutes=59) < row.next_at - clock.now() <= timedelta(hours=1)
    assert (row.state, row.attempts, row.status, row.words) == ("open", 1, 503, "It answered 503.")
    deliver()
    assert len(receiver.got) == 1


def _fail_for_good(webhook, receiver) -> None:
    """Let every attempt of what waits fail."""
    receiver.answer = lambda nth: (500, {})
    at = clock.now()
    for n in range(pace.ATTEMPTS):
        with clock.at(at + timedelta(hours=13 * n)):
            courier.deliver()


def test_after_the_last_attempt_it_is_a_dead_letter_and_the_next_goes_on(webhook, receiver):
    seqs = webhook.tell("a", "b")
    _fail_for_good(webhook, receiver)
    dead = Delivery.objects.get()
    assert len({got.id for got in receiver.got}) == 1 and len(receiver.got) == pace.ATTEMPTS
    assert (dead.state, dead.first, dead.last, dead.words) == ("dead", *seqs, "It answered 500.")
    receiver.answer = lambda nth: (200, {})
    webhook.tell("c")
    deliver()
    assert [event["name"] for event in receiver.got[-1].json["data"]["events"]] == ["c"]
    assert webhook.now.is_on and webhook.now.dead_in_a_row == 0
    assert [notice.text for notice in Notice.objects.filter(person=webhook.now.owner)] == ["It answered 500."]


def test_its_owner_sends_it_again_under_the_same_id(webhook, receiver):
    webhook.tell("a", "b")
    _fail_for_good(webhook, receiver)
    receiver.answer = lambda nth: (200, {})
    services.send_again(actor=factories.actor_of(webhook.owner), delivery=Delivery.objects.get())
    deliver()
    assert Delivery.objects.get().state == "delivered"
    assert (receiver.got[-1].id, receiver.got[-1].body) == (receiver.got[0].id, receiver.got[0].body)


def test_a_dead_letter_that_is_sent_again_holds_up_nothing(webhook, receiver):
    webhook.tell("a")
    _fail_for_good(webhook, receiver)
    services.send_again(actor=factories.actor_of(webhook.owner), delivery=Delivery.objects.get())
    deliver()  # in vain again
    receiver.answer = lambda nth: (200, {})
    webhook.tell("b")
    deliver()
    assert [event["name"] for event in receiver.got[-1].json["data"]["events"]] == ["b"]


def test_too_many_dead_letters_in_a_row_switch_it_off_and_its_owner_hears_of_it(webhook, receiver):
    for n in range(batches.MOST_DEAD):
        assert webhook.now.is_on
        webhook.tell(f"e{n}")
        _fail_for_good(webhook, receiver)
    row = webhook.now
    assert (row.state, row.off_code) == ("off", "receiver_fails") and "dead letters" in row.off_words
    told = LiveEvent.objects.get(name=batches.SWITCHED_OFF)
    assert told.topics == [f"user:{webhook.owner.pk}"] and told.payload["webhook"] == row.public_id


def test_gone_switches_it_off_and_loses_nothing(webhook, receiver):
    receiver.answer = lambda nth: (410 if nth == 1 else 200, {})
    seqs = webhook.tell("a")
    deliver()
    assert (webhook.now.state, webhook.now.off_code) == ("off", "receiver_gone")
    deliver()
    assert len(receiver.got) == 1
    services.switch_on(actor=factories.actor_of(webhook.owner), webhook=webhook.now)
    deliver()
    assert receiver.got[1].seqs == seqs  # then the news that it was switched off


def test_an_older_cursor_than_what_is_kept_is_told_to_load_the_state_again(webhook, receiver):
    services.switch_off(actor=factories.actor_of(webhook.owner), webhook=webhook.now)
    webhook.tell("a", "b")
    with clock.at(clock.now() + timedelta(days=8)):
        live.prune()
        services.switch_on(actor=factories.actor_of(webhook.owner), webhook=webhook.now)
        deliver()
        newest = live.newest_seq()
        (seq,) = webhook.tell("c")
        deliver()
    resync, then = receiver.got
    assert resync.json["type"] == "gatehouse.resync" and resync.json["data"] == {"next": newest}
    assert then.seqs == [seq]


def test_a_delivery_whose_events_went_while_it_was_tried_says_so(webhook, receiver):
    receiver.answer = lambda nth: (500 if nth == 1 else 200, {})
    webhook.tell("a")
    deliver()
    with clock.at(clock.now() + timedelta(days=8)):
        live.prune()
        deliver()
    assert [got.json["type"] for got in receiver.got] == ["gatehouse.events", "gatehouse.resync"]


def test_one_that_is_being_sent_is_not_sent_beside_it(webhook, receiver):
    webhook.tell("a")
    batches.put_up(newest=live.newest_seq())
    row = Delivery.objects.get()
    lease = batches.claim(row)
    assert lease and batches.claim(row) is None and deliver() == 0
    with clock.at(lease + timedelta(seconds=1)):  # its sender was killed
        assert deliver() == 1
    batches.settle(row.pk, lease, posting.Answer(500, "late"))  # or it slept: it has nothing to say any more
    row.refresh_from_db()
    assert (row.state, row.attempts, len(receiver.got)) == ("delivered", 2, 1)


def test_one_courier_works_at_a_time(webhook, receiver):
    webhook.tell("a")
    with leases.held(courier.LEASE_NAME, seconds=60):
        assert deliver() == 0
    assert deliver() == 1


def test_slow_receivers_hold_up_nobody(cast, settings, monkeypatch):
    """Twelve that never answer, four of a person, beside one that does."""
    monkeypatch.setattr(posting, "TIMEOUT_S", 2.0)
    monkeypatch.setattr(posting.post, "__kwdefaults__", {"timeout_s": 2.0})
    with ExitStack() as stack:
        hung = [stack.enter_context(receiving(Receiver(lambda nth: time.sleep(3) or (200, {})))) for _ in range(12)]
        prompt = stack.enter_context(receiving())
        settings.WEBHOOK_HOSTS = hosts.read_allowed(f"http://127.0.0.1:{each.port}" for each in [*hung, prompt])
        people = (cast.pi, cast.manager, cast.colleague)
        slow = [register(people[n // 4], each.address, name=f"slow{n}") for n, each in enumerate(hung)]
        Webhook.objects.update(is_slow=True)  # as they are after their first attempt
        quick = register(cast.staff, prompt.address)
        for each in (*slow, quick):
            each.tell("a")
        began = time.monotonic()
        took: list[float] = []
        prompt.answer = lambda nth: took.append(time.monotonic() - began) or (200, {})
        for _ in range(3):
            courier.deliver()
            quick.tell("b")
    assert took[0] < 1.5, took
    assert Delivery.objects.filter(state="delivered", webhook=quick.row).count() == 3
    assert Delivery.objects.filter(words="No answer within 2 s.").count() == 12
    assert sum(len(each.got) for each in hung) == 12


def test_an_attempt_that_never_comes_back_is_given_up(webhook, receiver, monkeypatch):
    back = threading.Event()
    monkeypatch.setattr(courier, "_PATIENCE_S", 0.2)
    monkeypatch.setattr(posting, "post", lambda *args: back.wait(20) and posting.Answer(200, "late"))
    webhook.tell("a")
    began = time.monotonic()
    assert deliver() == 1 and time.monotonic() - began < 5
    row = Delivery.objects.get()
    assert (row.state, row.attempts, row.words, row.leased_until) == ("open", 1, "No answer in time.", None)
    back.set()


def test_a_process_that_is_to_end_waits_for_nobody(webhook, receiver, monkeypatch):
    asked = threading.Event()
    receiver.answer = lambda nth: asked.set() or time.sleep(4) or (200, {})
    monkeypatch.setattr(courier.stopping, "asked", asked.is_set)
    webhook.tell("a")
    began = time.monotonic()
    deliver()
    assert time.monotonic() - began < 3
    with clock.at(clock.now() + batches.LEASE + timedelta(seconds=1)):
        monkeypatch.undo()
        receiver.answer = lambda nth: (200, {})
        deliver()
    assert receiver.got[0].id == receiver.got[1].id and Delivery.objects.get().state == "delivered"


def test_an_error_of_ours_in_one_is_nothing_to_the_others(cast, webhook, receiver, monkeypatch):
    other = register(cast.manager, receiver.address)
    for each in (webhook, other):
        each.tell("a")
    real = batches.body_of

    def fail(delivery, topics):
        if delivery.webhook_id == webhook.row.pk:
            raise RuntimeError("planted")
        return real(delivery, topics)

    monkeypatch.setattr(batches, "body_of", fail)
    deliver()
    assert [got.headers["gatehouse-webhook"] for got in receiver.got] == [other.row.public_id]
    row = Delivery.objects.get(webhook=webhook.row)
    assert (row.state, row.attempts) == ("open", 0) and row.next_at > clock.now()


def test_no_host_no_sending(webhook, receiver, settings):
    webhook.tell("a")
    settings.WEBHOOK_HOSTS = ()
    assert (deliver(), webhook.now.state) == (0, "on")


def test_the_cost_does_not_grow_with_events(webhook, receiver, django_assert_max_num_queries):
    webhook.tell(*(f"e{n}" for n in range(100)))
    with django_assert_max_num_queries(60):
        deliver()
    assert len(receiver.got) == 1


def test_the_body_is_json_without_spaces(webhook, receiver):
    webhook.tell("a")
    deliver()
    assert json.dumps(receiver.got[0].json, separators=(",", ":")).encode() == receiver.got[0].body


def test_what_is_over_is_kept_as_long_as_events(webhook, receiver):
    receiver.answer = lambda nth: (200 if nth == 1 else 500, {})
    webhook.tell("a")
    deliver()
    webhook.tell("b")
    deliver()
    assert batches.prune() == 0
    with clock.at(clock.now() + timedelta(days=8)):
        assert batches.prune() == 1
    assert Delivery.objects.get().state == "open"  # work is never pruned


def test_operators_see_how_many_wait_and_nothing_of_whose(webhook, receiver):
    receiver.answer = lambda nth: (500, {})
    webhook.tell("a")
    deliver()
    found = {(sample.name, *sample.labels.values()): sample.value for family in metrics() for sample in family.samples}
    assert found["gatehouse_webhooks", "on"] == 1 and found["gatehouse_webhook_deliveries", "open"] == 1
    assert all(len(key) == 2 for key in found)


def test_the_beat_delivers(webhook, receiver, settings):
    assert settings.CELERY_BEAT_SCHEDULE["deliver-webhooks"]["task"] == tasks.deliver.name
    assert settings.CELERY_BEAT_SCHEDULE["prune-webhooks"]["task"] == tasks.prune.name
    webhook.tell("a")
    assert tasks.deliver() == 1
