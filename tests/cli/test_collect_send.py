"""Batches arrive once there is a portal that takes them, and one that never will be taken holds up no other."""

import hashlib
import hmac
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from portal.cli import client
from portal.cli.client import Answer, PortalUnreachable
from portal.cli.collect import sending as sending_module
from portal.cli.collect.sending import LONGEST_WAIT_S, Poster, Sender
from portal.cli.collect.spool import Spool, Waiting
from telemetry.engine.collector.batches import Batch

TOKEN = "a-token"
TAKEN = Answer(200, {"accepted": {}, "rejected": []}, None)


class Portal:
    """A portal that answers from a list, then takes all."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.answers, self.asked = list(answers), list[str]()

    def __call__(self, waiting: Waiting) -> Answer:
        self.asked.append(waiting.id)
        answer = self.answers.pop(0) if self.answers else TAKEN
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    spool = Spool(tmp_path, limit_bytes=100_000)
    spool.open()
    for name in ("one", "two", "three"):
        spool.put(Batch(name, 5, json.dumps({"health": {"events": 5}}).encode()))
    return spool


def sender(spool: Spool, portal: Portal, waits: list[float]) -> Sender:
    made = Sender(spool, portal, spread_s=0)
    made._wait = waits.append  # type: ignore[method-assign]
    return made


def test_the_oldest_goes_first_and_what_arrived_is_gone(spool: Spool) -> None:
    portal = Portal()
    sender(spool, portal, []).send_all()
    assert portal.asked == ["one", "two", "three"] and spool.waiting() == []


@pytest.mark.parametrize("status", [401, 403, 408, 413, 429, 500, 502, 503, 507, 302])
def test_what_may_be_taken_later_waits(spool: Spool, status: int) -> None:
    portal, waits = Portal(Answer(status, {}, None)), list[float]()
    sending = sender(spool, portal, waits)
    sending.send_all()
    assert portal.asked == ["one"] and len(waits) == 1 and len(spool.waiting()) == 3
    sending.send_all()
    assert portal.asked == ["one", "one", "two", "three"] and spool.take_lost() == 0


@pytest.mark.parametrize("status", [400, 404, 409, 422])
def test_what_will_never_be_taken_is_set_aside_and_counted(spool: Spool, status: int, tmp_path: Path) -> None:
    portal = Portal(Answer(status, {"detail": "No.", "code": "signature_invalid"}, None))
    sender(spool, portal, []).send_all()
    assert portal.asked == ["one", "two", "three"] and spool.waiting() == []
    assert len(list((tmp_path / "rejected").iterdir())) == 1 and spool.take_lost() == 5


def test_waits_grow_with_each_failure_and_begin_anew_after_a_success(spool: Spool) -> None:
    waits: list[float] = []
    portal = Portal(*[PortalUnreachable("down")] * 12, TAKEN, PortalUnreachable("down"))
    sending = sender(spool, portal, waits)
    for _ in range(13):
        sending.send_all()
    for number, wait in enumerate(waits[:12]):
        plain = min(LONGEST_WAIT_S, 5 * 2.0**number)
        assert 0.5 * plain <= wait <= 1.5 * plain
    assert waits[12] <= 7.5


def test_a_portal_that_asks_to_wait_is_heard(spool: Spool) -> None:
    waits: list[float] = []
    sender(spool, Portal(Answer(429, {}, 120.0)), waits).send_all()
    assert waits[0] >= 120


def test_a_conflict_that_will_pass_is_no_refusal(spool: Spool) -> None:
    sender(spool, Portal(Answer(409, {"code": "in_progress"}, 1.0)), []).send_all()
    assert len(spool.waiting()) == 3


def test_a_file_that_is_no_batch_holds_up_no_other(spool: Spool) -> None:
    spool.waiting()[1].write_bytes(b"")
    portal = Portal()
    sender(spool, portal, []).send_all()
    assert portal.asked == ["one", "three"] and spool.waiting() == []


def test_it_sends_what_arrives_and_ends_without_waiting_for_a_portal(spool: Spool) -> None:
    sending = Sender(spool, Portal(), spread_s=0)
    sending.start()
    sending.finish(20)
    assert not sending.is_alive() and spool.waiting() == []
    portal = Portal(*[PortalUnreachable("down")] * 100)
    down = Sender(spool, portal, spread_s=0)
    spool.put(Batch("four", 1, b"{}"))
    down.start()
    while not portal.asked:
        time.sleep(0.01)
    down.finish(20)
    assert not down.is_alive() and len(spool.waiting()) == 1 and len(portal.asked) >= 2


def test_a_spool_that_cannot_be_read_is_waited_for(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> list[Path]:
        monkeypatch.undo()
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(spool, "waiting", broken)
    sending = Sender(spool, Portal(), spread_s=0)
    monkeypatch.setattr(sending, "_wait", lambda seconds: None)
    sending.start()
    sending.finish(20)
    assert not sending.is_alive()


def test_neither_a_token_nor_what_could_drive_a_terminal_is_told(
    spool: Spool, capsys: pytest.CaptureFixture[str]
) -> None:
    sender(spool, Portal(Answer(400, {"detail": "\x1b[2Jno\nway", "code": "x"}, None)), []).send_all()
    said = capsys.readouterr().err
    assert "was refused and set aside" in said and TOKEN not in said
    assert "\x1b" not in said and said.count("\n") == 1


# --- a token that is replaced -------------------------------------------------------------------------------
class Gate:
    """A portal that takes one token, and only what is signed with it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, token: str) -> None:
        self.token, self.asked = token, list[str]()
        monkeypatch.setattr(client, "post", self.post)

    def post(self, url: str, path: str, *, token: str, body: bytes, headers: dict[str, str]) -> Answer:
        self.asked.append(token)
        if token != self.token:
            return Answer(401, {"code": "token_unknown"}, None)
        digest = hmac.new(token.encode(), body, hashlib.sha256).hexdigest()
        is_signed = headers["X-Gatehouse-Signature"] == f"sha256={digest}"
        return TAKEN if is_signed else Answer(422, {"code": "signature_invalid"}, None)


