"""Processes are read as they are, however short they live and whatever they are called."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine.collector.facts import Seen
from telemetry.engine.collector.proc import ARGV_BYTES, Proc, Stat, read_stat

WAIT = "import sys; print(flush=True); sys.stdin.read()"


def look(pid: int) -> Seen | None:
    sighting = Proc().look(pid)
    return sighting.seen() if sighting else None


@contextmanager
def running(*argv: str | bytes) -> Iterator[subprocess.Popen[bytes]]:
    """A Python that has begun, and waits until it is told to go."""
    process = subprocess.Popen(argv, executable=sys.executable, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None and process.stdout.readline() == b"\n"
        yield process
    finally:
        process.communicate()


def test_a_process_is_read_as_it_is() -> None:
    with running("python", "-c", WAIT, "a b", "", "ü") as process:
        seen = look(process.pid)
        assert seen is not None
        assert seen.argv == ("python", "-c", WAIT, "a b", "", "ü")
        assert (seen.parent, seen.uid, seen.tty) == (os.getpid(), os.getuid(), 0)
        assert Path(seen.exe).samefile(sys.executable)
        again = look(process.pid)
        assert again == seen
        assert seen in [each.seen() for each in Proc().walk()]
    proc = Proc()
    assert proc.look(process.pid) is None and proc.vanished == 1


def test_a_command_line_without_end_is_read_to_a_limit() -> None:
    with running("python", "-c", WAIT, "x" * 120_000, "y" * 120_000) as process:
        seen = look(process.pid)
        assert seen is not None and sum(map(len, seen.argv)) <= ARGV_BYTES


def test_words_that_are_no_text_are_read() -> None:
    with running(b"python", b"-c", WAIT.encode(), b"\xff\x1b[2J\n") as process:
        seen = look(process.pid)
        assert seen is not None and seen.argv[-1] == "\ufffd\x1b[2J\n"


@pytest.mark.parametrize(
    ("line", "stat"),
    [
        (b"7 (a) S 3 7 7 34816 7 4194304 1 0 0 0 0 0 0 0 20 0 1 0 991 0 0", Stat(b"a", False, 3, 34816, 991, True)),
        (
            b"7 (a) S 1) (x\n) R 3 7 7 0 7 4194304 1 0 0 0 0 0 0 0 20 0 1 0 991 0 0",
            Stat(b"a) S 1) (x\n", False, 3, 0, 991, True),
        ),
        (b"7 (b) R 3 7 7 0 7 4194308 1 0 0 0 0 0 0 0 20 0 1 0 991 0 0", Stat(b"b", True, 3, 0, 991, True)),
        (b"7 (b) Z 3 6 7 0 7 4194304 1 0 0 0 0 0 0 0 20 0 1 0 991 0 0", Stat(b"b", True, 3, 0, 991, True)),
        (b"7 (b) R 3 7 6 9 7 4194304 1 0 0 0 0 0 0 0 20 0 1 0 991 0 0", Stat(b"b", False, 3, 9, 991, False)),
        (b"7 (b) R 3 7 6 0 7 4194304 1 0 0 0 0 0 0 0 20 0 1 0 991 0 0", Stat(b"b", False, 3, 0, 991, True)),
        (b"7 (b) R 1 6 6 9 7 4194304 1 0 0 0 0 0 0 0 20 0 1 0 991 0 0", Stat(b"b", False, 1, 9, 991, True)),
        (b"7 (a) S 3", None), (b"", None), (b"7 (a) S x 7 7 0 7 4194304 1 0 0 0 0 0 0 0 20 0 1 0 991 0", None),
    ],
)  # fmt: skip
def test_a_name_may_hold_anything(line: bytes, stat: Stat | None) -> None:
    assert read_stat(line) == stat


@given(st.binary(max_size=200))
def test_no_line_breaks_it(line: bytes) -> None:
    read_stat(line)


STEPS = ("none", "folder", "cmdline", "both")


@pytest.mark.parametrize("there", STEPS)
def test_a_process_that_ends_at_any_step_is_none(tmp_path: Path, there: str) -> None:
    folder = tmp_path / "70"
    if there != "none":
        folder.mkdir()
    if there in {"cmdline", "both"}:
        (folder / "cmdline").write_bytes(b"ls\0-l\0")
    if there == "both":
        (folder / "stat").write_bytes(b"70 (ls) R 3 7 7 0 7 4194304 1 0 0 0 0 0 0 0 20 0 1 0 991 0 0")
    (tmp_path / "version").write_bytes(b"no process")
    proc = Proc(tmp_path)
    seen = proc.look(70)
    assert (seen is None, proc.vanished) == ((False, 0) if there == "both" else (True, 1))
    assert len(list(proc.walk())) == (there == "both")
    if seen is not None:  # its program is gone already
        assert (seen.seen().argv, seen.exe) == (("ls", "-l"), b"")


def test_a_kernel_thread_has_no_words(tmp_path: Path) -> None:
    (tmp_path / "2").mkdir()
    (tmp_path / "2" / "cmdline").write_bytes(b"")
    (tmp_path / "2" / "stat").write_bytes(b"2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0")
    seen = Proc(tmp_path).look(2)
    assert seen is not None and seen.seen().argv == ()
