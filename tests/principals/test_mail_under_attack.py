"""Mail under attack: bad addresses, floods, and mail servers that lie, hang up or are not who they should be."""

import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from django.conf import settings as real_settings

from portal.core import clock
from principals import services as principal_services
from principals.models import Notice, NoticeMail, User
from principals.services.notices import mailing, postman
from tests import factories
from tests.principals.test_notify import SECRET
from tests.support import mail as mail_server
from tests.support.mail import Post

pytestmark = [pytest.mark.django_db, pytest.mark.sql]


@pytest.fixture
def post(settings) -> Iterator[Post]:
    controller, taken = mail_server.start()
    point(settings, controller.port)
    yield taken
    controller.stop()


def point(settings, port: int, security: str = "none") -> None:
    settings.MAIL = replace(
        real_settings.MAIL, host="127.0.0.1", port=port, security=security, sender="gatehouse@site.example"
    )


def tell(person: User, title: str = "Stopped", number: int = 1) -> None:
    for _ in range(number):
        principal_services.notify(people=[person.pk], kind="hold_placed", title=title)


@pytest.mark.parametrize(
    "address",
    ["zoë@site.example", "a@x.example, eve@y.example", "a@x\r\nBcc: eve@y", "<", "no-one", "@site.example", "a@b c"],
    ids=["not ascii", "two", "header", "bracket", "no domain", "no name", "blank"],
)
def test_a_bad_address_ends_its_own_mail_and_no_other(post: Post, address: str) -> None:
    tell(factories.make_user("first", email=address), "to nobody")
    tell(factories.make_user("second", email="second@site.example"), "to somebody")
    postman.deliver()
    assert post.subjects == ["to somebody"]
    assert NoticeMail.objects.get(person__username="first").state == "dead"


def test_a_mail_that_cannot_be_made_waits_and_lets_the_others_pass(post: Post, monkeypatch) -> None:
    compose = mailing.compose

    def break_for_first(mail: NoticeMail, notices: list[Notice]):
        if mail.person.username == "first":
            raise LookupError(mail.pk)
        return compose(mail, notices)

    monkeypatch.setattr(mailing, "compose", break_for_first)
    for name in ("first", "second"):
        tell(factories.make_user(name, email=f"{name}@site.example"), name)
    postman.deliver()
    assert post.subjects == ["second"]
    first = NoticeMail.objects.get(person__username="first")
    assert (first.state, first.leased_until) == ("open", None) and first.next_at > clock.now()


def test_a_flood_to_one_stands_before_nobody_else(post: Post, settings, monkeypatch) -> None:
    settings.MAIL = replace(settings.MAIL, per_hour=2)
    monkeypatch.setattr(postman, "MOST_GATHERED", 5)
    flooded = factories.make_user("flooded", email="flooded@site.example")
    other = factories.make_user("other", email="other@site.example")
    tell(flooded, "flood", 30)
    postman.deliver()
    tell(other, "quiet")
    postman.deliver()
    assert "quiet" in post.subjects
    with clock.at(clock.now() + timedelta(hours=2)):
        for _ in range(3):
            postman.gather()
    with clock.at(clock.now() + timedelta(hours=4)):
        for _ in range(3):
            postman.gather()
    assert NoticeMail.objects.filter(person=flooded).count() <= 6
    for hours in range(6, 24, 2):
        with clock.at(clock.now() + timedelta(hours=hours)):
            postman.gather()
    assert not Notice.objects.filter(mail=None).exists()


def test_a_secret_in_pieces_is_a_secret(post: Post) -> None:
    tell(factories.make_user("alice", email="alice@site.example"), f"{SECRET[:9]}\u200b{SECRET[9:]}")
    assert SECRET not in Notice.objects.get().title


def serve(answer: Callable[[socket.socket], None]) -> int:
    """Answer one connection after another on a free port; it ends with the test."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        while True:
            line, _ = listener.accept()
            with line:
                answer(line)

    threading.Thread(target=run, daemon=True).start()
    return int(listener.getsockname()[1])


def talk(line: socket.socket, *, ehlo: bytes = b"250 site.example\r\n", at_data: bytes = b"") -> None:
    """Speak SMTP until DATA, take a part of the text and hang up."""
    line.sendall(b"220 site.example\r\n")
    while said := line.recv(65_536):
        verb = said[:4].upper()
        if verb == b"DATA":
            line.sendall(b"354 go on\r\n")
            line.recv(16)
            return
        line.sendall(ehlo if verb in (b"EHLO", b"HELO") else b"250 OK\r\n")


def test_a_server_that_hangs_up_inside_the_text_gets_it_once(settings) -> None:
    point(settings, serve(talk))
    tell(factories.make_user("alice", email="alice@site.example"))
    assert postman.deliver() == 0
    assert NoticeMail.objects.get().state == "handed"
    with clock.at(clock.now() + timedelta(hours=1)):
        postman.deliver()
    assert NoticeMail.objects.get().state == "unsure"


def test_without_starttls_nothing_goes_in_the_clear(settings) -> None:
    heard: list[bytes] = []

    def listen(line: socket.socket) -> None:
        line.sendall(b"220 site.example\r\n")
        while said := line.recv(65_536):
            heard.append(said)
            line.sendall(b"250 site.example\r\n")

    point(settings, serve(listen), "starttls")
    settings.MAIL = replace(settings.MAIL, user="gatehouse", password="hidden-word")
    tell(factories.make_user("alice", email="alice@site.example"))
    assert postman.deliver() == 0
    assert not any(word in b"".join(heard) for word in (b"MAIL", b"AUTH", b"hidden-word"))
    assert NoticeMail.objects.get().state == "open"


def test_a_server_that_hangs_is_left_and_asked_later(settings, monkeypatch) -> None:
    monkeypatch.setattr(mailing, "TIMEOUT_S", 0.2)
    hold = threading.Event()
    point(settings, serve(lambda line: (hold.wait(30), None)[1]))
    tell(factories.make_user("alice", email="alice@site.example"))
    assert postman.deliver() == 0
    hold.set()
    mail = NoticeMail.objects.get()
    assert (mail.state, mail.leased_until) == ("open", None) and mail.next_at > clock.now()
