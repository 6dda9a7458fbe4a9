"""Real trees of processes, as an agent's and a person's are, that write down what they started."""

import os
import pty
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

AGENT, HUMAN = "1", "2"  # the last digit of what each sleeps: so a process tells whose it is

# Starts commands of 1 to 50 ms one after another, then some that leave their parents; writes a line for each.
WORKER = """\
#!{python}
import os, random, subprocess, sys, time
log, count, mark, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
lots = random.Random(mark)
def run(*argv):
    subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
with open(log, "w") as file:
    for number in range(count):
        began = time.perf_counter()
        pid = os.posix_spawn("/bin/sleep", ["sleep", f"{{lots.uniform(0, 0.048):.5f}}{{mark}}"], os.environ)
        os.waitpid(pid, 0)
        file.write(f"{{pid}} {{(time.perf_counter() - began) * 1000:.3f}}\\n")
run("sh", "-c", f"nohup sleep 0.3{{mark}} & setsid sleep 0.4{{mark}} & (setsid sh -c 'sleep 0.5{{mark}} &') & exit 0")
if "tmux" in sys.argv:
    server = ["tmux", "-S", f"{{folder}}/tmux{{mark}}", "-f", "/dev/null"]
    run(*server, "new-session", "-d", f"sleep 0.6{{mark}}; sleep 0.7{{mark}}")
time.sleep(1)
"""


@dataclass(frozen=True)
class Started:
    """A command by its number, and how long it took from start to end, as its parent saw it."""

    pid: int
    ms: float


class Trees:
    """An agent's tree (a script by the name of a harness) and a person's (a shell at a terminal)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.has_tmux = bool(shutil.which("tmux"))
        script = textwrap.dedent(WORKER).format(python=sys.executable)
        for name in ("claude", "worker.py"):
            (folder / name).write_text(script)
            (folder / name).chmod(0o755)

    def agent(self, count: int) -> "subprocess.Popen[bytes]":
        return subprocess.Popen([str(self.folder / "claude"), *self._arguments("agent", count, AGENT)])

    def person(self, count: int) -> int:
        """Start a shell at a terminal, type the worker's name, and let the shell end after it; return its number."""
        line = " ".join([sys.executable, str(self.folder / "worker.py"), *self._arguments("human", count, HUMAN)])
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve("/bin/bash", ["-bash", "--norc", "--noprofile"], {"PATH": os.environ["PATH"]})  # noqa: S606
        os.write(terminal, f"stty -echo; {line} >/dev/null 2>&1; exit\n".encode())
        self.terminal = terminal
        return pid

    def started(self, name: str) -> list[Started]:
        lines = (self.folder / f"{name}.log").read_text().split("\n")
        return [Started(int(line.split()[0]), float(line.split()[1])) for line in lines if line]

    def left(self, mark: str) -> set[str]:
        """What those sleep that left their parents."""
        return {f"0.{each}{mark}" for each in ("34567" if self.has_tmux else "345")}

    def _arguments(self, name: str, count: int, mark: str) -> Sequence[str]:
        log = str(self.folder / f"{name}.log")
        return [log, str(count), mark, str(self.folder), *(["tmux"] if self.has_tmux else [])]


def wait_for(pid: int, terminal: int, seconds: float) -> None:
    """Wait for a shell at a terminal, whose output is read and forgotten. Errors: `AssertionError` after so long."""
    until_s = time.monotonic() + seconds
    os.set_blocking(terminal, False)
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        try:
            os.read(terminal, 4096)
        except OSError:
            time.sleep(0.05)
        if time.monotonic() > until_s:
            os.kill(pid, signal.SIGHUP)
            raise AssertionError("The shell did not end.")
    os.close(terminal)
