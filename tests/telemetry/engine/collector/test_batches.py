"""A batch is what the portal takes, and no word that anybody typed is in it."""

import json
import re
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine.activity import MEASURES
from telemetry.engine.collector import batches
from telemetry.engine.collector.batches import Batch, Sender, make
from tests.telemetry.engine.collector.node import TTY, Node

SENDER = Sender("apollo", "login1", "b" * 36, "r" * 36, "0.1.0")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
SESSION = re.compile(r"\d+-\d+")


def made(node: Node, sender: Sender = SENDER) -> list[Batch]:
    numbers = count(1)
    return list(
        make(
            node.close(), sender=sender, mode="events", login=lambda uid: f"user{uid}",
            new_id=lambda: f"batch-{next(numbers)}",
        )
    )  # fmt: skip


def busy(*, study: bool = False) -> Node:
    node = Node(study=study)
    claude = node.run(1, "claude")
    shell = node.run(claude, "bash", "-c", "secret-text")
    for argv in (("sbatch", "secret.sh"), ("tail", "secret"), ("sbatch", "secret.sh"), *[("squeue", "-j", "7")] * 3):
        node.now_s += 2
        node.run(shell, *argv)
    person = node.run(1, "-bash", tty=TTY)
    node.run(person, "cat", "secret", tty=TTY)
    node.say(events=50, execs=9)
    return node


def test_a_batch_has_the_form_that_the_portal_takes() -> None:
    [batch] = made(busy())
    told = json.loads(batch.body)
    assert (told["cluster"], told["host"], told["batch"], told["mode"], told["study"]) == (
        "apollo", "login1", "batch-1", "events", "",
    )  # fmt: skip
    assert (told["from"], told["to"]) == ("2027-01-15T08:01:40Z", "2027-01-15T08:01:53Z")
    [session] = told["sessions"]
    assert (session["kind"], session["harness"], session["user"], session["end"]) == (
        "agent", "claude-code", "user1000", None,
    )  # fmt: skip
    assert {(each["session"], each["driver"]) for each in told["minutes"]} == {(session["id"], "agent"), ("", "human")}
    assert [each["session"] for each in told["submissions"]] == [session["id"]] * 2
    assert [(each["queries"], each["period_s"]) for each in told["polling"]] == [(3, 2.01)]
    assert [set(each) for each in told["loops"]] == [{"session", "submitted", "again"}]
    assert told["health"] == {
        "events": 50, "lost": 0, "argv_missed": 0, "vanished": 0, "sampled_share": 1.0, "cpu_s": 0.0,
        "memory_bytes": 0, "processes": 10, "clock_ahead_s": 0,
    }  # fmt: skip


def test_a_study_is_named_and_its_people_are_sessions() -> None:
    [batch] = made(busy(study=True), Sender("apollo", "login1", "b", "r", "0", study="baseline"))
    told = json.loads(batch.body)
    assert told["study"] == "baseline"
    assert sorted(each["kind"] for each in told["sessions"]) == ["agent", "interactive"]


def test_what_is_too_long_for_one_body_makes_several_and_health_is_told_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = json.loads(made(busy())[0].body)
    monkeypatch.setattr(batches, "MOST_BYTES", 1424)
    found = made(busy())
    assert len(found) > 1 and all(len(each.body) <= 1424 for each in found)
    parts = [json.loads(each.body) for each in found]
    assert len({each["batch"] for each in parts}) == len(parts)
    for name in ("sessions", "minutes", "submissions", "polling", "loops"):
        assert [row for each in parts for row in each[name]] == whole[name]
    assert [each["health"]["events"] for each in parts] == [50] + [0] * (len(parts) - 1)


def texts(told: object) -> Iterator[str]:
    if isinstance(told, dict):
        for key, value in told.items():
            yield str(key)
            yield from texts(value)
    elif isinstance(told, list):
        for each in told:
            yield from texts(each)
    elif isinstance(told, str):
        yield told


WORDS = st.one_of(
    st.text(max_size=20), st.binary(max_size=20),
    st.sampled_from(["claude", "bash", "-c", "squeue", "sbatch", "rm", "-rf", "/", "python3", "env", "-bash", "curl"]),
)  # fmt: skip
STARTS = st.lists(
    st.tuples(st.integers(0, 9), st.lists(WORDS, max_size=5), st.sampled_from([0, TTY]), st.booleans()), max_size=25
)
KEYS = {
    "cluster", "host", "boot", "run", "batch", "collector", "mode", "study", "from", "to", "sessions", "minutes",
    "submissions", "polling", "loops", "health", "id", "kind", "harness", "user", "start", "last", "end", "session",
    "driver", "minute", "counts", "at", "first", "queries", "period_s", "submitted", "again", "events", "lost",
    "argv_missed", "vanished", "sampled_share", "cpu_s", "memory_bytes", "processes", "clock_ahead_s",
}  # fmt: skip
VALUES = {
    "apollo", "login1", "b" * 36, "r" * 36, "0.1.0", "batch-1", "events", "", "agent", "interactive", "human",
    "unknown", "user1000", "claude-code",
}  # fmt: skip


@given(STARTS, st.booleans())
def test_nothing_that_was_typed_leaves(starts: list[tuple[int, list[str | bytes], int, bool]], study: bool) -> None:
    node, pids = Node(study=study), [1]
    for pick, argv, tty, ended in starts:
        node.now_s += 1
        pids.append(node.run(pids[pick % len(pids)], *argv, tty=tty, ended=ended))
    [batch] = made(node)
    for text in texts(json.loads(batch.body)):
        assert text in KEYS | VALUES | set(MEASURES) or TIME.fullmatch(text) or SESSION.fullmatch(text)
