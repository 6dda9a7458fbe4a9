"""A command of the host leaves nothing behind, however it ends."""

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from portal.core.running import run_within

LEAVES_ONE = "sleep 300 >/dev/null 2>&1 </dev/null & echo $!"


def is_alive(pid: int) -> bool:
    """Say whether a process runs; one that is dead and not yet waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def ends(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_alive(pid)


@pytest.mark.parametrize("status", [0, 3])
def test_what_a_command_started_ends_with_it(status: int) -> None:
    script = f"({LEAVES_ONE}); exit {status}"
    ran = run_within(["/bin/sh", "-c", script], environment={"PATH": "/usr/bin:/bin"}, timeout_s=30, most_bytes=1000)
    assert (ran.status, ran.complaint) == (status, b"")
    assert ends(int(ran.out))


def test_a_command_that_closes_its_outputs_and_stays_is_ended(tmp_path: Path) -> None:
    script = f"echo $$ > {tmp_path}/pid; exec >&- 2>&-; sleep 300"
    with pytest.raises(subprocess.TimeoutExpired):
        run_within(["/bin/sh", "-c", script], environment={"PATH": "/usr/bin:/bin"}, timeout_s=0.3, most_bytes=1000)
    assert ends(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("into_file", [False, True])
def test_a_child_that_keeps_the_error_output_open_is_not_waited_for(tmp_path: Path, *, into_file: bool) -> None:
    script = f"sleep 300 >/dev/null & echo $! > {tmp_path}/pid; echo answer"
    with (tmp_path / "answer").open("w+b") as into:
        ran = run_within(
            ["/bin/sh", "-c", script], environment={"PATH": "/usr/bin:/bin"}, timeout_s=20, most_bytes=1000,
            into=into if into_file else None,
        )  # fmt: skip
        into.seek(0)
        assert (ran.status, ran.out or into.read(), ran.complaint) == (0, b"answer\n", b"")
    assert ends(int((tmp_path / "pid").read_text()))


def test_what_a_filter_of_the_error_output_says_behind_the_end_is_heard() -> None:
    script = "(sleep 0.3; echo late >&2) >/dev/null & echo answer"
    ran = run_within(["/bin/sh", "-c", script], environment={"PATH": "/usr/bin:/bin"}, timeout_s=30, most_bytes=1000)
    assert (ran.out, ran.complaint) == (b"answer\n", b"late\n")


def test_a_command_that_is_interrupted_while_it_starts_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            started.append(self.pid)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            run_within(["/bin/sleep", "300"], environment={}, timeout_s=20, most_bytes=1000)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert ends(*started)
