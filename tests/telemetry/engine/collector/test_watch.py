"""What leaves a node is what was done on it: each command once, under whoever's work it is."""

import pytest

from telemetry.engine.collector import sessions as sessions_module
from telemetry.engine.collector import watch as watch_module
from telemetry.engine.collector.facts import Executed
from telemetry.engine.collector.sessions import id_of
from telemetry.engine.collector.watch import Health
from tests.telemetry.engine.collector.node import BOOT_S, TICKS_S, TTY, Node, counts


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def claude(node: Node) -> int:
    return node.run(1, "claude", "-p", "x")


def id_at(node: Node, pid: int) -> str:
    return f"{pid}-{next(each.key.start for each in node.watch._processes if each.key.pid == pid)}"


def test_commands_count_under_the_session_that_started_them(node: Node, claude: int) -> None:
    shell = node.run(claude, "bash", "-c", "grep -r x . | head")
    node.run(shell, "grep", "-r", "x", ".")
    node.run(shell, "head")
    name = id_at(node, claude)
    parts = node.close()
    assert [(id_of(each.root), each.kind, each.harness) for each in parts.sessions] == [(name, "agent", "claude-code")]
    [minute] = parts.minutes
    assert (minute.session, minute.driver, minute.minute_s) == (name, "agent", BOOT_S + 60)
    assert minute.counts == {
        "commands": 2, "category:text": 2, "tool:grep": 1, "tool:head": 1, "recursive_search": 1,
    }  # fmt: skip


def test_people_are_a_total_of_the_node_by_default(node: Node) -> None:
    for _ in range(2):
        shell = node.run(1, "-bash", tty=TTY)
        node.run(shell, "ls", tty=TTY)
    node.run(1, "cron-job")
    parts = node.close()
    assert parts.sessions == []
    assert counts(parts) == {("", "human"): 2, ("", "unknown"): 1}


def test_a_study_knows_people_s_sessions() -> None:
    node = Node(study=True)
    shell = node.run(1, "-bash", tty=TTY)
    node.run(shell, "ls", tty=TTY)
    node.run(1, "cron-job")
    name = id_at(node, shell)
    parts = node.close()
    assert [(each.kind, each.harness) for each in parts.sessions] == [("interactive", "")]
    assert counts(parts) == {(name, "human"): 1, ("", "unknown"): 1}


def test_a_shell_that_becomes_a_harness_is_two_sessions_that_end_together() -> None:
    node = Node(study=True)
    shell = node.run(1, "-bash", tty=TTY)
    node.run(shell, "ls", tty=TTY)
    node.execute(shell, "codex", tty=TTY)
    node.run(shell, "ls")
    name = id_at(node, shell)
    node.exit(shell)
    parts = node.close()
    assert [(each.kind, each.harness) for each in parts.sessions] == [("interactive", ""), ("agent", "codex")]
    assert all(each.end_s for each in parts.sessions)
    assert counts(parts) == {(name, "human"): 1, (name, "agent"): 1}


def test_a_session_begins_with_its_root_and_ends_with_it_and_leaves_when_there_is_news(node: Node) -> None:
    began_s = node.now_s
    claude = node.run(1, "claude")
    train = node.run(claude, "train")
    node.now_s = 200
    parts = node.close()
    [session] = parts.sessions
    assert session.start_s == pytest.approx(BOOT_S + began_s, abs=2 / TICKS_S)
    assert session.end_s is None
    assert node.close().sessions == []
    node.now_s = 300
    node.exit(claude)
    [session] = node.close().sessions
    assert session.end_s == session.last_s == BOOT_S + 300
    node.now_s = 400
    node.run(train, "ls")  # what it left behind is still its work
    parts = node.close()
    assert [each.end_s for each in parts.sessions] == [BOOT_S + 300] and list(counts(parts).values()) == [1]
    for pid in (train, node.next_pid):
        node.exit(pid)
    node.close()
    assert len(node.watch._sessions) == 0


def test_what_was_there_before_is_known_by_a_snapshot(node: Node) -> None:
    node.look(
        node.sighting(500, "claude", start=10), node.sighting(501, "bash", parent=500, start=20),
        node.sighting(600, "cron", start=11),
    )  # fmt: skip
    node.run(501, "ls")
    parts = node.close()
    [session] = parts.sessions
    assert (id_of(session.root), session.start_s) == ("500-10", BOOT_S + 10 / TICKS_S)
    assert counts(parts) == {("500-10", "agent"): 1}
    node.look(node.sighting(600, "cron", start=11))
    ended_s = BOOT_S + node.now_s
    assert node.close().sessions[0].end_s == ended_s


def test_a_number_given_out_anew_ends_the_session_that_had_it(node: Node, claude: int) -> None:
    node.close()
    node.fork(1, claude)
    [session] = node.close().sessions
    assert session.end_s is not None
    node.execute(claude, "ls")
    assert counts(node.close()) == {("", "unknown"): 1}


