"""The helper looks, tells, and ends when nobody listens."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import ANY

import pytest

from telemetry.engine.collector.facts import Ending, Executed, Exited, Fact, Snapshot, Told
from telemetry.engine.collector.frames import Decoder
from telemetry.engine.collector.helper import EXECS_A_SECOND, ONE_IN, Budget, Clock, Order, connect

ROOT = Path(__file__).resolve().parents[4]
RUN = (
    "import sys; sys.path.insert(0, sys.argv[1]); from telemetry.engine.collector.helper import main\n"
    "sys.exit(main(sys.argv[2:]))"
)


@contextmanager
def helping(mode: str, kill_file: str = "", only: str = "") -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    reading, writing = os.pipe()
    helper = subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", "-c", RUN, str(ROOT), str(writing), mode, kill_file, "", only],
        pass_fds=[writing], env={},
    )  # fmt: skip
    os.close(writing)
    try:
        yield helper, reading
    finally:
        os.close(reading)
        assert helper.wait(20) == 0


def facts_of(reading: int) -> Iterator[Fact]:
    decoder = Decoder()
    while data := os.read(reading, 65_536):
        yield from decoder.feed(data)


@pytest.mark.parametrize("mode", ["events", "walk"])
def test_it_tells_what_is_there_and_what_begins_and_ends(mode: str) -> None:
    with helping(mode) as (_, reading):
        facts = facts_of(reading)
        first = next(facts)
        assert isinstance(first, Snapshot) and os.getpid() in {each.pid for each in first.sightings}
        told = next(each for each in facts if isinstance(each, Told))
        process = subprocess.Popen(["sleep", "0.7"])
        ran = next(each for each in facts if isinstance(each, Executed) and each.pid == process.pid)
        assert ran.sighting is not None and ran.sighting.seen().argv == ("sleep", "0.7")
        assert abs(ran.at_ns - time.time_ns()) < 60e9
        process.wait()
        next(each for each in facts if isinstance(each, Exited) and each.pid == process.pid)
        assert told.mode in {mode, "walk"} and told.memory_bytes > 1_000_000


def test_it_ends_when_the_kill_file_appears(tmp_path: Path) -> None:
    kill_file = tmp_path / "off"
    with helping("walk", str(kill_file)) as (helper, reading):
        facts = facts_of(reading)
        next(facts)
        kill_file.touch()
        assert any(isinstance(each, Ending) for each in facts)
        assert helper.wait(20) == 0


def test_in_a_job_it_looks_at_one_person_s_processes_alone() -> None:
    with helping("walk", only=f"{os.getuid() + 1}:7") as (_, reading):
        facts = facts_of(reading)
        assert next(facts) == Snapshot(ANY, ())
        process = subprocess.Popen(["sleep", "0.7"])
        process.wait()
        told = [next(each for each in facts if isinstance(each, Told)) for _ in range(2)]
    assert told[-1].execs == 0


def test_it_loads_the_standard_library_and_its_own_few_files_alone() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); before = set(sys.modules)\n"
        "import telemetry.engine.collector.helper\nprint('\\n'.join(set(sys.modules) - before))"
    )
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    loaded = {name for name in ran.stdout.split() if name.partition(".")[0] not in sys.stdlib_module_names}
    own = ("helper", "connector", "facts", "frames", "origins", "proc", "walking")
    folders = {"telemetry", "telemetry.engine", "telemetry.engine.collector"}
    assert loaded == folders | {f"telemetry.engine.collector.{name}" for name in own}
    assert not {"ctypes", "subprocess", "urllib.request"} & set(ran.stdout.split())


def test_of_a_storm_some_are_looked_at() -> None:
    budget = Budget(100)
    taken = [budget.take(10_000_000_000 + number) for number in range(1100)]
    assert sum(taken[:100]) == 100 and sum(taken) == 100 + 1000 // ONE_IN
    assert budget.take(11_000_000_001)
    assert EXECS_A_SECOND > 2000


def test_facts_of_two_ways_come_in_the_order_of_their_times_once_that_is_sure() -> None:
    order, facts = Order(), [bytes([at]) for at in range(6)]
    for at in (1, 4, 5, 0, 2):
        order.add(at, facts[at])
    assert order.release(2) == facts[:3]
    order.add(3, facts[3])
    assert order.release(9) == facts[3:]
    assert order.release(9) == []


def test_a_fork_s_start_is_that_of_proc_within_a_tick_or_two() -> None:
    connectors = connect()
    if connectors is None:
        pytest.skip("No process events here.")
    from telemetry.engine.collector.connector import parse
    from telemetry.engine.collector.proc import Proc

    with connectors.starts, connectors.rest as connector:
        connector.settimeout(10)
        process = subprocess.Popen(["sleep", "5"])
        try:
            clock = Clock()
            forked = next(
                event
                for _ in range(100_000)
                for event in parse(connector.recv(4096))
                if (event.what, event.pid) == ("fork", process.pid)
            )
            seen = Proc().look(process.pid)
        finally:
            process.kill()
            process.wait()
    assert seen is not None and abs(clock.ticks(forked.at_ns) - seen.start) <= 2
