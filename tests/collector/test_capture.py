"""Real processes are heard of, and are taken for whose they are."""

import os
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from portal.cli.collect.privileges import start_helper
from telemetry.engine.collector.facts import Executed, Told
from telemetry.engine.collector.frames import Decoder
from telemetry.engine.collector.watch import Watch
from tests.collector.trees import AGENT, HUMAN, Started, Trees, wait_for

COMMANDS = 500  # in each of the two trees
COMMANDS_WALKED = 300
LONG_MS = 5.0

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="process events are root's to hear")


@dataclass
class Heard:
    """What was heard of each process that ran `sleep`, or of which nothing but its number is known."""

    mode: str = ""
    drivers: dict[int, str] = field(default_factory=dict)
    read: set[int] = field(default_factory=set)
    sleeps: dict[str, set[str]] = field(default_factory=dict)

    def take(self, fact: Executed, watch: Watch) -> None:
        process = watch._processes.get(fact.pid)
        if process is None:
            return
        self.drivers[fact.pid] = process.label.driver
        argv = fact.sighting.seen().argv if fact.sighting else ()
        if fact.sighting and (argv or fact.sighting.ended):
            self.read.add(fact.pid)
        if argv[:1] == ("sleep",):
            self.sleeps.setdefault(argv[1], set()).add(process.label.driver)

    def share(self, started: list[Started], driver: str, *, read: bool = False) -> float:
        known = [
            each for each in started if self.drivers.get(each.pid) == driver and (each.pid in self.read or not read)
        ]
        return len(known) / len(started)


def watch_trees(trees: Trees, *, walk: bool, commands: int) -> Heard:
    """Let both trees run beside each other, and listen."""
    helper, pipe = start_helper(walk=walk, kill_file="")
    boot_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    watch = Watch(
        began_s=time.time(), boot_s=boot_s, ticks_s=os.sysconf("SC_CLK_TCK"), key=b"x", apart_s=30, with_people=True
    )
    heard, decoder = Heard(), Decoder()

    def listen() -> None:
        for fact in decoder.feed(os.read(pipe, 1 << 20)):
            watch.take(fact)
            if isinstance(fact, Executed):
                heard.take(fact, watch)
            elif isinstance(fact, Told):
                heard.mode = fact.mode

    while not heard.mode:
        listen()
    agent, shell = trees.agent(commands), trees.person(commands)
    while agent.poll() is None:
        listen()
    wait_for(shell, trees.terminal, 60)
    until_s = time.monotonic() + 1.5
    while time.monotonic() < until_s:
        listen()
    os.close(pipe)
    assert helper.wait(20) == 0
    return heard


def wrong(heard: Heard, trees: Trees) -> Counter[tuple[str, str]]:
    """Those that were taken for somebody else's."""
    found = Counter[tuple[str, str]]()
    for name, driver in (("agent", "agent"), ("human", "human")):
        other = "human" if driver == "agent" else "agent"
        found[(name, other)] += sum(heard.drivers.get(each.pid) == other for each in trees.started(name))
    for mark, wanted in ((AGENT, "agent"), (HUMAN, "human")):  # others on this machine sleep too, by other marks
        ours = (drivers for text, drivers in heard.sleeps.items() if text.endswith(mark))
        found.update((mark, each) for drivers in ours for each in drivers - {wanted, "unknown"})
    return +found


def tell(heard: Heard, trees: Trees, capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    found = {}
    for name in ("agent", "human"):
        started = trees.started(name)
        long = [each for each in started if each.ms >= LONG_MS]
        found |= {
            f"{name}": heard.share(started, name), f"{name}, long": heard.share(long, name),
            f"{name}, read": heard.share(started, name, read=True),
            f"{name}, long, read": heard.share(long, name, read=True),
        }  # fmt: skip
    with capsys.disabled():
        print(f"\n{heard.mode}: " + ", ".join(f"{name} {share:.1%}" for name, share in found.items()))  # noqa: T201
    return found


def test_commands_of_milliseconds_are_heard_of_and_nobody_is_taken_for_somebody_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trees = Trees(tmp_path)
    heard = watch_trees(trees, walk=False, commands=COMMANDS)
    if heard.mode != "events":
        pytest.skip("No process events here.")
    shares = tell(heard, trees, capsys)
    assert not wrong(heard, trees)
    for mark, driver in ((AGENT, "agent"), (HUMAN, "human")):
        assert {text: heard.sleeps.get(text) for text in trees.left(mark)} == {
            each: {driver} for each in trees.left(mark)
        }
    for name in ("agent", "human"):
        assert shares[f"{name}, long"] >= 0.99
        assert shares[name] >= 0.9


def test_looks_at_proc_find_fewer_and_take_nobody_for_somebody_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trees = Trees(tmp_path)
    heard = watch_trees(trees, walk=True, commands=COMMANDS_WALKED)
    shares = tell(heard, trees, capsys)
    assert not wrong(heard, trees)
    assert 0 < shares["agent"] < 0.9
