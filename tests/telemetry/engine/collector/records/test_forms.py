"""The same work comes to the same counts, whichever sensor wrote it down, and however its lines come."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telemetry.engine.activity import MEASURES
from telemetry.engine.collector.batches import Sender, make
from telemetry.engine.collector.facts import Executed, Exited, Forked, Key, Told
from telemetry.engine.collector.records.reader import Fact
from telemetry.engine.collector.watch import Parts
from tests.telemetry.engine.collector.node import counts
from tests.telemetry.engine.collector.records.sensors import (
    BEGAN_NS,
    FORMS,
    LATER_NS,
    Trace,
    facts_of,
    parts_of,
    reader,
    work,
)
from tests.telemetry.engine.collector.test_batches import KEYS, SESSION, TIME, VALUES, WORDS, texts

EACH = pytest.mark.parametrize("form", FORMS)


def told_of(facts: list[Fact]) -> Told:
    told = facts[-1]
    assert isinstance(told, Told)
    return told


@EACH
def test_what_an_agent_did_is_counted_once_under_its_session(form: str) -> None:
    facts = facts_of(form, FORMS[form](work()))
    parts = parts_of(facts)
    [session] = parts.sessions
    assert (session.kind, session.harness, session.uid, session.root.pid) == ("agent", "claude-code", 1000, 4001)
    assert session.end_s is not None and session.end_s - session.start_s == pytest.approx(64, abs=5)
    name = f"{session.root.pid}-{session.root.start}"
    assert counts(parts) == {(name, "agent"): 10, ("", "unknown"): 1}
    assert counts(parts, "submission")[name, "agent"] == 2 and counts(parts, "scheduler_query")[name, "agent"] == 3
    minutes = {each.minute_s: each.counts["commands"] for each in parts.minutes if each.session}
    assert list(minutes.values()) == [9, 1], "two minutes"
    assert [each.queries for each in parts.polling] == [3] and len(parts.loops) == len(parts.submissions) - 1 == 1
    told = told_of(facts)
    assert (told.mode, told.lost, told.execs) == ("records", 0, 13)


def test_all_forms_come_to_the_same() -> None:
    def essence(parts: Parts) -> object:
        names = {f"{each.root.pid}-{each.root.start}": each.root.pid for each in parts.sessions}
        minutes = [(names.get(each.session), each.driver, each.minute_s, each.counts) for each in parts.minutes]
        return [(each.harness, each.uid, each.root.pid) for each in parts.sessions], sorted(minutes, key=str)

    first, *others = [essence(parts_of(facts_of(form, FORMS[form](work())))) for form in FORMS]
    assert others == [first, first]


@pytest.mark.parametrize(("form", "driver"), [("auditd", "human"), ("falco", "human"), ("tetragon", "unknown")])
def test_who_sits_at_a_terminal_is_told_by_all_but_tetragon(form: str, driver: str) -> None:
    trace = Trace()
    shell = trace.run(1, "/bin/bash", tty=34816)
    trace.run(shell, "/bin/ls", tty=34816)
    assert counts(parts_of(facts_of(form, FORMS[form](trace))))["", driver] >= 1


def test_auditd_that_records_programs_alone_is_enough_while_parents_run_programs() -> None:
    parts = parts_of(facts_of("auditd", FORMS["auditd"](work(), only_programs=True)))  # type: ignore[call-arg]
    [session] = parts.sessions
    name = f"{session.root.pid}-{session.root.start}"
    # What a shell without a program of its own started has a parent of whom nobody told.
    assert counts(parts) == {(name, "agent"): 7, ("", "unknown"): 4}
    assert session.end_s is None, "nobody told of its end"


@EACH
@given(st.lists(st.integers(1, 3000), max_size=40))
@settings(max_examples=30)
def test_where_lines_are_cut_does_not_matter(form: str, sizes: list[int]) -> None:
    lines = FORMS[form](work())
    plain = [fact for fact in facts_of(form, lines) if not isinstance(fact, Told)]
    assert [fact for fact in facts_of(form, lines, sizes=sizes) if not isinstance(fact, Told)] == plain


@EACH
def test_a_number_given_out_anew_is_another_process(form: str) -> None:
    trace = Trace()
    claude = trace.run(1, "/usr/local/bin/claude")
    trace.exit(claude)
    trace.now_ms += 5000
    trace.fork(1, claude)
    trace.execute(claude, 1, "/usr/sbin/crond")
    trace.run(claude, "/bin/ls")
    parts = parts_of(facts_of(form, FORMS[form](trace)))
    assert [each.end_s is not None for each in parts.sessions] == [True]
    assert counts(parts) == {("", "unknown"): 2}


@EACH
def test_a_process_that_runs_another_program_stays_itself(form: str) -> None:
    trace = Trace()
    claude = trace.run(1, "/usr/local/bin/claude")
    pid = trace.run(claude, "/usr/bin/env", "make")
    trace.execute(pid, claude, "/usr/bin/make")
    keys = {fact.sighting.start for fact in facts_of(form, FORMS[form](trace)) if isinstance(fact, Executed)
            and fact.sighting and fact.sighting.pid == pid}  # fmt: skip
    assert len(keys) == 1


@EACH
def test_who_loses_its_parent_keeps_its_label(form: str) -> None:
    trace = Trace()
    claude = trace.run(1, "/usr/local/bin/claude")
    shell = trace.run(claude, "/bin/bash", "-c", "nohup")
    left = trace.run(shell, "/usr/bin/nohup", "make")
    trace.exit(shell)
    trace.exit(claude)
    trace.now_ms += 30_000
    trace.execute(left, 1, "/usr/bin/make")
    trace.run(left, "/usr/bin/gcc")
    parts = parts_of(facts_of(form, FORMS[form](trace)))
    [session] = parts.sessions
    assert counts(parts) == {(f"{claude}-{session.root.start}", "agent"): 2}


# --- nothing breaks it, and nothing gets out -----------------------------------------------------------------
@EACH
def test_lines_that_cannot_be_read_are_counted_and_harm_no_other(form: str) -> None:
    good = FORMS[form](work())
    bad = [b"\xff\xfe", b"{", b"[" * 100_000, b"type=SYSCALL", b'{"process_exec":{"process":{}}}', b"null",
           b'{"rule":"Gatehouse process","output_fields":{}}', b"x" * 2_000_000]  # fmt: skip
    lines = good[:1] + [line for each in good[1:] for line in (each, *bad[:2])] + bad
    facts = facts_of(form, lines)
    assert counts(parts_of(facts)) == counts(parts_of(facts_of(form, good)))
    ignored = {"auditd": 0, "tetragon": 1, "falco": 1}[form]  # of other kinds, which are none of ours
    assert told_of(facts).lost == 2 * (len(good) - 1) + len(bad) - ignored


@EACH
def test_a_line_without_end_takes_no_room(form: str) -> None:
    made, good = reader(form), b"\n".join(FORMS[form](work())) + b"\n"
    for _ in range(160):
        list(made.feed(b"x" * 65_536, LATER_NS))
        assert len(made._lines._rest) <= 1 << 20
    facts = [*made.feed(b"\n" + good, LATER_NS), *made.finish(LATER_NS)]
    assert told_of(facts).lost == 1 and len(parts_of(facts).sessions) == 1


@EACH
def test_nothing_that_was_typed_leaves(form: str) -> None:
    sender = Sender("apollo", "login1", "b", "r", "0.1.0")
    parts = parts_of(facts_of(form, FORMS[form](work())))
    [batch] = make(parts, sender=sender, mode="records", login=lambda _: "ada", new_id=lambda: "id")
    assert b"n33dle" in b"".join(FORMS[form](work()))
    assert b"n33dle" not in batch.body and b"/usr" not in batch.body and b"bash" not in batch.body
    assert json.loads(batch.body)["mode"] == "records"


@given(st.sampled_from(list(FORMS)), st.lists(st.tuples(st.integers(0, 9), st.lists(WORDS, min_size=1, max_size=4))))
def test_whatever_was_typed_nothing_of_it_leaves(form: str, starts: list[tuple[int, list[str | bytes]]]) -> None:
    trace, pids = Trace(), [1]
    for pick, words in starts:
        argv = [word.decode(errors="replace") if isinstance(word, bytes) else word for word in words]
        plain = [word.encode(errors="replace").decode() for word in argv]
        pids.append(trace.run(pids[pick % len(pids)], *plain))
    sender = Sender("apollo", "login1", "b" * 36, "r" * 36, "0.1.0")
    parts = parts_of(facts_of(form, FORMS[form](trace)))
    [batch] = make(parts, sender=sender, mode="records", login=lambda uid: f"user{uid}", new_id=lambda: "batch-1")
    for text in texts(json.loads(batch.body)):
        known = text in KEYS | VALUES | set(MEASURES) | {"records"}
        assert known or TIME.fullmatch(text) or SESSION.fullmatch(text)


@given(st.sampled_from(list(FORMS)), st.lists(st.binary(max_size=80), max_size=20))
def test_any_bytes_do(form: str, lines: list[bytes]) -> None:
    facts_of(form, lines)


def test_records_of_the_future_make_no_sense() -> None:
    facts = facts_of("auditd", [line.replace(b"audit(17", b"audit(97") for line in FORMS["auditd"](work())])
    assert not [fact for fact in facts if isinstance(fact, Executed | Forked | Exited)]
    assert told_of(facts).lost > 0


def test_a_start_is_that_of_the_fork_where_it_is_told() -> None:
    forked = [fact for fact in facts_of("auditd", FORMS["auditd"](work())) if isinstance(fact, Forked)]
    assert forked[0] == Forked(BEGAN_NS + 100_000_000, 1, Key(4001, (BEGAN_NS + 100_000_000) // 10_000_000))
