"""What records leave out is looked up in `/proc` while they are new, and never once they are old."""

from collections.abc import Iterator

import pytest

from telemetry.engine.collector.facts import Executed, Exited, Forked, Found, Key, Sighting, Snapshot, Told
from telemetry.engine.collector.proc import Proc
from telemetry.engine.collector.records.reader import Reader
from telemetry.engine.collector.records.telling import Birth, End, Program
from telemetry.engine.collector.records.translating import LIVE_NS, SWEEP_NS, Telling, Translator
from tests.telemetry.engine.collector.node import counts
from tests.telemetry.engine.collector.records.sensors import parts_of

BOOT_NS = 1_790_000_000 * 10**9
SECOND = 10**9


class Node(Proc):
    """A `/proc` that is told what there is: pid, parent, start in ticks, words, terminal."""

    def __init__(self) -> None:
        self.there: dict[int, Sighting] = {}
        self.vanished = 0

    def has(self, pid: int, parent: int, start: int, *argv: str, tty: int = 0) -> None:
        text = b"".join(word.encode() + b"\0" for word in argv)
        self.there[pid] = Sighting(pid, start, parent, 1000, tty, False, argv[0].encode()[:15], b"", text)

    def pids(self) -> list[int]:
        return list(self.there)

    def look(self, pid: int) -> Sighting | None:
        return self.there.get(pid)

    def walk(self) -> Iterator[Sighting]:
        yield from self.there.values()


def at(seconds: float) -> int:
    return BOOT_NS + int(seconds * SECOND)


def ran(seconds: float, pid: int, parent: int, *argv: str) -> Program:
    words = tuple(word.encode() for word in argv)
    return Program(at(seconds), pid, parent, 1000, 0, words[0], words)


@pytest.fixture
def node() -> Node:
    made = Node()
    made.has(1, 0, 1, "init")
    return made


@pytest.fixture
def translator(node: Node) -> Translator:
    made = Translator(node, boot_ns=BOOT_NS, tick_ns=10_000_000)
    list(made.look(at(10)))
    return made


def take(translator: Translator, *records: Program | Birth | End, late_s: float = 0.01) -> list[Telling]:
    return [fact for each in records for fact in translator.take(each, each.at_ns + int(late_s * SECOND))]


def test_what_runs_already_is_known_by_a_look(node: Node) -> None:
    node.has(500, 1, 20, "claude")
    node.has(501, 500, 30, "bash", "-c", "x")
    made = Translator(node, boot_ns=BOOT_NS, tick_ns=10_000_000)
    facts = [*made.look(at(10)), *take(made, ran(11, 600, 501, "ls"))]
    assert isinstance(facts[0], Snapshot)
    parts = parts_of(facts)
    assert counts(parts) == {("500-20", "agent"): 1} and parts.sessions[0].harness == "claude-code"


def test_a_living_process_has_the_start_that_proc_tells(node: Node, translator: Translator) -> None:
    node.has(600, 1, 1990, "claude")
    [fact] = take(translator, ran(20, 600, 1, "claude"))
    assert isinstance(fact, Executed) and fact.sighting and fact.sighting.start == 1990


def test_a_number_that_is_another_s_by_now_tells_nothing(node: Node, translator: Translator) -> None:
    node.has(600, 1, 2100, "ls", tty=34816)
    [fact] = take(translator, ran(20, 600, 1, "bash"))
    assert isinstance(fact, Executed) and fact.sighting
    assert (fact.sighting.start, fact.sighting.tty) == (2000, 0)


def test_a_terminal_that_the_records_lack_is_looked_up(node: Node, translator: Translator) -> None:
    node.has(600, 1, 2000, "bash", tty=34816)
    parts = parts_of(take(translator, ran(20, 600, 1, "/bin/bash"), ran(21, 601, 600, "ls")))
    assert counts(parts) == {("", "human"): 1}


def test_the_job_of_a_living_process_is_looked_up(node: Node, translator: Translator) -> None:
    node.has(600, 1, 2000, "claude")
    node.there[600] = node.there[600]._replace(job=4711)
    parts = parts_of(take(translator, ran(20, 600, 1, "claude"), ran(21, 601, 600, "ls")))
    assert [(each.where.place, each.where.job) for each in parts.sessions] == [("job", 4711)]


