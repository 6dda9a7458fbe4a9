"""Who came by SSH: what sshd logs, whose connections it makes an agent's, and what is counted of all others."""

import json
from typing import Any

import pytest

from telemetry.engine.collector.batches import Sender, make
from telemetry.engine.collector.logins import Accepted, AgentKey, Logins, read_line
from telemetry.engine.collector.origins import NO_JOB
from telemetry.engine.collector.watch import Parts
from tests.telemetry.engine.collector.node import BOOT_S, TTY, Node
from tests.telemetry.engine.collector.test_places import places, run

AGENTS = "SHA256:" + "A" * 43
OTHERS = "SHA256:" + "b" * 43
LINE = f"Accepted publickey for ada from 192.0.2.7 port 50022 ssh2: ED25519 {OTHERS}"
BSD = "Nov 30 21:00:00 login1 sshd[812]: "


def plain(text: str) -> Accepted | None:
    return read_line(text.encode(), "plain", 103.0)


def journal(**fields: Any) -> Accepted | None:
    told = {"MESSAGE": LINE, "_PID": "812", "_UID": "0", "_COMM": "sshd", "__REALTIME_TIMESTAMP": "100500000"} | fields
    return read_line(json.dumps(told).encode(), "journal", 0.0)


@pytest.mark.parametrize(
    "text",
    [
        BSD + LINE,
        f"2026-11-30T21:00:00.123456+01:00 login1 sshd-session[812]: {LINE}",
        f"Nov  3 21:00:00 login1 sshd[812]: {LINE}",
    ],
)
def test_a_line_of_a_log_tells_server_client_and_key(text: str) -> None:
    assert plain(text) == Accepted(812, 100.0, "192.0.2.7", OTHERS)


def test_of_a_certificate_it_is_the_key_that_it_is_for() -> None:
    told = f"{LINE.replace('ED25519', 'ED25519-CERT')} ID {AGENTS} (serial 0) CA ED25519 {AGENTS}"
    assert plain(BSD + told) == Accepted(812, 100.0, "192.0.2.7", OTHERS)


@pytest.mark.parametrize("how", ["password", "keyboard-interactive/pam", "gssapi-with-mic", "hostbased"])
def test_other_ways_tell_the_client_alone(how: str) -> None:
    assert plain(f"{BSD}Accepted {how} for ada from 2001:db8::1 port 9 ssh2") == Accepted(812, 100.0, "2001:db8::1", "")


@pytest.mark.parametrize(
    "text",
    [
        "", "\0", BSD, BSD + "Failed publickey for ada from 192.0.2.7 port 1 ssh2",
        f"Nov 30 21:00:00 login1 ada: x sshd[812]: {LINE}",  # what somebody else wrote
        f"Nov 30 21:00:00 login1 ada[9]: Nov 30 21:00:00 login1 sshd[812]: {LINE}",
        f"Nov 30 21:00:00 login1 sshd[{'9' * 11}]: {LINE}", f"Nov 30 21:00:00 login1 xsshd[812]: {LINE}",
        f"{BSD}Accepted publickey for {'a' * 300} from 192.0.2.7 port 1 ssh2",
    ],
)  # fmt: skip
def test_what_tells_of_no_login_is_passed_over(text: str) -> None:
    assert plain(text) is None


def test_of_the_journal_what_the_kernel_vouches_for_counts() -> None:
    assert journal() == journal(_COMM="sshd-session") == Accepted(812, 100.5, "192.0.2.7", OTHERS)
    assert journal(_UID="1000") is None and journal(_COMM="logger") is None, "anybody may write a line"
    odd: list[dict[str, Any]] = [{"MESSAGE": [65]}, {"_PID": 812}, {"_PID": "x"}, {"__REALTIME_TIMESTAMP": None},
                                  {"__REALTIME_TIMESTAMP": "9" * 400}]  # fmt: skip
    assert [journal(**each) for each in odd] == [None] * 5
    for line in (b"[" * 9000 + b"Accepted ", b'"Accepted "', b'{"MESSAGE": "Accepted '):
        assert read_line(line, "journal", 0.0) is None


# --- what becomes of them -------------------------------------------------------------------------------------
@pytest.fixture
def node() -> Node:
    logins = Logins(key=b"k", agents={AGENTS: AgentKey("claude-code", "okafor-docking")})
    return Node(logins=logins)


def connect(
    node: Node, fingerprint: str | None, *argv: str, client: str = "192.0.2.7", tty: int = 0, uid: int = 1000
) -> int:
    """Come in by SSH: the listener, its program for the connection, the copy of that, and what is asked for."""
    listener = run(node, 1, "/usr/sbin/sshd", "-D", uid=0)
    server = run(node, listener, "/usr/sbin/sshd", "-D", "-R", uid=0)
    if fingerprint is not None:
        node.logins.hear(Accepted(server, BOOT_S + node.now_s, client, fingerprint))
    return run(node, node.fork(server), *argv, uid=uid, tty=tty, job=NO_JOB)


def leave(node: Node, pid: int) -> None:
    node.now_s += 1
    node.exit(pid)


def ssh_days(parts: Parts) -> list[tuple[int, int, int, int, int]]:
    return [(each.connections, each.untold, each.keys, each.clients, each.pairs) for each in parts.ssh]


