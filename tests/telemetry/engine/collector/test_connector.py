"""The kernel's process events are read as they are, and nothing that comes instead does harm."""

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine.collector.connector import ProcessEvent, drops, open_connector, parse


def message(what: int, *body: int, cpu: int = 0, number: int = 1, index: int = 1, kind: int = 3) -> bytes:
    event = struct.pack("=IIQ", what, cpu, 123) + struct.pack(f"={len(body)}I", *body)
    told = struct.pack("=IIIIHH", index, 1, number, 0, len(event), 0) + event
    return struct.pack("=IHHII", 16 + len(told), kind, 0, 0, 0) + told


@pytest.mark.parametrize(
    ("data", "event"),
    [
        (message(1, 10, 10, 20, 20), ProcessEvent("fork", 20, 10, 123)),
        (message(1, 11, 10, 20, 20), ProcessEvent("fork", 20, 10, 123)),  # forked by a thread
        (message(2, 20, 20, cpu=3, number=9), ProcessEvent("exec", 20, 0, 123)),
        (message(0x200, 20, 20, 0, 0, 0, 0), ProcessEvent("name", 20, 0, 123)),
        (message(0x80000000, 20, 20, 0, 17), ProcessEvent("exit", 20, 0, 123)),
        (message(1, 10, 10, 21, 20), None),  # a thread begins
        (message(0x80000000, 21, 20, 0, 17), None),  # a thread ends
        (message(0, 0), None), (message(4, 20, 20, 0, 0), None), (message(2, 20, 20, index=7), None),
        (message(2, 20, 20)[:-6], None), (message(1, 10, 10), None), (message(2, 20, 20, kind=2), None), (b"", None),
    ],
)  # fmt: skip
def test_an_event_is_read(data: bytes, event: ProcessEvent | None) -> None:
    assert list(parse(data)) == ([event] if event else [])


def test_several_messages_may_come_in_one_datagram() -> None:
    overrun = struct.pack("=IHHII", 16, 4, 0, 0, 0)
    assert [each.pid for each in parse(message(2, 5, 5) + overrun + message(2, 6, 6))] == [5, 6]


@given(st.binary(max_size=400))
def test_nothing_that_comes_breaks_it(data: bytes) -> None:
    list(parse(data))


def heard_of(process: subprocess.Popen[bytes], *connectors: socket.socket) -> list[list[ProcessEvent]]:
    """What each connector tells of a process until it ends."""
    process.wait()
    marker = subprocess.Popen(["true"])
    marker.wait()
    found = []
    for connector in connectors:
        connector.settimeout(10)
        heard = list[ProcessEvent]()
        while not any(each.pid == marker.pid for each in heard):
            heard += parse(connector.recv(4096))
        found.append([each for each in heard if each.pid == process.pid])
    return found


@pytest.fixture
def connectors() -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        try:
            yield [stack.enter_context(open_connector(each)) for each in (("fork", "exit"), ("exec",))]
        except OSError as error:
            pytest.skip(f"No process events here: {error}")


def test_the_kernel_tells_each_connector_what_it_wants(connectors: list[socket.socket]) -> None:
    process = subprocess.Popen([sys.executable, "-c", "import threading; threading.Thread(target=print).start()"])
    ways, runs = heard_of(process, *connectors)
    assert [each.what for each in ways] == ["fork", "exit"]
    assert ways[0].parent == os.getpid()
    assert {each.what for each in runs} == {"exec"}
    assert ways[0].at_ns < runs[0].at_ns < ways[1].at_ns


def test_what_there_is_no_room_for_is_counted(connectors: list[socket.socket]) -> None:
    rest = connectors[0]
    rest.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    assert drops(rest) == 0
    for _ in range(30):
        subprocess.run(["true"], check=True)
    rest.setblocking(False)
    with suppress(OSError):  # that there was no room is told once, as an error
        rest.recv(4096)
    heard = 0
    with suppress(BlockingIOError):
        while rest.recv(4096):
            heard += 1
    assert drops(rest) + heard >= 60 > heard
