"""The portal under uvicorn in a process of its own, on a free port and a database of its own; it can be killed."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import demo
from tests.support.capabilities import ROOT
from tests.support.services import free_port, wait_for_port

STOPPED_WITHIN_S = 10


@dataclass
class Web:
    """A web process; what a script of `run` writes to its database, only that database tells it."""

    data: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        own = {
            "GATEHOUSE_DATA": str(self.data), "DJANGO_SETTINGS_MODULE": "portal.settings", "LOG_LEVEL": "WARNING",
            "PYTHONPATH": str(ROOT),
        }  # fmt: skip
        return {name: value for name, value in os.environ.items() if name != "DATABASE_URL"} | own

    def start(self) -> None:
        """Serve, until `kill` or the end of the block."""
        command = [sys.executable, "-W", "ignore", "-m", "uvicorn", "portal.asgi:application", "--port", str(self.port)]
        options = ["--log-level", "warning", "--lifespan", "off"]
        self.process = subprocess.Popen([*command, *options], cwd=ROOT, env=self.environment)
        wait_for_port(self.port, self.process)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the status with which the process ended."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(STOPPED_WITHIN_S)

    def kill(self) -> None:
        """Kill it as a machine that fails does."""
        self.end(signal.SIGKILL)

    def run(self, script: str, *arguments: str) -> str:
        """Run a script on its database, in a process of its own, and return what it prints."""
        code = f"import django; django.setup()\n{script}"
        command = [sys.executable, "-W", "ignore", "-c", code, *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=self.environment, check=True, stdout=subprocess.PIPE, text=True, timeout=60
        ).stdout


@contextlib.contextmanager
def serving(data: Path) -> Iterator[Web]:
    """Serve an empty portal whose data are in `data` until the block ends."""
    web = Web(demo.empty_folder(data))
    try:
        web.start()
        yield web
    finally:
        if web.process is not None and web.process.poll() is None:
            web.kill()
