"""Run a command with private PostgreSQL and Redis servers on loopback, where their programs are installed.

    python -m tests.support.services -- make test-fast

Sets TEST_DATABASE_URL and TEST_REDIS_URL for the command; what is set already is used as it is. Servers live in a
temporary folder, on free ports, and end with the command.
"""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
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


@contextlib.contextmanager
def postgres(folder: Path) -> Iterator[str | None]:
    """Run a private PostgreSQL; yield its URL, or None where it is not installed."""
    initdb, server_program = find_program("initdb"), find_program("postgres")
    if not (initdb and server_program):
        yield None
        return
    # PostgreSQL refuses to run as root.
    user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    data = folder / "postgres"
    data.mkdir()
    if os.geteuid() == 0:
        shutil.chown(data, user)
        folder.chmod(0o755)
    as_user = {"user": user} if os.geteuid() == 0 else {}
    subprocess.run(
        [initdb, "-D", str(data), "-U", "gatehouse", "-A", "trust", "-E", "UTF8", "--no-sync"],
        check=True, stdout=subprocess.DEVNULL, cwd=folder, **as_user,
    )  # fmt: skip
    port = free_port()
    options = [f"-cport={port}", "-clisten_addresses=127.0.0.1", f"-cunix_socket_directories={data}"]
    speed = ["-cfsync=off", "-csynchronous_commit=off", "-cfull_page_writes=off", "-cmax_connections=200"]
    with (folder / "postgres.log").open("wb") as log:
        server = subprocess.Popen(
            [server_program, "-D", str(data), *options, *speed], stdout=log, stderr=log, cwd=folder, **as_user
        )
        try:
            wait_for_port(port, server)
            yield f"postgres://gatehouse@127.0.0.1:{port}/postgres"
        finally:
            server.terminate()
            server.wait(PATIENCE_S)


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