def test_connections_of_an_agents_key_are_one_session_whatever_runs_in_them(node: Node) -> None:
    for argv in (("bash", "-c", "squeue"), ("bash", "-c", "python x.py")):
        shell = connect(node, AGENTS, *argv)
        node.execute(shell, *argv[-1].split())
        run(node, shell, "grep", "x")
        leave(node, shell)
    run(node, connect(node, AGENTS, "-bash", tty=TTY), "cat", "x", tty=TTY)
    parts = node.close()
    [session] = parts.sessions
    told = (session.harness, session.where.place, session.evidence, session.agent)
    assert told == ("claude-code", "ssh", "ssh_key", "okafor-docking")
    assert places(parts)[("agent", "ssh")] == 6  # the login shell is one
    assert not parts.ssh, "nothing else came"


def test_another_client_or_account_is_a_session_of_its_own(node: Node) -> None:
    for client, uid in (("192.0.2.7", 1000), ("192.0.2.8", 1000), ("192.0.2.7", 1001), ("192.0.2.7", 1000)):
        leave(node, connect(node, AGENTS, "bash", "-c", "ls", client=client, uid=uid))
    assert len(node.close().sessions) == 3


def test_such_a_session_ends_half_an_hour_after_the_last_of_it(node: Node) -> None:
    def close(after_s: float) -> list[tuple[bool, ...]]:
        node.now_s += after_s
        parts = node.watch.close(BOOT_S + node.now_s, BOOT_S + node.now_s)
        return [(each.end_s is not None,) for each in parts.sessions]

    leave(node, connect(node, AGENTS, "bash", "-c", "ls"))
    assert close(10) == [(False,)]
    assert close(1000) == []
    assert close(1000) == [(True,)]
    leave(node, connect(node, AGENTS, "bash", "-c", "ls"))
    assert close(10) == [(False,)], "a new one"


def test_a_harness_in_it_is_a_session_besides(node: Node) -> None:
    run(node, connect(node, AGENTS, "bash", "-c", "x"), "codex", "exec")
    assert sorted((each.harness, each.evidence) for each in node.close().sessions) == [
        ("claude-code", "ssh_key"), ("codex", ""),
    ]  # fmt: skip


def test_all_others_are_nobodys_and_counted_by_day_without_a_name(node: Node) -> None:
    for fingerprint, client in ((OTHERS, "192.0.2.7"), (OTHERS, "192.0.2.7"), (OTHERS, "192.0.2.8"), ("", "192.0.2.7")):
        leave(node, connect(node, fingerprint, "bash", "-c", "ls", client=client))
    leave(node, connect(node, None, "bash", "-c", "ls"))
    connect(node, OTHERS, "-bash", client="203.0.113.9", tty=TTY)  # a person at a terminal is none
    parts = node.close()
    assert ssh_days(parts) == [(5, 1, 1, 2, 3)]
    assert not parts.sessions and places(parts, "ssh_connection") == {("unknown", "ssh"): 5}
    assert not node.close().ssh, "nothing new"
    connect(node, OTHERS, "bash", "-c", "ls")
    assert ssh_days(node.close()) == [(6, 1, 1, 2, 3)], "a day's sums, not what came since"


def test_what_leaves_holds_no_fingerprint_address_or_digest(node: Node) -> None:
    leave(node, connect(node, OTHERS, "bash", "-c", "ls"))
    leave(node, connect(node, AGENTS, "bash", "-c", "ls"))
    sender = Sender("aster", "login1", "boot", "run", "0")
    ids = iter("abc")
    [batch] = make(node.close(), sender=sender, mode="events", login=lambda uid: "ada", new_id=lambda: next(ids))
    told = json.loads(batch.body)
    assert told["ssh"] == [{"day": "2027-01-15", "connections": 1, "untold": 0, "keys": 1, "clients": 1, "pairs": 1}]
    assert [(each["evidence"], each["agent"]) for each in told["sessions"]] == [("ssh_key", "okafor-docking")]
    text = batch.body.decode()
    digests = [node.logins._digest(word).hex() for word in (OTHERS, AGENTS, "192.0.2.7")]
    assert not [word for word in (OTHERS[7:], AGENTS[7:], "192.0.2", *digests) if word in text]


def test_a_number_that_is_given_out_anew_is_somebody_elses(node: Node) -> None:
    logins = node.logins
    logins.hear(Accepted(812, 10.0, "192.0.2.7", AGENTS))
    logins.end(812, 9.0)  # of the one before, heard late
    assert logins.of([812]) is not None
    logins.end(812, 11.0)
    assert logins.of([812]) is None


def test_two_lines_of_one_server_process_that_differ_tell_nothing(node: Node) -> None:
    logins = node.logins
    logins.hear(Accepted(812, 10.0, "192.0.2.7", OTHERS))
    logins.hear(Accepted(812, 10.0, "192.0.2.7", OTHERS))
    told = logins.of([1, 812, 813])
    assert told is not None and not told.is_doubtful
    logins.hear(Accepted(812, 10.5, "192.0.2.7", AGENTS))
    told = logins.of([812])
    assert told is not None and told.is_doubtful and told.agent is None


def test_what_is_known_is_bounded(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("telemetry.engine.collector.logins.MOST", 3)
    for number in range(9):
        node.logins.hear(Accepted(number, 1.0, f"192.0.2.{number}", OTHERS))
        node.logins.count([number], 1.0)
    assert node.logins.of([5]) is None and node.logins.of([8]) is not None
    [day] = node.logins.days(0)
    assert (day.connections, day.pairs) == (9, 3)
