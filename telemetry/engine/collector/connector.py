"""What the kernel says of processes: the process events connector (`linux/cn_proc.h`, `linux/connector.h`).

Each datagram holds netlink messages, each a connector message, each one event. The kernel leaves out what nobody wants,
and counts what it had no room for. All times are nanoseconds since boot.
"""

import os
import socket
import struct
from array import array
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, Literal, NamedTuple, TypeAlias

What: TypeAlias = Literal["fork", "exec", "exit", "name"]

_NETLINK_CONNECTOR: Final = 11
_SO_ATTACH_FILTER: Final = 26  # socket(7)
_SO_RCVBUFFORCE: Final = 33
_SO_MEMINFO: Final = 55
_MEMINFO: Final = struct.Struct("=9I")  # linux/sock_diag.h
_DROPS: Final = 8
_CN_IDX_PROC: Final = 1
_CN_VAL_PROC: Final = 1
_LISTEN, _IGNORE = 1, 2
_NLMSG_DONE: Final = 3

_HEADER: Final = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, sender
_MESSAGE: Final = struct.Struct("=IIIIHH")  # cn_msg: index, value, sequence, acknowledgement, length, flags
_EVENT: Final = struct.Struct("=IIQ")  # proc_event: what, processor, time
_PROCESS: Final = struct.Struct("=II")  # thread, process; in a fork the parent's, then the child's
_LENGTH: Final = struct.Struct("=I")
# Of all three and the first process what is looked at: type, index, value, what, time, thread, process.
_SHORTEST: Final = struct.Struct("=4xH10xII12xI4xQII")
_BEGIN: Final = _HEADER.size + _MESSAGE.size
_BODY: Final = _BEGIN + _EVENT.size
_FORK_PLACES: Final = (_BODY + 8, _BODY + 12)  # of the child's thread and process
_PROCESS_PLACES: Final = (_BODY, _BODY + 4)

_FORKED: Final = 0x1
_OTHERS: Final[dict[int, What]] = {0x2: "exec", 0x200: "name", 0x8000_0000: "exit"}

_LOAD: Final = 0x20  # linux/bpf_common.h: a word into the accumulator
_TO_X: Final = 0x07
_JUMP_EQUAL, _JUMP_EQUAL_X = 0x15, 0x1D
_RETURN: Final = 0x06

RECEIVE_BYTES: Final = 8 * 1024 * 1024  # what the kernel may hold for us: some 100,000 events


class ProcessEvent(NamedTuple):
    """One event of a process; threads are left out. `parent` is 0 but for a fork."""

    what: What
    pid: int
    parent: int
    at_ns: int


def parse(datagram: bytes) -> list[ProcessEvent]:
    """Return the events of a datagram; what is cut short or none of ours is passed over."""
    if len(datagram) >= _HEADER.size and _LENGTH.unpack_from(datagram)[0] == len(datagram):
        event = _event(datagram, 0, len(datagram))  # the kernel sends one at a time
        return [event] if event else []
    events, at = list[ProcessEvent](), 0
    while at + _HEADER.size <= len(datagram):
        length = _LENGTH.unpack_from(datagram, at)[0]
        if length < _HEADER.size or at + length > len(datagram):
            break
        if event := _event(datagram, at, at + length):
            events.append(event)
        at += (length + 3) & ~3
    return events


def _event(data: bytes, begin: int, end: int) -> ProcessEvent | None:
    if end - begin < _SHORTEST.size:
        return None
    kind, index, value, what, at_ns, first, second = _SHORTEST.unpack_from(data, begin)
    if (kind, index, value) != (_NLMSG_DONE, _CN_IDX_PROC, _CN_VAL_PROC):
        return None
    if what == _FORKED and end - begin >= _SHORTEST.size + _PROCESS.size:
        thread, process = _PROCESS.unpack_from(data, begin + _SHORTEST.size)
        return ProcessEvent("fork", process, second, at_ns) if thread == process else None
    name = _OTHERS.get(what)
    return ProcessEvent(name, second, 0, at_ns) if name and first == second else None


def open_connector(wanted: Iterable[What] = ("fork", "exec", "exit")) -> socket.socket:
    """Open the connector and ask for events; the kernel leaves out those that are not wanted, and all of threads.

    Errors: `PermissionError` without CAP_NET_ADMIN, `OSError` where the kernel has none (as in most containers).
    """
    connector = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, _NETLINK_CONNECTOR)
    try:
        for option in (_SO_RCVBUFFORCE, socket.SO_RCVBUF):  # the first goes beyond what an administrator allows all
            with suppress(PermissionError):
                connector.setsockopt(socket.SOL_SOCKET, option, RECEIVE_BYTES)
                break
        _attach(connector, _filter(wanted))
        connector.bind((0, _CN_IDX_PROC))
        connector.send(request(_LISTEN))
    except OSError:
        connector.close()
        raise
    return connector


def drops(connector: socket.socket) -> int:
    """Return how many wanted events the kernel had no room for since the socket was opened; 0 before Linux 4.12."""
    try:
        told = connector.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size)
    except OSError:
        return 0
    return int(_MEMINFO.unpack(told)[_DROPS]) if len(told) == _MEMINFO.size else 0


def _filter(wanted: Iterable[What]) -> list[tuple[int, int, int, int]]:
    """Return a program of classic BPF (linux/filter.h) that lets through what is wanted and is no thread's."""
    kinds = {"fork": (_FORKED, _FORK_PLACES), **{name: (what, _PROCESS_PLACES) for what, name in _OTHERS.items()}}
    program: list[tuple[int, int, int, int]] = []
    for what, (thread, process) in (kinds[name] for name in wanted):
        program += [
            (_LOAD, 0, 0, _BEGIN), (_JUMP_EQUAL, 0, 5, _in_network_order(what)),
            (_LOAD, 0, 0, thread), (_TO_X, 0, 0, 0), (_LOAD, 0, 0, process), (_JUMP_EQUAL_X, 0, 1, 0),
            (_RETURN, 0, 0, 0xFFFF_FFFF),
        ]  # fmt: skip
    return [*program, (_RETURN, 0, 0, 0)]


def _in_network_order(number: int) -> int:
    """Return what the filter, which reads big-endian, finds where the kernel wrote a number in its own order."""
    return int.from_bytes(struct.pack("=I", number), "big")


def _attach(connector: socket.socket, program: list[tuple[int, int, int, int]]) -> None:
    code = b"".join(struct.pack("=HBBI", *each) for each in program)
    keep = array("B", code)
    connector.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("@HP", len(program), keep.buffer_info()[0]))


def request(operation: int = _LISTEN) -> bytes:
    """Return the message that asks for events, or for no more of them."""
    body = struct.pack("=I", operation)
    message = _MESSAGE.pack(_CN_IDX_PROC, _CN_VAL_PROC, 0, 0, len(body), 0) + body
    return _HEADER.pack(_HEADER.size + len(message), _NLMSG_DONE, 0, 0, os.getpid()) + message
