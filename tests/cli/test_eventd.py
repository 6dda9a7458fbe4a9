"""What hooks wrote arrives once there is a portal that takes it, and what is no event holds up no other."""

import argparse
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from portal.cli.client import Answer, PortalUnreachable
from portal.cli.eventd.config import Config, read
from portal.cli.eventd.running import FIRST_WAIT_S, LONGEST_WAIT_S, Eventd, serve
from portal.cli.eventd.spool import HookSpool
from portal.cli.files import Unusable
from tests.support.capabilities import ROOT

GOOD = 'portal = "https://gatehouse.example.org"\ncluster = "aster"\n'


class Portal:
    """A portal that answers from a list, then takes all; it knows which jobs came."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.answers, self.jobs, self.bodies = list(answers), list[str](), list[list[str]]()

    def post(self, body: bytes) -> Answer:
        jobs = [event["values"]["JOBID"] for event in json.loads(body)["events"]]
        self.bodies.append(jobs)
        answer = self.answers.pop(0) if self.answers else taken(len(jobs))
        if isinstance(answer, Exception):
            raise answer
        if answer.status == 200:
            self.jobs += jobs
        return answer


def taken(number: int, outcome: str = "applied") -> Answer:
    return Answer(200, {"results": [{"outcome": outcome, "reason": "bad_time"}] * number}, None)


@pytest.fixture
def spool(tmp_path: Path) -> HookSpool:
    spool = HookSpool(tmp_path / "spool")
    spool.open()
    return spool


def write(tmp_path: Path, job: int, *, data: bytes | None = None, at_s: float | None = None) -> Path:
    """Write an event as a hook does: whole, then in its place, where a run may find it at once."""
    name = f"jobcomp-{job}-1"
    half, path = tmp_path / "spool/half" / name, tmp_path / "spool/new" / name
    half.write_bytes(data if data is not None else b"HOOK=jobcomp\0JOBID=%d\0DONE=1\0" % job)
    at_s = time.time() - 100 + job if at_s is None else at_s
    os.utime(half, (at_s, at_s))
    half.rename(path)
    return path


def eventd(spool: HookSpool, portal: Portal, **settings: Any) -> Eventd:
    config = Config(portal="https://x.org", cluster="aster", **settings)
    return Eventd(config, spool, portal, threading.Event())  # type: ignore[arg-type]


def test_the_oldest_goes_first_and_what_arrived_is_gone(spool: HookSpool, tmp_path: Path) -> None:
    portal = Portal()
    for job in (3, 1, 2):
        write(tmp_path, job)
    sending = eventd(spool, portal)
    assert sending.send() and not sending.send()
    assert portal.bodies == [["1", "2", "3"]] and spool.lying(9) == []


def test_what_is_no_event_is_set_aside_and_holds_up_no_other(
    spool: HookSpool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, 1, data=b"HOOK=jobcomp\0JOBID=1\0")
    write(tmp_path, 2, data=os.urandom(9000))
    write(tmp_path, 3)
    write(tmp_path, 4, at_s=-86_400)  # no portal takes a body with it
    (tmp_path / "spool/new/link").symlink_to("/etc/passwd")
    (tmp_path / "spool/new/folder").mkdir()
    os.mkfifo(tmp_path / "spool/new/fifo")
    portal = Portal()
    eventd(spool, portal).send()
    assert portal.jobs == ["3"] and spool.lying(9) == []
    assert len(list((tmp_path / "spool/bad").iterdir())) == 6
    assert capsys.readouterr().err.count("set aside") == 6


@pytest.mark.parametrize(
    "answer", [PortalUnreachable("down"), *(Answer(status, {}, None) for status in (302, 401, 403, 429, 500, 503)),
               Answer(200, {}, None), Answer(409, {}, 1.0)],
)  # fmt: skip
def test_what_may_be_taken_later_waits(spool: HookSpool, tmp_path: Path, answer: Answer | Exception) -> None:
    write(tmp_path, 1)
    portal = Portal(answer)
    sending = eventd(spool, portal)
    assert not sending.send() and len(spool.lying(9)) == 1
    assert sending.send() and portal.jobs[-1:] == ["1"] and spool.lying(9) == []


def test_waits_grow_with_each_failure_up_to_a_minute(spool: HookSpool, tmp_path: Path) -> None:
    write(tmp_path, 1)
    sending = eventd(spool, Portal(*[PortalUnreachable("down")] * 12))
    for number in range(12):
        sending.send()
        plain = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0**number)
        assert 0.5 * plain <= sending._wait_s <= 1.5 * plain


def test_one_event_that_spoils_a_body_is_found(spool: HookSpool, tmp_path: Path) -> None:
    for job in (1, 2):
        write(tmp_path, job)
    no = Answer(422, {"code": "invalid"}, None)
    portal = Portal(no, no)
    sending = eventd(spool, portal)
    while sending.send():
        pass
    assert portal.bodies == [["1", "2"], ["1"], ["2"]]
    assert portal.jobs == ["2"] and [path.name for path in (tmp_path / "spool/bad").iterdir()] == ["jobcomp-1-1"]


def test_what_spoils_a_body_is_found_in_few_bodies(spool: HookSpool, tmp_path: Path) -> None:
    class Strict(Portal):
        def post(self, body: bytes) -> Answer:
            self.answers = [Answer(422, {"code": "invalid"}, None)] if b'"400"' in body else []
            return super().post(body)

    for job in range(1, 401):
        write(tmp_path, job)
    portal = Strict()
    sending = eventd(spool, portal)
    while sending.send():
        pass
    assert len(portal.jobs) == 399 and [path.name for path in (tmp_path / "spool/bad").iterdir()] == ["jobcomp-400-1"]
    assert len(portal.bodies) < 60  # it took two for each event before


@pytest.mark.parametrize("name", ["", "new", "half", "waiting"])
def test_a_spool_that_others_write_to_is_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "spool" / name
    folder.mkdir(parents=True)
    folder.chmod(0o1777)
    with pytest.raises(Unusable, match="spool_unsafe"):
        HookSpool(tmp_path / "spool").open()


def test_folders_that_were_set_aside_hinder_nothing(spool: HookSpool, tmp_path: Path) -> None:
    for number in range(250):
        (tmp_path / "spool/new" / f"folder{number}").mkdir()
    write(tmp_path, 1)
    portal = Portal()
    assert eventd(spool, portal).send() and portal.jobs == ["1"]


def test_what_the_portal_refuses_of_a_body_is_set_aside(spool: HookSpool, tmp_path: Path) -> None:
    for job in (1, 2):
        write(tmp_path, job)
    mixed = Answer(200, {"results": [{"outcome": "rejected", "reason": "bad_time"}, {"outcome": "known"}]}, None)
    eventd(spool, Portal(mixed)).send()
    assert [path.name for path in (tmp_path / "spool/bad").iterdir()] == ["jobcomp-1-1"] and spool.lying(9) == []


def test_while_the_portal_is_away_hooks_have_room_and_what_waits_is_limited(spool: HookSpool, tmp_path: Path) -> None:
    for job in range(1, 401):
        write(tmp_path, job)
    write(tmp_path, 500, at_s=time.time() - 10 * 86_400)
    assert spool.make_room(most_bytes=1 << 20, keep_s=7 * 86_400) == 401 - 256
    assert not list((tmp_path / "spool/new").iterdir())
    portal = Portal()
    eventd(spool, portal).send()
    assert portal.jobs == [str(job) for job in range(145, 401)]


def test_what_waits_is_not_written_over_by_an_event_of_the_same_name(spool: HookSpool, tmp_path: Path) -> None:
    for _ in range(3):
        write(tmp_path, 1)
        spool.make_room(most_bytes=1 << 20, keep_s=86_400)
    portal = Portal()
    eventd(spool, portal).send()
    assert portal.jobs == ["1"] * 3


def test_a_run_ends_when_told_and_sends_what_comes(spool: HookSpool, tmp_path: Path) -> None:
    portal, stop = Portal(PortalUnreachable("down")), threading.Event()
    sending = Eventd(Config(cluster="aster"), spool, portal, stop)  # type: ignore[arg-type]
    thread = threading.Thread(target=sending.run)
    thread.start()
    write(tmp_path, 1)
    deadline = time.monotonic() + 20
    while not portal.jobs and time.monotonic() < deadline:
        time.sleep(0.02)
    stop.set()
    thread.join(20)
    assert portal.jobs == ["1"] and not thread.is_alive()


def test_one_empties_a_spool(spool: HookSpool, tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="already_running"):
        HookSpool(tmp_path / "spool").open()


def test_half_a_file_of_a_hook_that_never_ended_goes(tmp_path: Path) -> None:
    half = tmp_path / "spool/half"
    half.mkdir(parents=True)
    (half / "old").touch()
    os.utime(half / "old", (0, 0))
    (half / "now").touch()
    HookSpool(tmp_path / "spool").open()
    assert [path.name for path in half.iterdir()] == ["now"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f'{GOOD}colour = "red"', "unknown_setting"), (f"{GOOD}keep_mb = 0", "spool_size"),
        (f'{GOOD}keep_days = "7"', "wrong_kind"), (f'{GOOD}spool = "spool"', "relative_path"),
        ('portal = "http://x.org"\ncluster = "a"', "portal_address"), ('portal = "https://x.org"', "cluster_name"),
    ],
)  # fmt: skip
def test_a_fault_of_the_settings_has_a_code_and_a_remedy(tmp_path: Path, text: str, code: str) -> None:
    (tmp_path / "eventd.toml").write_text(text)
    with pytest.raises(Unusable) as caught:
        read(tmp_path / "eventd.toml")
    said, remedy = str(caught.value).split("\n", 1)
    assert said.endswith(f"[{code}]") and remedy


def test_the_settings_that_are_shipped_say_what_is_without_them(tmp_path: Path) -> None:
    text = (ROOT / "deploy/eventd.toml").read_text()
    (tmp_path / "all.toml").write_text("".join(line.removeprefix("# ") if " = " in line else line
                                               for line in text.splitlines(keepends=True)))  # fmt: skip
    assert read(tmp_path / "all.toml") == Config(portal="https://gatehouse.example.org", cluster="aster")


def test_without_a_token_it_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "eventd.toml").write_text(f'{GOOD}token_file = "{tmp_path}/none"\n')
    with pytest.raises(Unusable, match="ingest:events"):
        serve(argparse.Namespace(config=str(tmp_path / "eventd.toml"), once=True))
