"""The real thing for browser tests: uvicorn and a Celery worker, each a process of its own, over one database."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import demo
from tests.support.services import free_port, wait_for_port

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE_S = 10


@dataclass
class Portal:
    """A running portal; `run` executes a script against its database and reads the JSON that it prints."""

    port: int
    environment: dict[str, str]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    web: subprocess.Popen[bytes] | None = None
    facts: dict[str, str] = field(default_factory=dict)  # what the script that fills the database printed

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def run(self, script: str) -> dict[str, str]:
        """Run a script in a process of its own."""
        command = [sys.executable, "-W", "ignore", "-c", f"import django; django.setup()\n{script}"]
        done = subprocess.run(
            command, cwd=ROOT, env=self.environment, check=True, capture_output=True, text=True, timeout=120
        )
        found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
        return found

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a process that ends with the portal."""
        process = subprocess.Popen([sys.executable, "-W", "ignore", "-m", *arguments], cwd=ROOT, env=self.environment)
        self.processes.append(process)
        return process

    def start_web(self) -> None:
        """Start the web process, again where it was stopped, and wait until it takes connections."""
        options = ("--port", str(self.port), "--log-level", "warning", "--lifespan", "off", "--no-proxy-headers")
        self.web = self.start("uvicorn", "portal.asgi:application", *options, "--timeout-graceful-shutdown", "1")
        wait_for_port(self.port, self.web)

    def stop_web(self) -> None:
        """End the web process, as an upgrade does."""
        assert self.web is not None
        self.web.terminate()
        self.web.wait(PATIENCE_S)


@contextmanager
def running_portal(folder: Path) -> Iterator[Portal]:
    """Serve an empty portal, whose data are in `folder`, until the block ends."""
    port = free_port()
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "GATEHOUSE_DATA": str(folder), "DJANGO_SETTINGS_MODULE": "portal.settings", "LOG_LEVEL": "WARNING",
        "GATEHOUSE_URL": f"http://127.0.0.1:{port}",
    }  # fmt: skip
    environment.pop("DATABASE_URL", None)
    portal = Portal(port, environment)
    demo.empty_folder(folder)
    try:
        portal.start("celery", "-A", "portal.celery", "worker", "-P", "threads", "-c", "1", "-l", "WARNING")
        portal.start_web()
        yield portal
    finally:
        for process in portal.processes:
            process.terminate()
        deadline = time.monotonic() + PATIENCE_S
        for process in portal.processes:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
