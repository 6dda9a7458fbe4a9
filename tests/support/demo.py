"""A portal as `make run` serves it, in processes of its own, on data folders that are prepared once a run."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support import prepared
from tests.support.capabilities import ROOT
from tests.support.services import free_port

JOBS = 1500
_PREPARE = (
    "from django.core.management import call_command; from portal.supervisor.static_files import collect_static; "
    "call_command('migrate', verbosity=0); collect_static()"
)
PATIENCE_S = 240  # a busy machine; an idle one needs eight seconds


def environment_of(data: Path, **more: str) -> dict[str, str]:
    """The environment of a stranger who has set GATEHOUSE_DATA and what is named."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return kept | {"GATEHOUSE_DATA": str(data), "PYTHONUNBUFFERED": "1"} | more


def manage(data: Path, *arguments: str, check: bool = True, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a management command on a data folder."""
    ran = subprocess.run(
        [sys.executable, "manage.py", *arguments], cwd=ROOT, env=environment_of(data, **more),
        capture_output=True, text=True, check=False, timeout=PATIENCE_S * 2,
    )  # fmt: skip
    assert not (check and ran.returncode), f"{arguments} ended with {ran.returncode}:\n{ran.stderr}"
    return ran


def empty_folder(to: Path) -> Path:
    """Give a folder as a first start of `manage.py run` leaves it with DEMO=0: migrated, static files collected."""
    return prepared.copy_of("empty", _make_empty, to)


def demo_folder(to: Path) -> Path:
    """Give a folder with a small demo facility in it."""
    return prepared.copy_of("demo", _make_demo, to)


def _make_empty(data: Path) -> None:
    manage(data, "shell", "--no-imports", "-c", _PREPARE)


def _make_demo(data: Path) -> None:
    manage(empty_folder(data), "simulate", "--jobs", str(JOBS))


class Portal:
    """A running `manage.py run`, and what it has said."""

    def __init__(self, data: Path, **more: str) -> None:
        self.data, self.port = data, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.lines: list[str] = []
        self.ready_line = f"Gatehouse is ready at {self.url}/"
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "run"], cwd=ROOT, text=True, start_new_session=True,
            env=environment_of(data, PORT=str(self.port), **more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with contextlib.suppress(ValueError):
            self.lines.extend(self.process.stdout)

    @property
    def said(self) -> str:
        return "".join(list(self.lines))

    def wait_for(self, text: str) -> float:
        """Wait until it has said `text`; return the seconds since its start."""
        return self.wait_until(lambda: text in self.said, f"{text!r} to be said")

    def wait_until(self, holds, what: str, *, every_s: float = 0.05) -> float:
        """Wait until something holds; fail with all that was said where the process ends or patience does."""
        while not holds():
            late = time.monotonic() - self.started > PATIENCE_S
            assert not late and self.process.poll() is None, f"waited for {what}; it said:\n{self.said}"
            time.sleep(every_s)
        return time.monotonic() - self.started

    def children(self) -> dict[str, int]:
        """The process ids of web, worker and simulator."""
        found = {}
        for line in _ps("--ppid", str(self.process.pid), "-o", "pid=,args="):
            number, _, arguments = line.strip().partition(" ")
            for name, word in (("web", "uvicorn"), ("worker", "celery"), ("simulator", "simulate")):
                if word in arguments:
                    found[name] = int(number)
        return found

    def family(self) -> set[int]:
        """The process ids of everything below it, the worker's beat included."""
        return {
            int(line) for child in self.children().values() for line in _ps("-g", str(child), "-o", "pid=") if line
        } | set(self.children().values())

    def end(self, number: int = signal.SIGINT) -> float:
        """Send a signal to it alone; return the seconds until it has ended."""
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(PATIENCE_S)
        took = time.monotonic() - began
        self._reader.join(10)
        return took

    def close(self) -> None:
        """End it, however the test went."""
        family = self.family() if self.process.poll() is None else set()
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
        for pid in {self.process.pid, *family}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self._reader.join(10)
        self.process.stdout.close()


def _ps(*arguments: str) -> list[str]:
    return subprocess.run(["ps", "-ww", *arguments], capture_output=True, text=True, check=False).stdout.splitlines()


@contextlib.contextmanager
def portal(data: Path, **more: str) -> Iterator[Portal]:
    """Run a portal on a data folder; it has ended when the block ends."""
    running = Portal(data, **more)
    try:
        yield running
    finally:
        running.close()


@contextlib.contextmanager
def python(data: Path, script: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a script on a data folder in a process of its own; it is killed, not asked, when the block ends."""
    command = [sys.executable, "-c", f"import django; django.setup()\n{script}"]
    environment = environment_of(data, DJANGO_SETTINGS_MODULE="portal.settings", LOG_LEVEL="ERROR")
    with subprocess.Popen(command, cwd=ROOT, env=environment) as running:
        try:
            yield running
            assert running.poll() is None, "it ended by itself"
        finally:
            running.kill()