def test_parents_of_whom_nobody_told_are_met(node: Node, translator: Translator) -> None:
    """A subshell that runs no program of its own, under an agent whose records were lost."""
    node.has(500, 1, 1500, "claude")
    node.has(501, 500, 1600, "bash", "-c", "x")
    facts = take(translator, ran(20, 600, 501, "ls"))
    assert [type(each) for each in facts] == [Found, Found, Executed]
    assert counts(parts_of(facts)) == {("500-1500", "agent"): 1} and translator.orphans == 0


def test_a_parent_that_is_gone_leaves_a_process_unknown_and_counted(translator: Translator) -> None:
    facts = take(translator, ran(20, 600, 501, "ls"))
    assert counts(parts_of(facts)) == {("", "unknown"): 1} and translator.orphans == 1


def test_what_a_process_started_at_its_end_is_still_its_own(translator: Translator) -> None:
    facts = take(
        translator, ran(20, 500, 1, "claude"), ran(21, 600, 500, "bash", "-c", "x"), End(at(22), 600),
        ran(22.5, 601, 600, "ls"), ran(30, 602, 1, "cron"),
    )  # fmt: skip
    assert Exited(at(22), 600) in facts and counts(parts_of(facts)) == {("500-2000", "agent"): 1, ("", "unknown"): 1}


def test_ends_that_nobody_tells_are_noticed_at_the_second_look(node: Node, translator: Translator) -> None:
    node.has(600, 1, 2000, "claude")
    take(translator, ran(20, 600, 1, "claude"))
    del node.there[600]
    first = list(translator.sweep(at(20) + SWEEP_NS))
    assert first == [] == list(translator.sweep(at(21) + SWEEP_NS))
    assert list(translator.sweep(at(20) + 2 * SWEEP_NS)) == [Exited(at(20) + 2 * SWEEP_NS, 600)]


def test_what_nobody_told_of_is_met_at_a_look(node: Node, translator: Translator) -> None:
    node.has(601, 600, 2001, "bash")
    node.has(600, 1, 2000, "claude")
    facts = list(translator.sweep(at(30) + SWEEP_NS))
    assert [each.sighting.pid for each in facts if isinstance(each, Found)] == [600, 601]


def test_a_fork_that_is_told_after_its_program_changes_nothing(translator: Translator) -> None:
    assert len(take(translator, ran(20, 600, 1, "ls"), Birth(at(20.01), 1, 600))) == 1


def test_a_fork_with_a_number_of_a_container_is_none(node: Node, translator: Translator) -> None:
    node.has(7, 2, 5, "kworker")
    list(translator.look(at(15)))
    node.has(500, 1, 1900, "runc")
    node.has(8, 2, 6, "kworker")
    assert take(translator, Birth(at(20), 500, 8)) == []


def test_a_fork_is_what_its_parent_is(translator: Translator) -> None:
    facts = take(
        translator, ran(20, 500, 1, "claude"), Birth(at(21), 500, 600), End(at(22), 500), ran(40, 601, 600, "ls")
    )
    assert Forked(at(21), 500, Key(600, 2100)) in facts
    assert counts(parts_of(facts)) == {("500-2000", "agent"): 1}


def test_of_old_records_proc_is_not_asked(node: Node) -> None:
    made = Translator(node, boot_ns=BOOT_NS, tick_ns=10_000_000)
    node.has(600, 1, 1000, "bash", tty=34816)
    [fact] = take(made, ran(20, 600, 1, "bash"), late_s=LIVE_NS / SECOND + 1)
    assert isinstance(fact, Executed) and fact.sighting
    assert (fact.sighting.start, fact.sighting.tty) == (2000, 0)


def test_a_proc_that_hides_others_is_not_asked(node: Node) -> None:
    """An account without rights sees itself alone: that a process is not there says nothing."""
    del node.there[1]
    node.has(77, 1, 100, "gatehouse")
    made = Reader("tetragon", node, boot_ns=BOOT_NS, tick_ns=10_000_000, may_replay=False)
    facts = list(made.idle(at(10)))
    facts += [fact for late_s in (40, 80, 120) for fact in made.idle(at(late_s))]
    assert {type(each) for each in facts} == {Told}


def test_records_of_an_earlier_boot_make_no_sense(translator: Translator) -> None:
    assert take(translator, ran(-5, 600, 1, "ls")) == [] and translator.unknown == 1
