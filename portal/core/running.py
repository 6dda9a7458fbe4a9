"""One command of the host, within limits: of time, of what it prints, of what it leaves behind."""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Final

_PIECE_BYTES: Final = 1024 * 1024
_LOOK_S: Final = 0.002
_COMPLAINT_LOOK_S: Final = 0.05
# So long after its end a command may still complain, by a filter of its error output. A child that it leaves behind
# with that output open, as ssh leaves the master of its connections, may keep it for hours.
_GRACE_S: Final = 1.0
_INTERRUPTING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class TooMuch(Exception):
    """A command printed more than it may."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended, and what it printed."""

    status: int
    out: bytes
    complaint: bytes


def run_within(
    command: Sequence[str], *, environment: dict[str, str], timeout_s: float, most_bytes: int,
    into: IO[bytes] | None = None,
) -> Ran:  # fmt: skip
    """Run a command to its end; then, and past a limit, all that it started is killed (sites wrap Slurm's in scripts).

    What it prints goes `into` a file, where one is given, however much it is. Errors: `subprocess.TimeoutExpired`,
    `TooMuch`, `OSError` where it cannot be started.
    """
    deadline = time.monotonic() + timeout_s
    process: subprocess.Popen[bytes] | None = None
    try:
        with _held_back():
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=into or subprocess.PIPE,
                stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        out, complaint = _read(process, deadline, most_bytes)
        _await_end(process, deadline)
    finally:
        if process is not None:
            # Not waited for yet, the process keeps its number: no other group can have it.
            with process, contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return Ran(process.wait(), out, complaint)


@contextlib.contextmanager
def _held_back() -> Iterator[None]:
    """Let the signals that interrupt the main thread wait: who is half started is known to nobody who could end it."""
    handlers = {number: signal.getsignal(number) for number in _INTERRUPTING}
    handled = {number: handler for number, handler in handlers.items() if callable(handler)}
    if threading.current_thread() is not threading.main_thread():
        handled = {}
    came: list[int] = []
    for number in handled:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)
        for each in came:
            signal.raise_signal(each)


def _await_end(process: subprocess.Popen[bytes], deadline: float) -> None:
    """Return once a process has ended, and leave its status to be waited for."""
    while not _has_ended(process):
        if time.monotonic() > deadline:
            raise subprocess.TimeoutExpired(process.args, 0)
        time.sleep(_LOOK_S)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _read(process: subprocess.Popen[bytes], deadline: float, most_bytes: int) -> tuple[bytes, bytes]:
    """Return what a process prints until it closes both its outputs; nothing of one that is a file.

    Its answer is read to the end, whoever writes it; its complaints until `_GRACE_S` after its own end at most.
    """
    pipes = [pipe for pipe in (process.stdout, process.stderr) if pipe is not None]
    printed = {pipe.fileno(): bytearray() for pipe in pipes}
    *_, complaints = printed
    until = deadline
    with selectors.DefaultSelector() as selector:
        for number in printed:
            selector.register(number, selectors.EVENT_READ)
        while (is_open := selector.get_map().keys()) and (left := until - time.monotonic()) > 0:
            for key, _ in selector.select(min(left, _COMPLAINT_LOOK_S)):
                piece = os.read(key.fd, _PIECE_BYTES)
                if not piece:
                    selector.unregister(key.fd)
                printed[key.fd] += piece
                if len(printed[key.fd]) > most_bytes:
                    raise TooMuch
            if until == deadline and set(is_open) == {complaints} and _has_ended(process):
                until = time.monotonic() + _GRACE_S
        if is_open and until == deadline:
            raise subprocess.TimeoutExpired(process.args, 0)
    *out, complaint = (bytes(text) for text in printed.values())
    return b"".join(out), complaint