def test_what_waits_is_signed_with_the_token_that_is_there_now(
    spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, place = Gate(monkeypatch, "the-new-one"), tmp_path / "token"
    place.write_text("the-new-one\n")
    place.chmod(0o600)
    post = Poster("https://x.org", "the-old-one", lambda: client.read_token(place))
    Sender(spool, post, spread_s=0).send_all()
    assert gate.asked == ["the-old-one", *["the-new-one"] * 3]
    assert spool.waiting() == [] and spool.take_lost() == 0


def test_batches_wait_until_the_token_is_replaced(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    Gate(monkeypatch, "the-new-one")
    tokens, waits = ["the-old-one"], list[float]()
    sending = Sender(spool, Poster("https://x.org", "the-old-one", lambda: tokens[0]), spread_s=0)
    monkeypatch.setattr(sending, "_wait", waits.append)
    sending.send_all()
    assert len(waits) == 1 and len(spool.waiting()) == 3
    tokens[0] = "the-new-one"
    sending.send_all()
    assert spool.waiting() == [] and spool.take_lost() == 0


def test_a_token_that_only_a_new_start_may_read_is_told_once(
    spool: Spool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def forbidden() -> str:
        raise PermissionError(13, "Permission denied")

    Gate(monkeypatch, "the-new-one")
    sending = Sender(spool, Poster("https://x.org", "the-old-one", forbidden), spread_s=0)
    monkeypatch.setattr(sending, "_wait", lambda _: None)
    sending.send_all()
    sending.send_all()
    assert capsys.readouterr().err.count("cannot be read anew") == 1 and len(spool.waiting()) == 3


# --- a clock that is ahead ----------------------------------------------------------------------------------
def test_what_is_ahead_of_the_portal_s_clock_waits_and_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The node's clock is ten minutes ahead, then it is set right."""
    now = datetime.now(UTC)
    spool = Spool(tmp_path, limit_bytes=100_000)
    spool.open()
    for name, ahead_s in (("ahead-1", 600), ("ahead-2", 660), ("right", 0)):
        until = (now + timedelta(seconds=ahead_s)).isoformat(timespec="seconds")
        spool.put(Batch(name, 5, json.dumps({"to": until, "health": {"events": 5}}).encode()))
    early = Answer(422, {"code": "future_date"}, None, now.timestamp() - 600)
    portal, waits, passed = Portal(early, early), list[float](), [0.0]
    monkeypatch.setattr(sending_module.time, "monotonic", lambda: passed[0])
    sending = sender(spool, portal, waits)
    sending.send_all()
    assert portal.asked == ["ahead-1", "ahead-2", "right"] and len(spool.waiting()) == 2
    assert sending.clock_ahead_s == pytest.approx(600, abs=5) and waits == [60.0]
    said = capsys.readouterr().err
    assert said.count("ahead of the portal") == 1 and "refused" not in said
    sending.send_all()
    assert len(portal.asked) == 3, "they are not sent again and again"
    passed[0] = 920.0  # 900 seconds until the portal's clock is five minutes before the end of the first
    sending.send_all()
    assert portal.asked[3:] == ["ahead-1"] and len(spool.waiting()) == 1
    passed[0] = 980.0
    sending.send_all()
    assert spool.waiting() == [] and spool.take_lost() == 0 and not list((tmp_path / "rejected").iterdir())
