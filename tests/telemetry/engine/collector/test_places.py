"""Where work is done: on a login node, in a job, over SSH without a terminal, on a host for agents."""

import pytest

from telemetry.engine.collector.batches import Sender, make
from telemetry.engine.collector.facts import Executed, Sighting
from telemetry.engine.collector.origins import NO_JOB, UNTOLD
from telemetry.engine.collector.processes import Where
from telemetry.engine.collector.watch import Parts
from tests.telemetry.engine.collector.node import TTY, Node

MARKERS = ("codex", "claude-code")


@pytest.fixture
def node() -> Node:
    return Node()


def run(
    node: Node, parent: int, *argv: str, uid: int = 1000, tty: int = 0, job: int = -1, marker: int = 0, pid: int = 0
) -> int:
    """Fork and run a program; one that is asked leads others."""
    pid = pid or node.fork(parent)
    seen = node.sighting(pid, *argv, parent=parent, tty=tty)
    node.tell(Executed(node.at_ns, pid, seen._replace(uid=uid, job=job, marker=marker)))
    return pid


def connect(node: Node, *argv: str, tty: int = 0, marker: int = 0, title: str = "/usr/sbin/sshd") -> int:
    """Come in by SSH: the server, its copy for the connection, and what runs first there."""
    server = run(node, 1, title, "-D", "-R", uid=0)
    return run(node, node.fork(server), *argv, tty=tty, job=NO_JOB, marker=marker)


def places(parts: Parts, measure: str = "commands") -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for each in parts.minutes:
        key = each.driver, each.place
        found[key] = found.get(key, 0) + each.counts.get(measure, 0)
    return {key: count for key, count in found.items() if count}


def sessions(parts: Parts) -> list[tuple[str, str, int]]:
    return [(each.harness, each.where.place, each.where.job) for each in parts.sessions]


def test_a_job_s_number_is_its_first_process_s_and_that_of_all_below(node: Node) -> None:
    step = run(node, 1, "/usr/sbin/slurmstepd", uid=0)
    script = run(node, step, "bash", "slurm_script", job=7)
    claude = run(node, script, "claude", "-p", "x")
    run(node, claude, "grep", "x")
    run(node, script, "python3", "train.py")
    parts = node.close()
    assert sessions(parts) == [("claude-code", "job", 7)]
    assert places(parts) == {("agent", "job"): 1, ("unknown", "job"): 3}  # of these one is Slurm's own


def test_a_person_s_shell_in_a_job_is_in_the_job_and_one_beside_it_is_not(node: Node) -> None:
    inside = run(node, 1, "-bash", tty=TTY, job=8)
    run(node, inside, "ls", tty=TTY)
    beside = run(node, 1, "-bash", tty=TTY, job=NO_JOB)
    salloc = run(node, beside, "salloc", tty=TTY)
    run(node, run(node, salloc, "bash", tty=TTY), "ls", tty=TTY)
    assert places(node.close()) == {("human", "job"): 1, ("human", "login"): 3}


def test_a_job_without_a_told_number_is_one(node: Node) -> None:
    run(node, run(node, 1, "bash", "x", job=UNTOLD), "claude")
    step = run(node, 1, "/usr/sbin/slurmstepd", uid=0)
    run(node, run(node, step, "bash", "y", job=NO_JOB), "codex")  # Slurm without control groups
    assert sessions(node.close()) == [("claude-code", "job", 0), ("codex", "job", 0)]


def test_nobody_s_own_step_daemon_makes_a_job(node: Node) -> None:
    run(node, run(node, 1, "/home/me/slurmstepd", job=NO_JOB), "claude")
    run(node, run(node, 1, "/home/me/sshd", job=NO_JOB), "codex", job=NO_JOB)
    assert {place for _, place, _ in sessions(node.close())} == {"login"}


@pytest.mark.parametrize("title", ["/usr/sbin/sshd", "/usr/lib/openssh/sshd-session"])
def test_one_command_after_another_over_ssh_is_a_class_of_its_own(node: Node, title: str) -> None:
    for _ in range(3):
        shell = connect(node, "bash", "-c", "squeue; ls", title=title)
        run(node, shell, "squeue")
        run(node, shell, "ls")
        run(node, shell, "python3", "x.py", pid=shell)  # the shell becomes its last command
    parts = node.close()
    assert parts.sessions == []
    assert places(parts)["unknown", "ssh"] == 9
    assert places(parts, "ssh_connection") == {("unknown", "ssh"): 3}
    assert places(parts, "scheduler_query") == {("unknown", "ssh"): 3}


def test_a_person_at_a_terminal_over_ssh_is_at_the_login_node(node: Node) -> None:
    shell = connect(node, "-bash", tty=TTY)
    run(node, run(node, shell, "claude", tty=TTY), "ls")
    editor = connect(node, "bash", "-c", "code-server")
    run(node, run(node, editor, "/bin/bash", tty=TTY, job=NO_JOB), "ls", tty=TTY)
    parts = node.close()
    assert sessions(parts) == [("claude-code", "login", 0)]
    assert places(parts, "ssh_connection") == {("unknown", "ssh"): 1}
    assert places(parts)["human", "login"] == 1


def test_what_the_server_itself_runs_is_no_connection(node: Node) -> None:
    server = run(node, 1, "/usr/sbin/sshd", "-D", "-R", uid=0)
    run(node, server, "sss_ssh_authorizedkeys", "me")
    parts = node.close()
    assert places(parts, "ssh_connection") == {} and ("unknown", "ssh") not in places(parts)


