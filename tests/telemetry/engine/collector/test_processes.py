"""Whose work a process is does not change with what becomes of its parents."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine.collector.facts import Key, Seen
from telemetry.engine.collector.processes import Label, Process, Processes

TTY = 34_816


class Node:
    """A node whose processes are forked and run by name, and the collector's view of it."""

    def __init__(self) -> None:
        self.view, self.clock, self.next_pid = Processes(), 0, 100

    def run(self, parent: int, *argv: str, tty: int = 0, pid: int | None = None, exe: str = "") -> Process:
        self.clock += 1
        self.next_pid += 1
        key = Key(pid or self.next_pid, self.clock)
        self.view.fork(parent, key)
        return self.view.execute(Seen(key, parent, 1000, tty, argv, exe))


@pytest.fixture
def node() -> Node:
    return Node()


def test_what_descends_from_a_harness_is_the_agent_s(node: Node) -> None:
    shell = node.run(1, "-bash", tty=TTY)
    assert shell.label == Label("human", shell.key)
    claude = node.run(shell.key.pid, "claude", tty=TTY)
    inner = node.run(claude.key.pid, "bash", "-c", "ls")
    assert node.run(inner.key.pid, "ls").label == Label("agent", claude.key, "claude-code")
    assert node.run(shell.key.pid, "ls", tty=TTY).label == shell.label


def test_a_process_of_no_shell_is_nobody_s(node: Node) -> None:
    assert node.run(1, "cron").label.driver == "unknown"
    assert node.run(1, "bash", "job.sh").label.driver == "unknown"
    assert node.run(1, "bash", "-c", "ls", tty=TTY).label.driver == "unknown"
    assert node.run(1, "bash", "job.sh", tty=TTY).label.driver == "unknown"
    assert node.run(1, "bash").label.driver == "unknown"  # no terminal, no person


def test_parents_that_end_take_nothing_along(node: Node) -> None:
    claude = node.run(1, "claude")
    shell = node.run(claude.key.pid, "bash", "-c", "nohup setsid train &")
    train = node.run(shell.key.pid, "train")
    node.view.exit(shell.key.pid)
    node.view.exit(claude.key.pid)
    late = node.run(train.key.pid, "python", "worker.py")
    assert late.label == Label("agent", claude.key, "claude-code")
    seen = [Seen(train.key, 1, 1000, 0, ("train",), ""), Seen(late.key, 1, 1000, 0, ("python",), "")]
    assert node.view.snapshot(seen) == []
    assert node.view.get(late.key.pid) == late


def test_a_terminal_server_that_an_agent_starts_is_the_agent_s_and_so_are_its_shells(node: Node) -> None:
    codex = node.run(1, "codex", "exec", "x")
    server = node.run(codex.key.pid, "tmux", "new-session", "-d")
    node.view.exit(codex.key.pid)
    shell = node.run(server.key.pid, "-bash", tty=TTY)
    assert node.run(shell.key.pid, "make", tty=TTY).label == Label("agent", codex.key, "codex")


def test_a_number_given_out_anew_is_another_process(node: Node) -> None:
    claude = node.run(1, "claude", pid=500)
    node.view.exit(500)
    assert node.run(1, "cron", pid=500).label.driver == "unknown"
    assert node.run(500, "ls").label.driver == "unknown"
    again = node.run(1, "claude", pid=500)  # its end was never heard of
    assert again.label.root == again.key != claude.key


def test_one_harness_in_another_is_a_session_of_its_own(node: Node) -> None:
    claude = node.run(1, "claude")
    again = node.run(claude.key.pid, "node", "/x/@anthropic-ai/claude-code/cli.js")
    assert again.label == claude.label
    codex = node.run(again.key.pid, "codex", "exec", "x")
    assert node.run(codex.key.pid, "ls").label == Label("agent", codex.key, "codex")


