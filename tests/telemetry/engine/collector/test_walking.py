"""Looks at `/proc` say what changed between them."""

import shutil
from pathlib import Path

import pytest

from telemetry.engine.collector.facts import Executed, Exited, Forked, Key
from telemetry.engine.collector.proc import Proc
from telemetry.engine.collector.walking import TURNS, YOUNG_NS, Walker

STAT = "{pid} ({name}) {state} {parent} 7 7 0 7 4194304 1 0 0 0 0 0 0 0 20 0 1 0 {start} 0 0"


class Folder:
    """A `/proc` made of files."""

    def __init__(self, path: Path) -> None:
        self.path, self.now_ns = path, 0
        self.walker = Walker(Proc(path))

    def put(self, pid: int, *argv: str, parent: int = 1, start: int = 1, state: str = "S") -> None:
        folder = self.path / str(pid)
        folder.mkdir(exist_ok=True)
        (folder / "cmdline").write_text("".join(f"{word}\0" for word in argv))
        (folder / "stat").write_text(STAT.format(pid=pid, name=argv[0], state=state, parent=parent, start=start))

    def end(self, pid: int) -> None:
        shutil.rmtree(self.path / str(pid))

    def step(self, seconds: float = 0.2) -> list[tuple[str, int]]:
        self.now_ns += int(seconds * 1e9)
        names = {Forked: "fork", Executed: "exec", Exited: "exit"}
        return [
            (names[type(each)], each.key.pid if isinstance(each, Forked) else each.pid)
            for each in self.walker.step(self.now_ns)
        ]


@pytest.fixture
def proc(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.put(10, "bash")
    folder.walker.snapshot(0)
    return folder


def test_what_was_there_is_no_change(proc: Folder) -> None:
    assert proc.step() == []


def test_what_begins_runs_and_ends_is_told_parents_first(proc: Folder) -> None:
    proc.put(5, "ls", parent=20, start=9)
    proc.put(20, "make", parent=10, start=8)
    assert proc.step() == [("exec", 20), ("exec", 5)]
    proc.end(5)
    assert proc.step() == [("exit", 5)]


def test_what_runs_what_its_parent_runs_was_forked(proc: Folder) -> None:
    proc.put(20, "bash", parent=10, start=8)
    [fact] = proc.walker.step(1)
    assert fact == Forked(1, 10, Key(20, 8))
    proc.put(20, "grep", parent=10, start=8)
    assert proc.step() == [("exec", 20)]
    proc.put(20, "grep", parent=10, start=8, state="Z")
    (proc.path / "20" / "cmdline").write_text("")
    assert proc.step() == []  # it ended, and ran nothing else


def test_of_one_that_ended_the_name_says_whether_it_ran_anything(proc: Folder) -> None:
    for pid, name in ((20, "bash"), (21, "grep")):
        proc.put(pid, name, parent=10, start=pid, state="Z")
        (proc.path / str(pid) / "cmdline").write_text("")
    assert proc.step() == [("fork", 20), ("exec", 21)]


def test_an_old_process_that_runs_another_program_is_found_within_some_looks(proc: Folder) -> None:
    proc.step(YOUNG_NS)
    proc.put(10, "claude")
    assert [fact for _ in range(TURNS) for fact in proc.step()] == [("exec", 10)]


def test_a_number_given_out_anew_is_another_process(proc: Folder) -> None:
    proc.put(20, "ls", parent=10, start=8)
    proc.step()
    proc.put(20, "ls", parent=10, start=99)
    assert proc.step() == [("exit", 20), ("exec", 20)]
