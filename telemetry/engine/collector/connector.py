"""What the kernel says of processes: the process events connector (`linux/cn_proc.h`, `linux/connector.h`).

Each datagram holds netlink messages, each a connector message, each one event. Events are numbered for each processor,
so that what was lost between two of them can be counted. All times are nanoseconds since boot.
"""

import os
import socket
import struct
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

What: TypeAlias = Literal["fork", "exec", "exit", "name"]

_NETLINK_CONNECTOR: Final = 11
_SO_RCVBUFFORCE: Final = 33  # socket(7)
_CN_IDX_PROC: Final = 1
_CN_VAL_PROC: Final = 1
_LISTEN, _IGNORE = 1, 2
_NLMSG_DONE: Final = 3
_NLMSG_ERROR: Final = 2
_NLMSG_OVERRUN: Final = 4

_HEADER: Final = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, sender
_MESSAGE: Final = struct.Struct("=IIIIHH")  # cn_msg: index, value, sequence, acknowledgement, length, flags
_EVENT: Final = struct.Struct("=IIQ")  # proc_event: what, processor, time
_FORK: Final = struct.Struct("=IIII")  # parent's thread and process, child's thread and process
_PROCESS: Final = struct.Struct("=II")  # thread, process
_BEGIN: Final = _HEADER.size + _MESSAGE.size

_FORKED: Final = 0x1
_OTHERS: Final[dict[int, What]] = {0x2: "exec", 0x200: "name", 0x8000_0000: "exit"}

RECEIVE_BYTES: Final = 8 * 1024 * 1024  # what the kernel may hold for us: some 100,000 events


class ProcessEvent(NamedTuple):
    """One event of a process; threads are left out. `parent` is 0 but for a fork. `number` counts on its `cpu`."""

    what: What
    pid: int
    parent: int
    at_ns: int
    cpu: int
    number: int


class Overrun(NamedTuple):
    """The kernel says that it had to drop events."""


def parse(datagram: bytes) -> Iterator[ProcessEvent | Overrun]:
    """Yield the events of a datagram; what is cut short or none of ours is passed over."""
    at = 0
    while at + _HEADER.size <= len(datagram):
        length, kind, *_ = _HEADER.unpack_from(datagram, at)
        if length < _HEADER.size or at + length > len(datagram):
            return
        if kind == _NLMSG_OVERRUN:
            yield Overrun()
        elif kind not in {_NLMSG_ERROR} and (event := _event(datagram[at : at + length])):
            yield event
        at += (length + 3) & ~3


def _event(message: bytes) -> ProcessEvent | None:
    if len(message) < _BEGIN + _EVENT.size:
        return None
    index, value, number, *_ = _MESSAGE.unpack_from(message, _HEADER.size)
    what, cpu, at_ns = _EVENT.unpack_from(message, _BEGIN)
    body = message[_BEGIN + _EVENT.size :]
    if (index, value) != (_CN_IDX_PROC, _CN_VAL_PROC):
        return None
    if what == _FORKED and len(body) >= _FORK.size:
        _, parent, thread, process = _FORK.unpack_from(body)
        return ProcessEvent("fork", process, parent, at_ns, cpu, number) if thread == process else None
    if what in _OTHERS and len(body) >= _PROCESS.size:
        thread, process = _PROCESS.unpack_from(body)
        return ProcessEvent(_OTHERS[what], process, 0, at_ns, cpu, number) if thread == process else None
    return None


class Losses:
    """Count what was lost, by the numbers that each processor gives its events.

    Numbers are looked at of every message, also of those that are no events of ours: see `note`.
    """

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        self.lost = 0

    def note(self, datagram: bytes) -> int:
        """Take a datagram as it came; return how many were lost right before it."""
        if len(datagram) < _BEGIN + _EVENT.size:
            return 0
        number = _MESSAGE.unpack_from(datagram, _HEADER.size)[2]
        cpu = _EVENT.unpack_from(datagram, _BEGIN)[1]
        before = self._last.get(cpu)
        self._last[cpu] = number
        lost = 0 if before is None else (number - before - 1) & 0xFFFF_FFFF
        lost = 0 if lost >= 1 << 31 else lost  # an older one that was overtaken
        self.lost += lost
        return lost


def open_connector() -> socket.socket:
    """Open the connector and ask for events. Errors: `PermissionError` without CAP_NET_ADMIN, `OSError` where the
    kernel has none (as in most containers)."""
    connector = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, _NETLINK_CONNECTOR)
    try:
        for option in (_SO_RCVBUFFORCE, socket.SO_RCVBUF):  # the first goes beyond what an administrator allows all
            try:
                connector.setsockopt(socket.SOL_SOCKET, option, RECEIVE_BYTES)
                break
            except PermissionError:
                continue
        connector.bind((0, _CN_IDX_PROC))
        connector.send(request(_LISTEN))
    except OSError:
        connector.close()
        raise
    return connector


def request(operation: int = _LISTEN) -> bytes:
    """Return the message that asks for events, or for no more of them."""
    body = struct.pack("=I", operation)
    message = _MESSAGE.pack(_CN_IDX_PROC, _CN_VAL_PROC, 0, 0, len(body), 0) + body
    return _HEADER.pack(_HEADER.size + len(message), _NLMSG_DONE, 0, 0, os.getpid()) + message