def test_a_snapshot_makes_known_what_was_there_before_and_says_what_ended(node: Node) -> None:
    seen = [
        Seen(Key(30, 3), 20, 7, TTY, ("ls",), ""), Seen(Key(20, 2), 10, 7, TTY, ("claude",), ""),
        Seen(Key(10, 1), 1, 7, TTY, ("-zsh",), ""), Seen(Key(11, 1), 10, 7, TTY, ("vim", "a"), ""),
    ]  # fmt: skip
    assert node.view.snapshot(seen) == []
    labels = {pid: node.view.get(pid).label.driver for pid in (10, 11, 20, 30)}  # type: ignore[union-attr]
    assert labels == {10: "human", 11: "human", 20: "agent", 30: "agent"}
    gone = node.view.snapshot([seen[1], Seen(Key(10, 9), 1, 0, 0, ("cron",), "")])
    assert {each.key for each in gone} == {Key(10, 1), Key(11, 1), Key(30, 3)}
    assert node.view.get(10).label.driver == "unknown"  # type: ignore[union-attr]


def test_a_start_that_two_clocks_tell_is_one_start_within_their_slack() -> None:
    view = Processes(slack=2)
    view.execute(Seen(Key(9, 50), 1, 7, 0, ("claude",), ""))
    view.fork(9, Key(10, 99))
    inner = view.execute(Seen(Key(10, 101), 1, 7, 0, ("ls",), ""))
    assert (inner.key, inner.label.harness) == (Key(10, 101), "claude-code")
    assert view.snapshot([Seen(Key(9, 50), 1, 7, 0, ("claude",), ""), Seen(Key(10, 101), 1, 7, 0, ("ls",), "")]) == []
    assert view.execute(Seen(Key(10, 104), 1, 7, 0, ("ls",), "")).label.driver == "unknown"


def test_a_snapshot_finds_a_harness_of_whose_start_nothing_was_heard(node: Node) -> None:
    shell = node.run(1, "-bash", tty=TTY)
    node.view.snapshot([Seen(shell.key, 1, 7, TTY, ("claude",), "")])
    assert node.run(shell.key.pid, "ls").label == Label("agent", shell.key, "claude-code")


def test_processes_that_are_each_other_s_parents_do_no_harm(node: Node) -> None:
    node.view.snapshot([Seen(Key(5, 1), 6, 0, 0, ("a",), ""), Seen(Key(6, 1), 5, 0, 0, ("b",), "")])
    node.view.snapshot([Seen(Key(7, 1), 7, 0, 0, ("c",), "")])
    assert len(node.view) == 1


@dataclass
class Told:
    """A process of the reference: it knows its whole line, also of those that ended."""

    key: Key
    above: "Told | None"
    runs: list[tuple[str, int]] = field(default_factory=list)

    def driver(self) -> str:
        line: list[Told] = []
        at: Told | None = self
        while at is not None:
            line.append(at)
            at = at.above
        found = "unknown"
        for each in reversed(line):
            for name, tty in each.runs:
                if name == "claude":
                    found = "agent"
                elif name == "-bash" and tty and found == "unknown":
                    found = "human"
        return found


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["fork", "exec", "exit"]), st.integers(0, 40),
        st.sampled_from(["ls", "-bash", "claude", "tmux", "cron"]), st.sampled_from([0, TTY]), st.integers(2, 12),
    ),
    max_size=60,
)  # fmt: skip


@given(ACTIONS)
def test_it_says_what_the_whole_line_of_ancestors_says(actions: list[tuple[str, int, str, int, int]]) -> None:
    view, living = Processes(), {1: Told(Key(1, 0), None)}
    view.fork(0, Key(1, 0))
    for clock, (action, pick, name, tty, pid) in enumerate(actions, 1):
        at = list(living.values())[pick % len(living)]
        if action == "fork" and pid != at.key.pid:
            # A process that runs a command only after the fork is what its parent was then.
            frozen = Told(at.key, at.above, list(at.runs))
            living[pid] = Told(Key(pid, clock), frozen)
            view.fork(at.key.pid, Key(pid, clock))
        elif action == "exec" and at.key.pid != 1:
            at.runs.append((name, tty))
            view.execute(Seen(at.key, at.above.key.pid if at.above else 0, 0, tty, (name,), ""))
        elif action == "exit" and at.key.pid != 1:
            del living[at.key.pid]
            view.exit(at.key.pid)
    assert {pid: view.get(pid).label.driver for pid in living} == {  # type: ignore[union-attr]
        pid: each.driver() for pid, each in living.items()
    }
