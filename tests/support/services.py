"""Run a command with private PostgreSQL and Redis servers on loopback, where their programs are installed.

    python -m tests.support.services -- make test-fast

Sets TEST_DATABASE_URL and TEST_REDIS_URL for the command; what is set already is used as it is. Servers live in a
temporary folder, on free ports, and end with the command.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 30


def free_port() -> int:
    """Return a loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, server: subprocess.Popen[bytes]) -> None:
    """Wait until a server accepts connections; fail where it ended or takes too long."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RuntimeError(f"{server.args!r} ended with {server.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"nothing listens on port {port}")


def find_program(name: str) -> str | None:
    """Return the path of a server program, also where Debian hides PostgreSQL's."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    path = os.pathsep.join([os.environ.get("PATH", ""), *map(str, versions)])
    # The folders of Debian first: a client-only wrapper may stand on the PATH.
    for folder in versions:
        if (folder / name).exists():
            return str(folder / name)
    return shutil.which(name, path=path)


@dataclass
class Postgres:
    """A private PostgreSQL: its folder, which holds `postgres` and a log, and the process while it runs."""

    program: str
    folder: Path
    port: int
    server: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"postgres://gatehouse@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        options = [
            f"-cport={self.port}", "-clisten_addresses=127.0.0.1",
            f"-cunix_socket_directories={self.folder / 'postgres'}",
        ]  # fmt: skip
        speed = ["-cfsync=off", "-csynchronous_commit=off", "-cfull_page_writes=off", "-cmax_connections=200"]
        with (self.folder / "postgres.log").open("ab") as log:
            self.server = subprocess.Popen(
                [self.program, "-D", str(self.folder / "postgres"), *options, *speed], stdout=log, stderr=log,
                cwd=self.folder, **_as_postgres(),
            )  # fmt: skip
        wait_for_port(self.port, self.server)
        asked = [find_program("pg_isready") or "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        deadline = time.monotonic() + PATIENCE_S  # after a kill it listens before it has recovered
        while subprocess.run(asked, check=False).returncode:
            if time.monotonic() > deadline:
                raise RuntimeError("PostgreSQL does not take connections")
            time.sleep(0.05)

    def stop(self) -> None:
        """End it, if it runs."""
        if self.server is not None:
            self.server.terminate()
            self.server.wait(PATIENCE_S)

    def kill(self) -> None:
        """End it as `kill -9` does, and wait until what it had started has noticed and is gone too."""
        assert self.server is not None
        group = subprocess.run(
            ["ps", "--ppid", str(self.server.pid), "-o", "pid="], capture_output=True, text=True, check=False
        )
        self.server.kill()
        self.server.wait(PATIENCE_S)
        deadline = time.monotonic() + PATIENCE_S
        for pid in group.stdout.split():
            while Path(f"/proc/{pid}").exists():
                if time.monotonic() > deadline:
                    raise RuntimeError(f"process {pid} of the server did not end")
                time.sleep(0.05)


def _as_postgres() -> dict[str, str]:
    return {"user": "postgres"} if os.geteuid() == 0 else {}  # which refuses to run as root


def make_postgres(folder: Path) -> Postgres | None:
    """Make a private PostgreSQL in a folder; None where it is not installed."""
    initdb, program = find_program("initdb"), find_program("postgres")
    if not (initdb and program):
        return None
    data = folder / "postgres"
    data.mkdir()
    if os.geteuid() == 0:
        shutil.chown(data, "postgres")
        folder.chmod(0o755)
    subprocess.run(
        [initdb, "-D", str(data), "-U", "gatehouse", "-A", "trust", "-E", "UTF8", "--no-sync"],
        check=True, stdout=subprocess.DEVNULL, cwd=folder, **_as_postgres(),
    )  # fmt: skip
    return Postgres(program, folder, free_port())


@contextlib.contextmanager
def postgres(folder: Path) -> Iterator[str | None]:
    """Run a private PostgreSQL; yield its URL, or None where it is not installed."""
    made = make_postgres(folder)
    if made is None:
        yield None
        return
    try:
        made.start()
        yield made.url
    finally:
        made.stop()


@contextlib.contextmanager
def redis(folder: Path) -> Iterator[str | None]:
    """Run a private Redis (or Valkey); yield its URL, or None where neither is installed."""
    program = find_program("redis-server") or find_program("valkey-server")
    if not program:
        yield None
        return
    port = free_port()
    server = subprocess.Popen(
        [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(folder)],
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_for_port(port, server)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait(PATIENCE_S)


def main(command: list[str]) -> int:
    """Run `command` with the services; return its exit status."""
    environment = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="gatehouse-services-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        for variable, service in (("TEST_DATABASE_URL", postgres), ("TEST_REDIS_URL", redis)):
            if not environment.get(variable):
                url = stack.enter_context(service(folder))
                if url:
                    environment[variable] = url
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    arguments = sys.argv[1:]
    sys.exit(main(arguments[1:] if arguments[:1] == ["--"] else arguments))
