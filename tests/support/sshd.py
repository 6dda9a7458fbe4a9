"""A real OpenSSH server on loopback for tests, and what takes its messages as a syslog does."""

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SSHD = Path("/usr/sbin/sshd")
SYSLOG = Path("/dev/log")  # syslog(3) knows no other


def is_there() -> bool:
    """Say whether one can be started here, and heard: as root, where no other program takes what is logged."""
    return os.geteuid() == 0 and SSHD.exists() and shutil.which("ssh-keygen") is not None and not _is_taken()


def _is_taken() -> bool:
    if not SYSLOG.exists():
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(str(SYSLOG))
        except ConnectionRefusedError:  # left by one that was killed
            SYSLOG.unlink()
            return False
        except OSError:
            return True
    return True


class Server:
    """A server: `connect` runs a command there with a key."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "auth.log"
        self.port = 0
        self.log.touch()

    def make_key(self, name: str) -> str:
        """Make a key that is let in; return its fingerprint, as ssh-keygen prints it."""
        path = self.folder / name
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
        with (self.folder / "authorized_keys").open("a") as keys:
            keys.write(path.with_suffix(".pub").read_text())
        told = subprocess.run(["ssh-keygen", "-l", "-f", path], capture_output=True, text=True, check=True).stdout
        return told.split()[1]

    def connect(self, key: str, command: str, *options: str) -> str:
        """Run a command over a connection of its own, without a terminal; return what it printed."""
        return subprocess.run(
            [
                "ssh", "-F", "none", "-i", self.folder / key, "-p", str(self.port), "-o", "IdentitiesOnly=yes",
                "-o", "IdentityAgent=none", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
                "-o", "LogLevel=ERROR", *options, "root@127.0.0.1", command,
            ],
            capture_output=True, text=True, check=True, timeout=30,
        ).stdout  # fmt: skip


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """Serve until the end of a block, and write what is logged to `Server.log` as rsyslog does."""
    server = Server(folder)
    host_key = folder / "host_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", host_key], check=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        server.port = probe.getsockname()[1]
    Path("/run/sshd").mkdir(exist_ok=True)
    config = folder / "sshd_config"
    config.write_text(
        f"Port {server.port}\nListenAddress 127.0.0.1\nHostKey {host_key}\n"
        f"AuthorizedKeysFile {folder}/authorized_keys\n"
        "PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n"
        "AcceptEnv CLAUDECODE\n"
    )
    with _syslog(server.log):
        process = subprocess.Popen([SSHD, "-D", "-f", config], stderr=subprocess.DEVNULL)
        try:
            _wait_for(server.port)
            yield server
        finally:
            process.terminate()
            process.wait(10)


def _wait_for(port: int) -> None:
    until_s = time.monotonic() + 10
    while True:
        with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 5):
            return
        if time.monotonic() > until_s:
            raise TimeoutError("sshd does not listen.")
        time.sleep(0.05)


@contextmanager
def _syslog(log: Path) -> Iterator[None]:
    """Write each message with time and host, as rsyslog's traditional form has them."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as taker:
        taker.bind(str(SYSLOG))
        taker.settimeout(0.2)
        has_ended = threading.Event()

        def take() -> None:
            with log.open("ab", buffering=0) as file:
                while not has_ended.is_set():
                    with suppress(TimeoutError):
                        message = taker.recv(65_536).rstrip(b"\0\n")
                        # <PRI>Mmm dd hh:mm:ss tag[pid]: text
                        head = message.partition(b">")[2]
                        file.write(head[:15] + b" login1 " + head[16:] + b"\n")

        thread = threading.Thread(target=take)
        thread.start()
        try:
            yield
        finally:
            has_ended.set()
            thread.join()
            SYSLOG.unlink()
