"""A command of the host leaves nothing behind, however it ends."""

import subprocess
import time
from pathlib import Path

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
