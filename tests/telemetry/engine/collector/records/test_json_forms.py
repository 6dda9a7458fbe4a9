"""Tetragon's and Falco's lines, in the forms that they have in the field."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from telemetry.engine.collector.records import falco, tetragon
from telemetry.engine.collector.records.telling import Birth, End, Loss, Program, Record, Unreadable

EXEC = r"""{"process_exec":{"process":{"exec_id":"bG9naW4xOjEyMzQ1Njc4OTAxMjM6NDEyMzM=","pid":41233,"uid":1000,
"cwd":"/home/ada/proj","binary":"/usr/bin/node","arguments":"/home/ada/proj/setup.mjs \"two words\" x",
"flags":"execve clone","start_time":"2026-09-03T16:21:06.900123456Z","auid":1000,
"parent_exec_id":"bG9naW4xOjEyMzQ1NjcwMDAwMDA6NDEyMzA=","tid":41233,"in_init_tree":false},"parent":{
"exec_id":"bG9naW4xOjEyMzQ1NjcwMDAwMDA6NDEyMzA=","pid":41230,"uid":1000,"cwd":"/home/ada/proj","binary":"/usr/bin/sh",
"arguments":"-c \"node setup.mjs\"","flags":"execve clone","start_time":"2026-09-03T16:21:06.800000000Z","auid":1000,
"parent_exec_id":"bG9naW4xOjEyMzQ1NjY5MDAwMDA6NDEyMDE=","tid":41230}},"node_name":"login1",
"time":"2026-09-03T16:21:06.900200000Z"}""".replace("\n", "")
AT_NS = 1_788_452_466_900_200_000


def changed(**fields: Any) -> bytes:
    told = json.loads(EXEC)
    told["process_exec"]["process"] |= fields
    return json.dumps(told).encode()


def program(records: list[Record]) -> Program:
    found = records[-1]
    assert isinstance(found, Program)
    return found


# --- Tetragon ------------------------------------------------------------------------------------------------
def test_tetragon_tells_of_a_program_and_of_who_started_it() -> None:
    above, found = tetragon.read(EXEC.encode())
    assert found == Program(
        AT_NS, 41233, 41230, 1000, 0, b"/usr/bin/node",
        (b"/usr/bin/node", b"/home/ada/proj/setup.mjs", b"two words", b"x"),
    )  # fmt: skip
    assert isinstance(above, Program) and not above.is_news
    assert (above.pid, above.parent, above.argv) == (41230, 41201, (b"/usr/bin/sh", b"-c", b"node setup.mjs"))
    assert above.start_ns == 1_788_452_466_800_000_000


def test_of_a_script_it_tells_the_script_and_not_its_interpreter() -> None:
    line = changed(binary="/opt/bin/claude", arguments="node /opt/bin/claude -p x")
    assert program(tetragon.read(line)).argv == (b"/opt/bin/claude", b"-p", b"x")


def test_a_second_program_of_one_process_has_itself_as_parent() -> None:
    told = json.loads(EXEC)
    told["process_exec"]["parent"]["pid"] = 41233
    found = tetragon.read(json.dumps(told).encode())
    assert [program(found).again, program(found).parent, len(found)] == [True, 41201, 1]


def test_what_ran_before_tetragon_did_is_no_news() -> None:
    assert not program(tetragon.read(changed(flags="procFS auid rootcwd"))).is_news


@pytest.mark.parametrize(("more", "found"), [({}, [End(AT_NS, 41233)]), ({"tid": 41234}, [])])
def test_tetragon_tells_the_end_of_a_process_and_not_of_a_thread(more: dict[str, int], found: list[Record]) -> None:
    process = json.loads(EXEC)["process_exec"]["process"] | more
    line = {"process_exit": {"process": process, "signal": "SIGKILL", "time": "2026-09-03T16:21:06.900200000Z"}}
    assert tetragon.read(json.dumps(line).encode()) == found


@pytest.mark.parametrize("number", ["10", 10])
def test_what_tetragon_held_back_is_lost(number: str | int) -> None:
    line = {
        "rate_limit_info": {"number_of_dropped_process_events": number},
        "node_name": "n",
        "time": "0001-01-01T00:00:00Z",
    }
    assert tetragon.read(json.dumps(line).encode()) == [Loss(10)]


def test_other_events_of_tetragon_are_passed_over() -> None:
    assert tetragon.read(b'{"process_kprobe":{"process":{"pid":5}},"time":"2026-09-03T16:21:06Z"}') == []


@pytest.mark.parametrize("fields", [{"pid": None}, {"pid": -1}, {"uid": None}, {"pid": 2**40}, {"uid": "x"}])
def test_a_program_without_what_is_needed_cannot_be_read(fields: dict[str, Any]) -> None:
    with pytest.raises(Unreadable):
        tetragon.read(changed(**fields))


# --- Falco ---------------------------------------------------------------------------------------------------
FIELDS = {
    "evt.res": "SUCCESS", "evt.time": 1789647528186051241, "evt.type": "execve", "proc.args": "-ks https://example.org",
    "proc.cmdline": "curl -ks https://example.org", "proc.exe": "curl", "proc.exepath": "/usr/bin/curl",
    "proc.name": "curl", "proc.pid": 220332, "proc.pid.ts": 1789647528149592099, "proc.ppid": 220307,
    "proc.ppid.ts": 1789647480110727812, "proc.tty": 34816, "user.loginuid": -1, "user.uid": 1000,
}  # fmt: skip


def alert(rule: str = "Gatehouse process", **fields: Any) -> bytes:
    told = FIELDS | {name.replace("__", "."): value for name, value in fields.items()}
    line = {"hostname": "login1", "output": "x", "output_fields": told, "priority": "Debug", "rule": rule,
            "source": "syscall", "tags": [], "time": "2026-09-17T12:18:48.186051241Z"}  # fmt: skip
    return json.dumps(line).encode()


def test_falco_tells_of_a_program() -> None:
    assert falco.read(alert()) == [
        Program(1789647528186051241, 220332, 220307, 1000, 34816, b"/usr/bin/curl",
                (b"curl", b"-ks", b"https://example.org"), 1789647528149592099)
    ]  # fmt: skip


def test_a_command_line_stands_in_for_words_that_a_rule_does_not_give() -> None:
    assert program(falco.read(alert(proc__args=None, proc__exe=None))).argv == (b"curl", b"-ks", b"https://example.org")
    assert program(falco.read(alert(proc__exe="<NA>", proc__cmdline="<NA>"))).argv == (b"/usr/bin/curl",)


def test_the_time_stands_beside_the_fields_where_it_is_none_of_them() -> None:
    assert program(falco.read(alert(evt__time=None))).at_ns == 1_789_647_528_186_051_241


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (alert(evt__res="ENOENT"), 0), (alert(evt__res=None), 0),
        (alert("Terminal shell in container"), 0), (alert(evt__type="openat"), 0),
        (alert(evt__type="procexit", thread__tid=220332), 1), (alert(evt__type="procexit", thread__tid=220333), 0),
        (alert(evt__type="clone", thread__tid=220332), 1), (b"{}", 0),
    ],
)  # fmt: skip
def test_what_is_none_of_our_rules_or_no_process_is_passed_over(line: bytes, found: int) -> None:
    assert len(falco.read(line)) == found


def test_falco_tells_forks_and_ends() -> None:
    assert falco.read(alert(evt__type="clone3")) == [Birth(FIELDS["evt.time"], 220307, 220332, FIELDS["proc.pid.ts"])]
    assert falco.read(alert(evt__type="procexit")) == [End(FIELDS["evt.time"], 220332)]


def test_what_falco_dropped_is_lost() -> None:
    line = b"""{"hostname":"host","output":"Falco internal: syscall event drop. 815508 system calls dropped.",
    "output_fields":{"ebpf_enabled":"1","n_drops":"815508","n_drops_bug":"0","n_evts":"2270350"},"priority":"Debug",
    "rule":"Falco internal: syscall event drop","time":"2023-03-03T03:03:03.000000003Z"}""".replace(b"\n", b"")
    assert falco.read(line) == [Loss(815508)]


@pytest.mark.parametrize("fields", [{"proc__pid": None}, {"user__uid": "<NA>"}, {"proc__pid": 0}, {"proc__tty": "x"}])
def test_a_rule_that_leaves_out_what_is_needed_cannot_be_read(fields: dict[str, Any]) -> None:
    with pytest.raises(Unreadable):
        falco.read(alert(**fields))


def test_the_sample_of_a_rule_has_what_is_read() -> None:
    sample = (Path(__file__).parents[5] / "deploy/sensors/gatehouse-falco.yaml").read_text()
    given = set(re.findall(r"%([a-z.]+)", sample))
    assert {"evt.type", "evt.res", "proc.pid", "proc.ppid", "proc.pid.ts", "thread.tid", "proc.tty", "user.uid",
            "proc.exepath", "proc.exe", "proc.args"} <= given  # fmt: skip
    assert re.findall("rule: (.*)", sample)[0].lower().startswith(falco.RULES)
