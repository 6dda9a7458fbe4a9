"""The pages: a key is shown once, everything is its owner's alone, and what is wrong is said with its remedy."""

import re

import pytest
from django.test import Client
from standardwebhooks.webhooks import Webhook as Verifier

from portal.webhooks.models import Delivery, Webhook
from tests.conftest import sign_in
from tests.webhooks.conftest import Registered, deliver
from tests.webhooks.rows import make_webhook

pytestmark = [pytest.mark.django_db, pytest.mark.sql]


def _make(client: Client, address: str, *topics: str, name: str = "ops", **more: str):
    return client.post("/webhooks/new/", {"name": name, "address": address, "topics": list(topics), **more})


def _key(answer) -> str:
    return re.search(r"whsec_[A-Za-z0-9+/=]+", answer.content.decode())[0]


def test_a_key_is_shown_once(cast, receiver):
    client, topic = sign_in(cast.pi), f"user:{cast.pi.pk}"
    answer = _make(client, receiver.address, topic)
    key = _key(answer)
    assert "no-store" in answer["Cache-Control"]
    row = Webhook.objects.get()
    for path in ("/webhooks/", row.get_absolute_url(), f"{row.get_absolute_url()}change/", "/audit/"):
        assert key not in client.get(path).content.decode()
    again = _make(client, receiver.address, topic)
    assert (again.status_code, again["Location"], Webhook.objects.count()) == (302, "/webhooks/", 1)
    Registered(row, key, cast.pi).tell("a")
    deliver()
    Verifier(key).verify(receiver.got[0].body, receiver.got[0].headers)


def test_the_form_offers_what_the_person_hears_and_takes_other_topics(cast, receiver):
    client = sign_in(cast.pi)
    page = client.get("/webhooks/new/").content.decode()
    assert f"lab-jobs:{cast.lab.pk}" in page and "Okafor Lab" in page and "127.0.0.1" in page
    assert "all-jobs" not in page and str(cast.other_lab.title) not in page
    _make(client, receiver.address, others=f"lab:{cast.lab.pk}, user:{cast.pi.pk}")
    assert Webhook.objects.get().topics == [f"lab:{cast.lab.pk}", f"user:{cast.pi.pk}"]


@pytest.mark.parametrize(
    ("address", "others", "said"),
    [("https://example.org/", "", "GATEHOUSE_WEBHOOK_HOSTS"), ("nonsense", "", "https://host/path"),
     ("", "", "This field is required"), (None, "user:999", "Choose those that you may hear.")],
)  # fmt: skip
def test_what_is_wrong_stands_on_the_form(cast, receiver, address, others, said):
    address = receiver.address if address is None else address
    answer = _make(sign_in(cast.pi), address, f"user:{cast.pi.pk}", others=others)
    assert answer.status_code == 422 and said in answer.content.decode()
    assert not Webhook.objects.exists()


def test_where_webhooks_are_off_the_pages_say_so_with_the_remedy(cast):
    client = sign_in(cast.pi)
    row = make_webhook(cast.pi)
    for path in ("/webhooks/", "/webhooks/new/", row.get_absolute_url()):
        page = client.get(path).content.decode()
        assert "Webhooks are switched off at this site." in page and "GATEHOUSE_WEBHOOK_HOSTS" in page
    assert 'href="/webhooks/new/"' not in client.get("/webhooks/").content.decode()


def test_its_page_shows_what_was_sent_and_what_is_dead(cast, webhook, receiver):
    receiver.answer = lambda nth: (503, {"X-Secret": "do-not-show"})
    webhook.tell("a")
    deliver()
    dead = Delivery.objects.create(webhook=webhook.row, kind="resync", state="dead", words="It answered 418.")
    client, path = sign_in(cast.pi), webhook.row.get_absolute_url()
    page = client.get(path).content.decode()
    assert "It answered 503." in page and "Waiting" in page and "do-not-show" not in page
    assert "Dead letters" in page and dead.public_id in page and "It answered 418." in page
    assert client.post(f"{path}dead/{dead.public_id}/drop/").status_code == 302
    assert client.post(f"{path}dead/{dead.public_id}/again/").status_code == 409
    assert "Dead letters" not in client.get(path).content.decode()


def test_why_it_was_switched_off_stands_on_its_page_and_how_it_goes_on(cast, webhook, receiver):
    receiver.answer = lambda nth: (410, {})
    webhook.tell("a")
    deliver()
    client, path = sign_in(cast.pi), webhook.row.get_absolute_url()
    assert "It was switched off." in client.get(path).content.decode()
    client.post(f"{path}switch/", {"state": "on"})
    assert webhook.now.is_on and "It was switched off." not in client.get(path).content.decode()


def test_it_is_changed_rolled_pinged_and_deleted(cast, webhook, receiver):
    client, path = sign_in(cast.pi), webhook.row.get_absolute_url()
    topic = f"lab:{cast.lab.pk}"
    client.post(f"{path}change/", {"name": "chat", "address": receiver.address, "topics": [topic]})
    assert (webhook.now.name, webhook.now.topics) == ("chat", [topic])
    key = _key(client.post(f"{path}roll/"))
    client.post(f"{path}test/")
    deliver()
    assert Verifier(key).verify(receiver.got[0].body, receiver.got[0].headers)["type"] == "gatehouse.ping"
    assert client.post(f"{path}delete/").status_code == 302
    assert not Webhook.objects.exists()


def test_nothing_of_others_is_listed(cast, webhook):
    for other in (cast.staff, cast.manager, cast.auditor):
        page = sign_in(other).get("/webhooks/").content.decode()
        assert webhook.row.public_id not in page and "No webhook yet" in page


def test_the_menu_leads_there(cast):
    assert 'href="/webhooks/"' in sign_in(cast.pi).get("/webhooks/").content.decode()


def test_a_list_costs_the_same_for_one_and_for_five(cast, django_assert_max_num_queries):
    client = sign_in(cast.pi)
    for n in range(5):
        make_webhook(cast.pi, f"n{n}")
    client.get("/webhooks/")
    with django_assert_max_num_queries(20):
        client.get("/webhooks/")