def test_a_program_that_was_looked_at_when_the_next_one_ran_counts_once(node: Node, claude: int) -> None:
    pid = node.fork(claude)
    for _ in range(2):
        node.execute(pid, "python3", "train.py", parent=claude)  # `env` was what ran first
    parts = node.close()
    assert list(counts(parts).values()) == [1] and parts.health.argv_missed == 1
    node.run(claude, "python3", "train.py")
    assert list(counts(node.close()).values()) == [1]


def test_what_ended_before_it_was_looked_at_is_counted_as_far_as_it_is_known(node: Node, claude: int) -> None:
    node.run(claude, "squeue", ended=True)
    node.run(claude, "bash", ended=True)
    node.tell(Executed(node.at_ns, node.fork(claude), None))
    node.tell(Executed(node.at_ns, 99_999, None))
    parts = node.close()
    assert counts(parts) == {(id_at(node, claude), "agent"): 2, ("", "unknown"): 1}
    assert sum(counts(parts, "scheduler_query").values()) == 1
    assert parts.health.argv_missed == 4


def test_a_minute_leaves_once_and_what_comes_late_counts_in_the_next(node: Node, claude: int) -> None:
    node.run(claude, "ls")
    node.now_s = 121
    node.run(claude, "ls")
    first = node.watch.close(BOOT_S + 120, BOOT_S + 125)
    assert [(each.minute_s, each.counts["commands"]) for each in first.minutes] == [(BOOT_S + 60, 1)]
    assert (first.from_s, first.to_s) == (BOOT_S + 100, BOOT_S + 120)
    node.now_s = 119
    node.run(claude, "ls")
    second = node.watch.close(BOOT_S + 180, BOOT_S + 185)
    assert [(each.minute_s, each.counts["commands"]) for each in second.minutes] == [(BOOT_S + 120, 2)]
    assert (second.from_s, second.to_s) == (BOOT_S + 120, BOOT_S + 180)


def test_submissions_and_loops_are_a_session_s(node: Node, claude: int) -> None:
    shell = node.run(claude, "bash")
    for argv in (("sbatch", "a"), ("tail", "out"), ("sbatch", "a")):
        node.now_s += 10
        node.run(shell, *argv)
    other = node.run(1, "-bash", tty=TTY)
    node.run(other, "sbatch", "a", tty=TTY)
    parts, name = node.close(), id_at(node, claude)
    assert [each.session for each in parts.submissions] == [name, name]
    assert [round(each.seconds) for each in parts.loops] == [20]
    assert (node.close().submissions, node.close().loops) == ([], [])


def test_a_submission_leaves_with_the_batch_of_its_time(node: Node, claude: int) -> None:
    node.run(claude, "sbatch", "a")
    node.now_s = 122
    node.run(claude, "sbatch", "b")
    first = node.watch.close(BOOT_S + 120, BOOT_S + 125)
    assert [each.at_s < BOOT_S + 120 for each in first.submissions] == [True]
    node.now_s = 90
    node.run(claude, "sbatch", "late")
    second = node.watch.close(BOOT_S + 180, BOOT_S + 185)
    assert [each.at_s for each in second.submissions] == [BOOT_S + 122.01, BOOT_S + 120]


def test_polling_is_found_under_a_session_and_leaves_when_it_is_over(node: Node, claude: int) -> None:
    shell = node.run(claude, "bash", "-c", "while squeue -j 7; do sleep 5; done")
    for _ in range(4):
        node.now_s += 5
        node.run(shell, "squeue", "-j", "7")
    assert node.watch.close(BOOT_S + 120, BOOT_S + node.now_s + 5).polling == []
    [loop] = node.close().polling
    assert (loop.queries, round(loop.period_s)) == (4, 5)


def test_what_is_over_the_limits_is_counted(node: Node, claude: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "MOST_EVENTS", 2)
    monkeypatch.setattr(sessions_module, "MOST", 1)
    for _ in range(5):
        node.run(claude, "sbatch", "a")
    monkeypatch.setattr(watch_module, "MOST_PROCESSES", 10)
    other = node.run(1, "codex")
    node.run(other, "ls")
    for _ in range(5):
        node.run(claude, "ls")
    parts = node.close()
    assert (len(parts.submissions), len(parts.sessions), parts.health.processes) == (2, 1, 10)
    assert parts.health.lost == 3 + 2 * 3  # submissions; forks and programs of processes beyond
    assert ("", "agent") in counts(parts)


def test_health_is_what_was_said_since_the_last_time(node: Node) -> None:
    node.say(events=10, lost=1, vanished=2, execs=4, left_out=1, cpu_ns=2_000_000_000, memory_bytes=7)
    assert node.close().health == Health(10, 1, 0, 2, 0.75, 2.0, 7, 0)
    node.say(events=15, lost=1, vanished=2, execs=8, left_out=1, cpu_ns=2_500_000_000, memory_bytes=9)
    assert node.close().health == Health(5, 0, 0, 0, 1.0, 0.5, 9, 0)
