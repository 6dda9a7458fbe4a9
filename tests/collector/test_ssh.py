"""A real sshd logs who came, and the collector makes of it an agent's session, or sums without a name."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from portal.cli.collect import config as settings
from portal.cli.collect.ssh_log import Journal, SshLog
from portal.cli.files import Unusable
from telemetry.engine.collector.facts import Ending, Exited, Fact, Found
from telemetry.engine.collector.logins import Logins
from tests.collector.test_run import Portal, collecting, end, until, write_config
from tests.support.sshd import serving

WORK = "sleep 0.7; sleep 0.7"
KEY = "SHA256:" + "A" * 43


@pytest.mark.sshd
def test_keys_and_clients_of_a_real_server(portal: Portal, folder: Path) -> None:
    with serving(folder) as server:
        agents, one, other = (server.make_key(name) for name in ("agents", "one", "other"))
        path = write_config(folder, portal, ssh_log=str(server.log))
        path.write_text(f'environment = true\n{path.read_text()}[agent_keys]\n"{agents}" = "codex/okafor-docking"\n')
        with collecting(path) as process:
            for key in ("agents", "agents", "one", "one", "other"):
                server.connect(key, WORK)
            server.connect("one", WORK, "-o", "SetEnv=CLAUDECODE=1")
            time.sleep(1)  # what is looked at five times a second is gone by then
            process.send_signal(signal.SIGTERM)
            assert end(process)[0] == 0
    assert server.log.read_text().count("Accepted publickey") == 6
    bodies = [json.loads(body) for _, body in portal.taken]
    over_ssh = [each for body in bodies for each in body["sessions"] if each.get("place") == "ssh"]
    told = {(each["harness"], each.get("evidence", ""), each.get("agent", ""), each["user"]) for each in over_ssh}
    assert told == {("codex", "ssh_key", "okafor-docking", "root"), ("claude-code", "", "", "root")}
    assert len({each["id"] for each in over_ssh}) == 2, "both connections of the agents' key are one session"
    last = [each for body in bodies for each in body.get("ssh", ())][-1]
    del last["day"]
    assert last == {"connections": 3, "untold": 0, "keys": 2, "clients": 1, "pairs": 2}
    text = " ".join(body.decode() for _, body in portal.taken)
    assert not [word for word in (agents, one, other, agents[7:], "127.0.0.1") if word in text]


# --- reading ------------------------------------------------------------------------------------------------
def test_the_journal_is_read_as_journalctl_tells_it(tmp_path: Path) -> None:
    entry = {
        "MESSAGE": f"Accepted publickey for ada from 192.0.2.7 port 1 ssh2: ED25519 {KEY}", "_PID": "812",
        "_UID": "0", "_COMM": "sshd", "__REALTIME_TIMESTAMP": "1000000",
    }  # fmt: skip
    teller = tmp_path / "teller.py"
    teller.write_text(f"import sys, time\nprint({json.dumps(entry)!r}, flush=True)\ntime.sleep(60)\n")
    logins = Logins(key=b"k")
    journal = Journal([sys.executable, str(teller)])
    log = SshLog(journal, "journal", logins)
    until(lambda: bool(log.listen() or logins.of([812])))
    log.close()
    assert journal._process.poll() is not None, "nothing of it is left"


def test_a_log_that_ends_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    log = SshLog(Told(None, None), "plain", Logins(key=b"k"))
    log.listen()
    log.listen()
    assert capsys.readouterr().err.count("The log of sshd ended") == 1


class Told:
    """A log of which so much was written by each look at it."""

    def __init__(self, *parts: bytes | None) -> None:
        self.parts = list(parts)

    def read(self, wait_s: float) -> bytes | None:
        return self.parts.pop(0) if self.parts else b""


def test_a_line_may_come_in_pieces_and_one_without_end_is_no_burden() -> None:
    line = f"Nov 30 21:00:00 login1 sshd[812]: Accepted publickey for a from 192.0.2.7 port 1 ssh2: ED25519 {KEY}\n"
    logins, data = Logins(key=b"k"), line.encode()
    log = SshLog(Told(b"x" * 300_000, b"", b"\n" + data[:50], b"", data[50:]), "plain", logins)
    for _ in range(3):
        assert not logins.of([812]) and len(log._rest) < 70_000
        log.listen()
    assert logins.of([812])


def test_facts_wait_until_what_was_logged_of_them_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("portal.cli.collect.ssh_log.time.monotonic", lambda: now[0])
    log = SshLog(Told(), "plain", Logins(key=b"k"))

    def hold(*facts: Fact | Found, at_s: float) -> list[Any]:
        now[0] = at_s
        return list(log.hold(facts))

    first, second = Exited(0, 1), Exited(0, 2)
    assert hold(first, at_s=100) == hold(second, at_s=101) == []
    assert hold(at_s=102) == [first]
    assert hold(Ending(), at_s=102.5) == [second, Ending()], "at the end nothing waits"
    assert hold(first, at_s=103) == [] and list(log.rest()) == [first]


# --- settings -----------------------------------------------------------------------------------------------
GOOD = 'portal = "https://gatehouse.example.org"\ncluster = "aster"\n'


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f'[agent_keys]\n"{KEY}" = "codex"', "agent_keys_unheard"),
        (f'ssh_log = "journal"\nrecords = "auditd"\n[agent_keys]\n"{KEY}" = "codex"', "ssh_log_records"),
        ('ssh_log = "auth.log"', "relative_path"), ("ssh_log = true", "wrong_kind"),
        ('ssh_log = "journal"\nagent_keys = "x"', "wrong_kind"),
        ('ssh_log = "journal"\n[agent_keys]\n"SHA256:short" = "codex"', "bad_agent_key"),
        (f'ssh_log = "journal"\n[agent_keys]\n"{KEY}" = "nobodys"', "bad_agent_key"),
        (f'ssh_log = "journal"\n[agent_keys]\n"{KEY}" = 7', "bad_agent_key"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_are_refused(tmp_path: Path, text: str, code: str) -> None:
    path = tmp_path / "collect.toml"
    path.write_text(f"{GOOD}{text}\n")
    with pytest.raises(Unusable, match=rf"\[{code}\]"):
        settings.read(path)


def test_keys_are_a_harness_s_or_a_registered_agent_s(tmp_path: Path) -> None:
    path = tmp_path / "collect.toml"
    path.write_text(
        f'{GOOD}ssh_log = "journal"\n[agent_keys]\n"{KEY}" = "codex"\n"{KEY[:-1]}B" = "codex/okafor-dock"\n'
    )
    assert list(settings.read(path).keys.values()) == [("codex", ""), ("codex", "okafor-dock")]


def test_a_log_that_cannot_be_read_is_said_before_anything_is_collected(portal: Portal, folder: Path) -> None:
    path = write_config(folder, portal, ssh_log=str(folder / "none.log"))
    command = [sys.executable, "-m", "portal.cli.main", "collect", "--config", str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ran.returncode == 2 and "none.log cannot be read" in ran.stderr
