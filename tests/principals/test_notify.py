"""Telling people: in the portal always, by mail as they chose, each thing once, whatever dies in between."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from io import StringIO

import pytest
from django.conf import settings as real_settings
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from portal.core import clock, leases
from portal.core.models import LiveEvent
from principals import services as principal_services
from principals.models import Notice, NoticeMail, NoticePreference, User
from principals.services.notices import mailing, postman
from principals.services.notices import writing as notice_services
from tests import factories
from tests.conftest import Cast, sign_in
from tests.support import mail as mail_server
from tests.support.mail import Post

pytestmark = [pytest.mark.django_db, pytest.mark.sql]
SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


@pytest.fixture
def post(settings) -> Iterator[Post]:
    """A mail server, and a site that sends by it."""
    controller, taken = mail_server.start()
    settings.MAIL = replace(
        real_settings.MAIL, host="127.0.0.1", port=controller.port, security="none", sender="gatehouse@site.example"
    )
    yield taken
    controller.stop()


@pytest.fixture
def alice(db: None) -> User:
    return factories.make_user("alice", email="alice@site.example")


def tell(*people: User, kind: str = "hold_placed", title: str = "Stopped", **more: str) -> int:
    return principal_services.notify(people=[person.pk for person in people], kind=kind, title=title, **more)


def prefer(person: User, kind: str, how: str) -> None:
    notice_services.choose(actor=factories.actor_of(person), choices={kind: (how, True)})


def test_it_stands_in_the_portal_and_comes_by_mail(post: Post, alice: User):
    assert tell(alice, text="Why: <b>polling</b>.", url="/agents/x/") == 1
    assert postman.deliver() == 1
    (mail,) = post.taken
    assert (mail["To"], mail["Subject"]) == ("alice@site.example", "[Gatehouse] Stopped")
    row = NoticeMail.objects.get()
    assert (row.state, mail["Message-ID"]) == ("sent", f"<{row.public_id}@site.example>")
    text, page = (mail.get_body((kind,)).get_content() for kind in ("plain", "html"))
    assert "Why: <b>polling</b>." in text and "/agents/x/" in text
    assert "<b>" not in page and "&lt;b&gt;polling" in page
    assert Notice.objects.get().mail == row


def test_it_is_written_in_the_transaction_of_what_it_tells(post: Post, alice: User):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        tell(alice)
        raise ZeroDivisionError
    assert not Notice.objects.exists()
    assert not LiveEvent.objects.filter(name="notice.made").exists()


def test_webhooks_hear_it_through_a_topic_of_the_person_alone(alice: User):
    tell(alice)
    tell(alice, kind="webhook_dead")  # would tell of itself for ever
    notice_services.choose(actor=factories.actor_of(alice), choices={"hold_lifted": ("off", False)})
    tell(alice, kind="hold_lifted")
    assert [event.topics for event in LiveEvent.objects.filter(name="notice.made")] == [[f"notices:{alice.pk}"]]


def test_a_key_is_told_once(alice: User):
    assert [tell(alice, key="token_ending:K"), tell(alice, key="token_ending:K"), tell(alice)] == [1, 0, 1]


def test_secrets_and_line_ends_do_not_come_along(post: Post, alice: User):
    tell(alice, title=f"x\r\nBcc: eve@site.example {SECRET}", text=f"token {SECRET}")
    postman.deliver()
    (mail,) = post.taken
    assert mail["Bcc"] is None and SECRET not in mail.as_string() and SECRET not in Notice.objects.get().text


@pytest.mark.parametrize("why", ["gone", "no-address", "demo", "off", "no-server"])
def test_who_is_not_mailed(post: Post, alice: User, settings, why: str):
    changes = {"gone": {"is_active": False}, "no-address": {"email": ""}, "demo": {"is_demo": True}}
    User.objects.filter(pk=alice.pk).update(**changes.get(why, {}))
    if why == "off":
        prefer(alice, "hold_placed", "off")
    if why == "no-server":
        settings.MAIL = replace(settings.MAIL, host="")
    tell(alice)
    assert postman.deliver() == 0 and not NoticeMail.objects.exists()
    assert Notice.objects.count() == (0 if why == "gone" else 1)


class TestDigests:
    def test_a_day_comes_in_one_mail_at_seven(self, post: Post, alice: User):
        prefer(alice, "hold_placed", "daily")
        for number in range(3):
            tell(alice, title=f"Stopped {number}")
        assert postman.deliver() == 0
        with clock.at(clock.now() + timedelta(days=1, minutes=1)):
            assert postman.deliver() == 1
        assert post.subjects == ["3 notices"]
        assert all(f"Stopped {number}" in post.taken[0].as_string() for number in range(3))

    def test_beyond_the_hours_cap_the_rest_comes_in_one(self, post: Post, alice: User, settings):
        settings.MAIL = replace(settings.MAIL, per_hour=3)
        for number in range(20):
            tell(alice, title=f"Stopped {number}")
        assert postman.deliver() == 3
        assert post.subjects == ["Stopped 0", "Stopped 1", "18 notices"]
        tell(alice, title="Later")
        assert postman.deliver() == 0
        with clock.at(clock.now() + timedelta(minutes=61)):
            assert postman.deliver() == 1
        assert post.subjects[-1] == "Later"
        assert not Notice.objects.filter(mail=None).exists()

    def test_ones_cap_is_not_anothers(self, post: Post, alice: User, settings):
        settings.MAIL = replace(settings.MAIL, per_hour=1)
        tell(alice, factories.make_user("bob", email="bob@site.example"))
        assert postman.deliver() == 2


class Killed(BaseException):
    """The process ends here: nothing that would run after it does."""


class TestFailures:
    def test_a_server_that_is_not_there_is_tried_again(self, post: Post, alice: User, settings):
        there = settings.MAIL
        settings.MAIL = replace(there, port=1)
        tell(alice)
        assert postman.deliver() == 0
        row = NoticeMail.objects.get()
        assert (row.state, row.attempts, row.leased_until) == ("open", 1, None)
        settings.MAIL = there
        assert postman.deliver() == 0  # its time has not come
        with clock.at(clock.now() + timedelta(seconds=61)):
            assert postman.deliver() == 1

    @pytest.mark.parametrize("answer", ["rcpt_answer", "data_answer"])
    @pytest.mark.parametrize(("code", "state"), [("450 later", "open"), ("550 never", "dead")], ids=["later", "never"])
    def test_a_refusal_is_for_now_or_for_good(self, post: Post, alice: User, answer: str, code: str, state: str):
        setattr(post, answer, code)
        tell(alice)
        assert postman.deliver() == 0
        row = NoticeMail.objects.get()
        assert (row.state, row.words) == (state, f"The mail server answered {code[:3]}.")

    def test_one_bad_address_does_not_stop_the_others(self, post: Post, alice: User):
        User.objects.filter(pk=alice.pk).update(email="no address\r\nBcc: eve@site.example")
        tell(alice, factories.make_user("bob", email="bob@site.example"))
        assert postman.deliver() == 1
        assert [mail["To"] for mail in post.taken] == ["bob@site.example"]

    def test_it_is_given_up_after_days(self, post: Post, alice: User):
        post.rcpt_answer = "450 later"
        tell(alice)
        postman.deliver()
        with clock.at(clock.now() + timedelta(days=5)):
            postman.deliver()
        assert NoticeMail.objects.get().state == "dead"

    def test_killed_before_the_server_has_it_it_goes_once(self, post: Post, alice: User, monkeypatch):
        def die(*_: object) -> None:
            raise Killed

        tell(alice)
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(mailing.Line, "address", die)
            postman.deliver()
        assert postman.deliver() == 0  # its lease runs
        with clock.at(clock.now() + postman.MAIL_LEASE + timedelta(seconds=1)):
            assert postman.deliver() == 1
        assert len(post.taken) == 1

    def test_killed_once_the_server_may_have_it_it_does_not_go_again(self, post: Post, alice: User, monkeypatch):
        hand_over = mailing.Line.hand_over

        def die(line: mailing.Line, message) -> None:  # type: ignore[no-untyped-def]
            hand_over(line, message)
            raise Killed

        tell(alice)
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(mailing.Line, "hand_over", die)
            postman.deliver()
        for hours in (1, 30):
            with clock.at(clock.now() + timedelta(hours=hours)):
                assert postman.deliver() == 0
        assert len(post.taken) == 1
        assert NoticeMail.objects.get().state == "unsure"
        assert Notice.objects.visible_to(factories.actor_of(alice)).exists()


@pytest.mark.django_db(transaction=True)
def test_two_postmen_send_each_mail_once(post: Post, alice: User, monkeypatch):
    """Even without the lease that keeps them apart: rows decide."""
    monkeypatch.setattr(postman.leases, "take", lambda *_, **__: True)
    monkeypatch.setattr(postman.leases, "release", lambda *_: None)
    people = [factories.make_user(f"p{number}", email=f"p{number}@site.example") for number in range(12)]
    tell(*people)
    begin = threading.Barrier(2)

    def work() -> None:
        begin.wait()
        try:
            postman.deliver()
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(str(mail["To"]) for mail in post.taken) == sorted(person.email for person in people)


class TestPages:
    def test_a_person_sees_their_own_alone(self, cast: Cast):
        tell(cast.pi, title="For the PI")
        assert "For the PI" in sign_in(cast.pi).get("/notices/").content.decode()
        for other in (cast.colleague, cast.staff):
            assert "For the PI" not in sign_in(other).get("/notices/").content.decode()

    def test_what_others_wrote_is_text(self, cast: Cast):
        tell(cast.pi, title="<script>x</script>", text="<img src=x>")
        shown = sign_in(cast.pi).get("/notices/").content.decode()
        assert "<script>x" not in shown and "<img src=x" not in shown and "&lt;img" in shown

    def test_the_frame_counts_what_is_not_read(self, cast: Cast):
        tell(cast.pi)
        tell(cast.pi)
        browser = sign_in(cast.pi)
        assert ">2<" in browser.get("/notices/count.html").content.decode()
        seen = browser.get("/notices/").context["newest"]
        tell(cast.pi, title="Meanwhile")
        browser.post("/notices/read/", {"upto": seen})
        assert ">1<" in browser.get("/notices/count.html").content.decode()

    def test_a_person_chooses(self, cast: Cast):
        browser = sign_in(cast.pi)
        rows = browser.get("/notices/choose/").context["rows"]
        sent = {f"mailed-{row.kind.name}": "weekly" for row in rows}
        assert browser.post("/notices/choose/", sent).status_code == 302
        assert {row.mailed for row in NoticePreference.objects.filter(person=cast.pi)} == {"weekly"}
        assert not NoticePreference.objects.filter(to_webhooks=True).exists()


def test_old_ones_go(alice: User):
    tell(alice)
    with clock.at(clock.now() + notice_services.KEPT + timedelta(days=1)):
        assert notice_services.prune() == 1


def test_old_ones_go_in_pieces_and_one_process_at_a_time(alice: User, monkeypatch):
    monkeypatch.setattr(notice_services, "_CHUNK", 2)
    for _ in range(5):
        tell(alice)
    with clock.at(clock.now() + notice_services.KEPT + timedelta(days=1)):
        tell(alice, title="New")
        with leases.held(notice_services.PRUNE_LEASE, seconds=60):
            assert notice_services.prune() == 0
        assert notice_services.prune() == 5
    assert [row.title for row in Notice.objects.all()] == ["New"]


def test_a_test_mail_is_sent_at_once_and_says_what_fails(post: Post, settings):
    out = StringIO()
    call_command("send_test_mail", "ops@site.example", stdout=out)
    (mail,) = post.taken
    assert (mail["To"], mail["From"]) == ("ops@site.example", "gatehouse@site.example")
    assert str(mail["Message-ID"]) in out.getvalue()
    post.rcpt_answer = "550 no"
    for to, said in (
        ("ops@site.example", "answered 550"), ("a@b.example,c@d.example", "no plain address"),
        ("a@[", "no plain address"), ("a@b.example\r\nBcc: c@d.example", "no plain address"),
    ):  # fmt: skip
        with pytest.raises(CommandError, match=said):
            call_command("send_test_mail", to)
    settings.MAIL = replace(settings.MAIL, host="")
    with pytest.raises(CommandError, match="sends no mail"):
        call_command("send_test_mail", "ops@site.example")
