"""The kernel's process events are read as they are, and nothing that comes instead does harm."""

import os
import struct
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine.collector.connector import Losses, Overrun, ProcessEvent, open_connector, parse


def message(what: int, *body: int, cpu: int = 0, number: int = 1, index: int = 1, kind: int = 3) -> bytes:
    event = struct.pack("=IIQ", what, cpu, 123) + struct.pack(f"={len(body)}I", *body)
    told = struct.pack("=IIIIHH", index, 1, number, 0, len(event), 0) + event
    return struct.pack("=IHHII", 16 + len(told), kind, 0, 0, 0) + told


@pytest.mark.parametrize(
    ("data", "event"),
    [
        (message(1, 10, 10, 20, 20), ProcessEvent("fork", 20, 10, 123, 0, 1)),
        (message(1, 11, 10, 20, 20), ProcessEvent("fork", 20, 10, 123, 0, 1)),  # forked by a thread
        (message(2, 20, 20, cpu=3, number=9), ProcessEvent("exec", 20, 0, 123, 3, 9)),
        (message(0x200, 20, 20, 0, 0, 0, 0), ProcessEvent("name", 20, 0, 123, 0, 1)),
        (message(0x80000000, 20, 20, 0, 17), ProcessEvent("exit", 20, 0, 123, 0, 1)),
        (message(1, 10, 10, 21, 20), None),  # a thread begins
        (message(0x80000000, 21, 20, 0, 17), None),  # a thread ends
        (message(0, 0), None), (message(4, 20, 20, 0, 0), None), (message(2, 20, 20, index=7), None),
        (message(2, 20, 20)[:-6], None), (message(1, 10, 10), None), (message(2, 20, 20, kind=2), None), (b"", None),
    ],
)  # fmt: skip
def test_an_event_is_read(data: bytes, event: ProcessEvent | None) -> None:
    assert list(parse(data)) == ([event] if event else [])


def test_several_messages_come_in_one_datagram_and_an_overrun_is_told() -> None:
    overrun = struct.pack("=IHHII", 16, 4, 0, 0, 0)
    found = list(parse(message(2, 5, 5) + overrun + message(2, 6, 6)))
    assert [each if isinstance(each, Overrun) else each.pid for each in found] == [5, Overrun(), 6]


@given(st.binary(max_size=400))
def test_nothing_that_comes_breaks_it(data: bytes) -> None:
    list(parse(data))
    Losses().note(data)


def test_what_is_lost_is_counted_for_each_processor() -> None:
    losses = Losses()
    numbers = ((0, 5), (1, 900), (0, 6), (0, 9), (1, 901), (0, 8), (1, 904))
    assert [losses.note(message(2, 1, 1, cpu=cpu, number=number)) for cpu, number in numbers] == [0, 0, 0, 2, 0, 0, 2]
    assert losses.lost == 4
    assert losses.note(message(2, 1, 1, cpu=1, number=0)) == 0  # overtaken
    assert losses.lost == 4


def test_the_numbers_go_round() -> None:
    losses = Losses()
    assert [losses.note(message(2, 1, 1, number=number)) for number in (2**32 - 1, 0, 2)] == [0, 0, 1]


def test_the_kernel_tells_of_a_process_that_begins_runs_and_ends() -> None:
    try:
        connector = open_connector()
    except OSError as error:
        pytest.skip(f"No process events here: {error}")
    with connector:
        connector.settimeout(10)
        process = subprocess.Popen(["true"])
        wanted, found = {"fork", "exec", "exit"}, list[ProcessEvent]()
        process.wait()
        while {each.what for each in found} < wanted:
            events = parse(connector.recv(65_536))
            found += [each for each in events if isinstance(each, ProcessEvent) and each.pid == process.pid]
    kinds = [each.what for each in found if each.what in wanted]
    assert (kinds[0], kinds[-1]) == ("fork", "exit") and "exec" in kinds
    assert found[0].parent == os.getpid()
