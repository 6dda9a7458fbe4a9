"""What sshd logs of those whom it lets in, read as it is written; and facts that wait until that has come."""

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Protocol

from portal.cli.collect.config import Config
from portal.cli.collect.privileges import lend_nothing
from portal.cli.collect.source import READ_BYTES, Source
from portal.cli.files import Unusable
from telemetry.engine.collector.facts import Ending, Fact, Found
from telemetry.engine.collector.logins import JOURNAL, LONGEST_LINE, Logins, read_line

HELD_S = 2.0  # by then what was logged of a connection has come; minutes wait longer to be closed
_MOST_BYTES = 16 * READ_BYTES  # that are read at once; what is behind waits
_JOURNALCTL = (
    "journalctl", "--follow", "--lines=0", "--quiet", "--output=json", "--output-fields=MESSAGE,_PID,_UID,_COMM",
    "_COMM=sshd", "+", "_COMM=sshd-session",
)  # fmt: skip
_ENVIRON = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}


class Lines(Protocol):
    """Where a log comes from: nothing where there is nothing yet, None at its end."""

    def read(self, wait_s: float) -> bytes | None: ...


class Journal:
    """The journal, as `journalctl` tells it: that keeps the groups that we have now, and ends with us.

    Errors: `Unusable`.
    """

    def __init__(self, command: Iterable[str] = _JOURNALCTL) -> None:
        self._fd, writing = os.pipe()
        try:
            self._process = subprocess.Popen(
                list(command), env=_ENVIRON, cwd="/", stdin=subprocess.DEVNULL, stdout=writing, preexec_fn=lend_nothing
            )  # fmt: skip
        except OSError as error:
            raise Unusable(
                f"journalctl cannot be started: {error.strerror} [no_journal]\n"
                "Name the file that sshd logs to by `ssh_log`, or leave that out."
            ) from None
        finally:
            os.close(writing)
        os.set_blocking(self._fd, False)

    def read(self, wait_s: float) -> bytes | None:
        with suppress(BlockingIOError):
            return os.read(self._fd, READ_BYTES) or None
        return b""

    def close(self) -> None:
        with suppress(OSError):
            self._process.terminate()
            self._process.wait(1.0)


class SshLog:
    """sshd's log: what it says goes to `logins`, and facts are held back for it."""

    def __init__(self, lines: Lines, form: str, logins: Logins) -> None:
        self._lines, self._form, self.logins = lines, form, logins
        self._rest = b""
        self._held: deque[tuple[float, list[Fact | Found]]] = deque()
        self._has_ended = False

    def hold(self, facts: Iterable[Fact | Found]) -> Iterator[Fact | Found]:
        """Take facts, and yield those that have waited long enough, in their order; all of them at the end."""
        self.listen()
        now_s, given = time.monotonic(), list(facts)
        self._held.append((now_s, given))
        until_s = float("inf") if any(isinstance(each, Ending) for each in given) else now_s - HELD_S
        while self._held and self._held[0][0] <= until_s:
            yield from self._held.popleft()[1]

    def rest(self) -> Iterator[Fact | Found]:
        """Yield what still waits."""
        self.listen()
        while self._held:
            yield from self._held.popleft()[1]

    def listen(self) -> None:
        """Take the lines that have come."""
        left = _MOST_BYTES
        while not self._has_ended and left > 0 and (data := self._lines.read(0)) != b"":
            if data is None:
                self._has_ended = True
                print("The log of sshd ended: who comes by SSH is not told any more.", file=sys.stderr, flush=True)
                return
            left -= len(data)
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._rest = self._rest[-LONGEST_LINE:]
            for line in lines:
                if accepted := read_line(line[:LONGEST_LINE], self._form, time.time()):
                    self.logins.hear(accepted)

    def close(self) -> None:
        """End what reads for us."""
        if isinstance(self._lines, Journal):
            self._lines.close()


def open_log(config: Config, *, dry_run: bool) -> SshLog | None:
    """Open the log that the settings name, with the rights that we have now; None where they name none.

    A dry run of somebody who may not read it goes without. Errors: `Unusable`.
    """
    if not config.ssh_log:
        return None
    logins = Logins(key=os.urandom(32), agents=config.keys)
    try:
        if config.ssh_log == JOURNAL:
            return SshLog(Journal(), JOURNAL, logins)
        return SshLog(Source(config.ssh_log, follow=True), "plain", logins)
    except Unusable as error:
        if not dry_run:
            raise
        print(f"Without the log of sshd: {str(error).partition(chr(10))[0]}", file=sys.stderr)
        return None
