"""Nothing that somebody starts breaks the collector, fills it up, or gets out through it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.collector.test_run import ROOT, command, helper_of

BURST = 2000
MOST_MB = 120  # both processes, after all of it
NEEDLE = "n33dle"

HOSTILE = """\
#!{python}
import os, sys
folder = os.fsencode(sys.argv[1])
def run(program, *argv):
    os.waitpid(os.posix_spawn(program, argv, {{}}), 0)
for name in os.listdir(folder):
    if name.startswith(b"odd"):
        for _ in range(5):
            run(folder + b"/" + name, folder + b"/" + name, b"{needle}\\xff\\xfe", b"\\x1b[2J\\n{needle}\\r", b"")
run("/bin/sleep", "sleep", "0.05", *["0." + "0" * 100_000] * 20)  # two megabytes
run("/bin/sh", "sh", "-c", "'{needle} $((" * 1000)
run("/bin/bash", "bash", "-c", "exec -a '' sleep 0.05")
for _ in range(300):
    run("/bin/true", "true", "{needle}")
waiting, going = os.pipe()
for _ in range({burst}):
    if not os.fork():
        os.close(going)
        os.read(waiting, 1)
        os._exit(0)
os.close(going)
for _ in range({burst}):
    os.wait()
run("/bin/grep", "grep", "-q", "{needle}", "/etc/hostname")
"""
NAMES = (b"odd\xff\xfe", b"odd\x1b[2J", b"odd\nline", b"odd) S 1 (x", b"odd" + b"x" * 200)


@pytest.fixture
def harness(tmp_path: Path) -> Path:
    for name in NAMES:
        (Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))).symlink_to(str(shutil.which("true")))
    script = tmp_path / "claude"
    script.write_text(HOSTILE.format(python=sys.executable, burst=BURST, needle=NEEDLE))
    script.chmod(0o755)
    return script


def peak_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


@pytest.mark.parametrize("walk", [False, True])
def test_all_of_it_is_counted_and_nothing_of_it_leaves(harness: Path, walk: bool) -> None:
    arguments = ["--dry-run", "--json", "--seconds", "3600", *(["--walk"] if walk else [])]
    collector = subprocess.Popen(
        command(*arguments), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )  # fmt: skip
    try:
        assert collector.stderr is not None and b"Collecting:" in collector.stderr.readline()
        subprocess.run([harness, harness.parent], check=True, stderr=subprocess.DEVNULL, timeout=120)
        used_mb = peak_mb(collector.pid) + peak_mb(helper_of(collector.pid))
    finally:
        collector.terminate()
        said, errors = collector.communicate(timeout=60)
    assert (collector.returncode, errors) == (0, b"")
    assert used_mb < MOST_MB
    assert NEEDLE.encode() not in said and b"odd" not in said and b"\x1b" not in said
    bodies = [json.loads(line) for line in said.splitlines()]
    by_events = {each["mode"] for each in bodies} == {"events"}
    sessions = {each["id"]: each["harness"] for body in bodies for each in body["sessions"]}
    counted = sum(
        each["counts"]["commands"] for body in bodies for each in body["minutes"] if each["session"] in sessions
    )
    health = [each["health"] for each in bodies]
    if by_events:
        assert list(sessions.values()) == ["claude-code"]
        lost = sum(each["lost"] for each in health)
        # Shells that were given a text count for nothing; one whose words were gone may count.
        assert 5 * len(NAMES) + 303 - lost <= counted <= 5 * len(NAMES) + 305
        assert sum(each["events"] for each in health) + lost >= 2 * BURST
    else:
        assert 0 <= counted < 303
