"""The processes of the embedded profile: started together, restarted when one fails, stopped within seconds."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from portal.core import stopping

# From the signal that asks for the end to SIGKILL. Five seconds are promised: the rest is for a busy machine, where
# reaping and leaving take their time too. What is killed loses nothing, for the work is rows.
PATIENCE_S = 2.5
REAPED_WITHIN_S = 1.0
RESTARTS = 5
RESTART_WINDOW_S = 60.0
ROOT = Path(__file__).resolve().parent.parent.parent
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """In a child, before exec: ask the kernel to end it when the supervisor is killed (Linux, prctl(2))."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


@dataclass
class Child:
    """One supervised process. It gets a session of its own, so that Ctrl-C reaches the supervisor alone."""

    name: str
    command: Sequence[str]
    is_needed: bool = True  # without one that is, everything stops
    process: subprocess.Popen[bytes] | None = None
    starts: list[float] = field(default_factory=list)

    def start(self) -> None:
        """Start it, and note when; what a killed predecessor left in its group (the worker's beat) ends first."""
        if self.process is not None:
            self.kill_group()
        self.starts.append(time.monotonic())
        self.process = subprocess.Popen(
            list(self.command),
            cwd=ROOT,
            env=os.environ | {stopping.SUPERVISED: "1"},
            start_new_session=True,
            preexec_fn=die_with_parent,
        )

    def kill_group(self) -> None:
        """End the process and all that it started, at once."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)

    @property
    def fails_too_often(self) -> bool:
        recent = [at for at in self.starts if time.monotonic() - at < RESTART_WINDOW_S]
        return len(recent) > RESTARTS


class Supervisor:
    """Runs children until it is told to stop."""

    def __init__(self, children: Sequence[Child], *, say: Callable[[str], None]) -> None:
        self.children = list(children)
        self.say = say
        self.asked_at: float | None = None  # monotonic; of the first signal

    @property
    def stopping(self) -> bool:
        """Whether SIGINT or SIGTERM came."""
        return self.asked_at is not None

    def request_stop(self, *_: object) -> None:
        """Note when SIGINT or SIGTERM came first; the loop does the rest."""
        self.asked_at = self.asked_at or time.monotonic()

    def start(self) -> None:
        """Take over the signals and start every child."""
        signal.signal(signal.SIGINT, self.request_stop)
        signal.signal(signal.SIGTERM, self.request_stop)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup asks to outlive the terminal
            signal.signal(signal.SIGHUP, self.request_stop)
        for child in self.children:
            child.start()

    def add(self, child: Child) -> None:
        """Start one more child, unless everything is stopping."""
        if not self.stopping:
            self.children.append(child)
            child.start()

    def watch(self) -> int:
        """Restart what ends by itself; return 1 where a needed one fails again and again, else 0 once told to stop."""
        while not self.stopping:
            time.sleep(0.2)
            for child in self.children:
                status = child.process.poll() if child.process else None
                if status is None or self.stopping:
                    continue
                if child.fails_too_often:
                    what = "stopping" if child.is_needed else "it stays away, the rest goes on"
                    self.say(f"{child.name} ended {RESTARTS} times within a minute (status {status}); {what}.")
                    if child.is_needed:
                        return 1
                    child.kill_group()
                    child.process = None
                    continue
                self.say(f"{child.name} ended with status {status}; starting it again.")
                child.start()
        return 0

    def stop(self) -> None:
        """Ask every child to end, all at once; kill what is left when patience, counted from the signal, is over."""
        began = self.asked_at or time.monotonic()
        running = [child.process for child in self.children if child.process and child.process.poll() is None]
        for process in running:
            process.terminate()
        _wait_for(running, began + PATIENCE_S)
        for child in self.children:
            child.kill_group()
        # The kernel ends what was killed, whether or not we see it.
        _wait_for(running, began + PATIENCE_S + REAPED_WITHIN_S)


def _wait_for(running: Sequence[subprocess.Popen[bytes]], deadline: float) -> None:
    for process in running:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.01, deadline - time.monotonic()))


def embedded_children(*, host: str, port: int) -> list[Child]:
    """Return web, and worker with beat."""
    python = sys.executable
    web = [
        python, "-m", "uvicorn", "portal.asgi:application", "--host", host, "--port", str(port),
        "--log-level", "warning", "--lifespan", "off", "--timeout-graceful-shutdown", "1", "--no-server-header",
        # Whoever is on this host could else name any source address: PROXY_COUNT alone says what is believed.
        "--no-proxy-headers",
        # Browsers ask for compression: it doubles what an idle socket takes, for messages of half a kilobyte.
        "--ws-per-message-deflate", "false",
    ]  # fmt: skip
    # Whoever runs `make run` as root on a trial machine knows it; the broker takes JSON only.
    quiet = ["-W", "ignore:You're running the worker with superuser"]
    worker = [
        python, *quiet, "-m", "celery", "-q", "-A", "portal.celery", "worker", "-B", "-P", "threads", "-c", "4",
        "-l", "WARNING", "--without-gossip", "--without-mingle", "--without-heartbeat",
        "-n", f"gatehouse-{port}@localhost",
    ]  # fmt: skip
    return [Child("web", web), Child("worker", worker)]


def simulator() -> Child:
    """Return what keeps a demo facility moving."""
    return Child("simulator", [sys.executable, "manage.py", "simulate", "--live"], is_needed=False)