def test_who_logs_in_to_a_job_s_node_and_is_taken_into_the_job_is_in_it(node: Node) -> None:
    server = run(node, 1, "/usr/sbin/sshd", "-D", "-R", uid=0)
    run(node, run(node, node.fork(server), "bash", "-c", "claude -p x", job=9), "claude")
    assert sessions(node.close()) == [("claude-code", "job", 9)]


def test_a_marked_connection_is_an_agent_s_session() -> None:
    node = Node(markers=MARKERS)
    shell = connect(node, "bash", "-c", "make; ls", marker=1)
    run(node, shell, "make")
    run(node, connect(node, "bash", "-c", "ls"), "ls")
    parts = node.close()
    assert sessions(parts) == [("codex", "ssh", 0)]
    assert parts.sessions[0].root.pid == shell
    assert places(parts)["agent", "ssh"] == 1
    assert places(parts, "ssh_connection") == {("agent", "ssh"): 1, ("unknown", "ssh"): 1}


def test_a_marked_shell_below_a_person_s_terminal_server_is_an_agent_s() -> None:
    node = Node(markers=MARKERS)
    tmux = run(node, run(node, 1, "-bash", tty=TTY, job=NO_JOB), "tmux")
    run(node, run(node, tmux, "-bash", tty=TTY + 1, job=NO_JOB, marker=2), "ls", tty=TTY + 1)
    run(node, run(node, tmux, "-bash", tty=TTY + 2, job=NO_JOB), "ls", tty=TTY + 2)
    parts = node.close()
    assert sessions(parts) == [("claude-code", "login", 0)]
    assert places(parts)["agent", "login"] == 1


def test_below_an_agent_a_marker_changes_nothing_and_one_that_nobody_asked_for_counts_nowhere() -> None:
    node = Node(markers=MARKERS)
    claude = run(node, 1, "claude")
    for marker in (1, 2):
        run(node, run(node, claude, "bash", "-c", "ls", job=NO_JOB, marker=marker), "ls")
    run(node, 1, "bash", "-c", "x", job=NO_JOB, marker=99)
    assert sessions(node.close()) == [("claude-code", "login", 0)]


def test_on_a_host_for_agents_all_is_there_but_jobs_and_what_comes_by_ssh() -> None:
    node = Node(base=Where("agent_host"), markers=MARKERS)
    run(node, run(node, 1, "claude"), "ls")
    run(node, connect(node, "bash", "-c", "codex exec x"), "codex", "exec", "x")
    run(node, connect(node, "bash", "-c", "ls"), "ls")
    run(node, connect(node, "bash", "-c", "ls", marker=1), "ls")
    run(node, 1, "aider", job=3)
    parts = node.close()
    assert sessions(parts) == [
        ("claude-code", "agent_host", 0), ("codex", "agent_host", 0), ("codex", "ssh", 0), ("aider", "job", 3),
    ]  # fmt: skip
    assert places(parts)["unknown", "ssh"] == 1


def test_in_a_job_s_own_collector_all_is_in_the_job() -> None:
    node = Node(base=Where("job", 44))
    run(node, run(node, 1, "claude", job=NO_JOB), "ls")
    run(node, 1, "train")
    node.tell(Executed(node.at_ns, 99_999, None))
    parts = node.close()
    assert sessions(parts) == [("claude-code", "job", 44)]
    assert places(parts) == {("agent", "job"): 1, ("unknown", "job"): 2}


def test_on_a_compute_node_what_is_in_no_job_and_of_no_session_is_the_node_s_own() -> None:
    node = Node(jobs_alone=True)
    run(node, 1, "cron-job")
    run(node, run(node, 1, "-bash", tty=TTY, job=NO_JOB), "ls", tty=TTY)
    node.tell(Executed(node.at_ns, 99_999, None))
    run(node, run(node, 1, "bash", "x", job=5), "train")
    run(node, run(node, 1, "claude"), "ls")
    run(node, connect(node, "bash", "-c", "ls"), "ls")
    parts = node.close()
    assert sessions(parts) == [("claude-code", "login", 0)]
    assert places(parts) == {("agent", "login"): 1, ("unknown", "job"): 2, ("unknown", "ssh"): 1}


def test_a_snapshot_finds_jobs_and_connections_that_were_there_before(node: Node) -> None:
    def there(pid: int, parent: int, *argv: str, uid: int = 1000, job: int = -1) -> Sighting:
        return node.sighting(pid, *argv, parent=parent, start=pid)._replace(uid=uid, job=job)

    node.look(
        there(503, 502, "claude"), there(502, 501, "bash", "slurm_script", job=7),
        there(501, 1, "slurmstepd: [7.batch]", uid=0, job=NO_JOB),
        there(600, 1, "sshd: /usr/sbin/sshd -D [listener]", uid=0, job=NO_JOB),
        there(601, 600, "sshd: me [priv]", uid=0, job=NO_JOB), there(602, 601, "sshd: me@notty"),
        there(603, 602, "bash", "-c", "codex exec x", job=NO_JOB), there(604, 603, "codex", "exec", "x"),
    )  # fmt: skip
    parts = node.close()
    assert sorted(sessions(parts)) == [("claude-code", "job", 7), ("codex", "ssh", 0)]
    node.look()


def test_a_place_leaves_where_it_is_none_of_a_login_node(node: Node) -> None:
    run(node, run(node, 1, "claude", job=7), "ls")
    run(node, run(node, 1, "codex"), "ls")
    run(node, connect(node, "bash", "-c", "ls"), "ls")
    [batch] = make(
        node.close(), sender=Sender("aster", "n1", "b", "r", "1"), mode="events", login=str, new_id=lambda: "i"
    )
    text = batch.body.decode()
    assert text.count('"place":"job","job":7') == 1
    assert text.count('"place":"ssh"') == 1 and '"login"' not in text
