"""The processes of the embedded profile: started together, restarted when one fails, stopped within seconds."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

PATIENCE_S = 4.0  # from SIGTERM to SIGKILL; together with what follows it stays under five seconds
RESTARTS = 5
RESTART_WINDOW_S = 60.0
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
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    starts: list[float] = field(default_factory=list)

    def start(self) -> None:
        """Start it, and note when."""
        self.starts.append(time.monotonic())
        self.process = subprocess.Popen(
            list(self.command),
            env={**os.environ, **self.environment},
            start_new_session=True,
            preexec_fn=die_with_parent,
        )

    @property
    def fails_too_often(self) -> bool:
        recent = [at for at in self.starts if time.monotonic() - at < RESTART_WINDOW_S]
        return len(recent) > RESTARTS


class Supervisor:
    """Runs children until it is told to stop."""

    def __init__(self, children: Sequence[Child], *, say: Callable[[str], None]) -> None:
        self.children = list(children)
        self.say = say
        self.stopping = False

    def request_stop(self, *_: object) -> None:
        """Note that SIGINT or SIGTERM came; the loop does the rest."""
        self.stopping = True

    def start(self) -> None:
        """Take over the signals and start every child."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.request_stop)
        for child in self.children:
            child.start()

    def watch(self) -> int:
        """Restart what ends by itself; return 1 where a child fails again and again, else 0 once told to stop."""
        while not self.stopping:
            time.sleep(0.2)
            for child in self.children:
                status = child.process.poll() if child.process else None
                if status is None or self.stopping:
                    continue
                if child.fails_too_often:
                    self.say(f"{child.name} ended {RESTARTS} times within a minute (status {status}); stopping.")
                    return 1
                self.say(f"{child.name} ended with status {status}; starting it again.")
                child.start()
        return 0

    def stop(self) -> None:
        """Ask every child to end, wait, and kill what is left."""
        running = [child.process for child in self.children if child.process and child.process.poll() is None]
        for process in running:
            process.terminate()
        deadline = time.monotonic() + PATIENCE_S
        for process in running:
            try:
                process.wait(max(0.05, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait(1)


def embedded_children(*, host: str, port: int, live_demo: bool) -> list[Child]:
    """Return web, worker with beat, and for a demo database the simulator that keeps it moving."""
    python = sys.executable
    web = [
        python, "-m", "uvicorn", "portal.asgi:application", "--host", host, "--port", str(port),
        "--log-level", "warning", "--lifespan", "off", "--timeout-graceful-shutdown", "2", "--no-server-header",
    ]  # fmt: skip
    worker = [
        python, "-m", "celery", "-A", "portal.celery", "worker", "-B", "-P", "threads", "-c", "4", "-l", "WARNING",
        "--without-gossip", "--without-mingle", "--without-heartbeat", "-n", f"gatehouse-{port}@localhost",
    ]  # fmt: skip
    children = [Child("web", web), Child("worker", worker)]
    if live_demo:
        children.append(Child("simulator", [python, "manage.py", "simulate", "--live"]))
    return children
