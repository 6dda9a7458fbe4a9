"""One trace of processes, as each sensor would write it down; and what a reader makes of what they wrote."""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from telemetry.engine.collector.facts import Found
from telemetry.engine.collector.proc import Proc
from telemetry.engine.collector.records.reader import Fact, Reader
from telemetry.engine.collector.watch import Parts, Watch

BEGAN_NS = 1_790_000_000 * 10**9 + 20 * 10**9  # 40 seconds before a minute is over
LATER_NS = BEGAN_NS + 10**15  # when nothing of it is in `/proc` any more
TICK_NS = 10_000_000
NOWHERE = Path("/nonexistent")


class Step(NamedTuple):
    """`fork`, `exec` or `exit` of a process, so many milliseconds after the trace began."""

    at_ms: int
    what: str
    pid: int
    parent: int = 0
    argv: Sequence[str] = ()
    tty: int = 0

    @property
    def at_ns(self) -> int:
        return BEGAN_NS + self.at_ms * 1_000_000


class Trace:
    """Processes that start one another, a tenth of a second apart."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.now_ms, self.next_pid = 0, 4000
        self.images: dict[int, Step] = {}

    def _step(self, what: str, pid: int, parent: int, argv: Sequence[str] = (), tty: int = 0) -> int:
        self.now_ms += 100
        self.steps.append(Step(self.now_ms, what, pid, parent, argv, tty))
        return pid

    def fork(self, parent: int, pid: int = 0) -> int:
        self.next_pid += 1
        return self._step("fork", pid or self.next_pid, parent)

    def execute(self, pid: int, parent: int, *argv: str, tty: int = 0) -> int:
        return self._step("exec", pid, parent, argv, tty)

    def run(self, parent: int, *argv: str, tty: int = 0) -> int:
        return self.execute(self.fork(parent), parent, *argv, tty=tty)

    def exit(self, pid: int) -> None:
        self._step("exit", pid, 0)


def work() -> Trace:
    """An agent that searches, submits, looks and submits again; what it left goes on; a service; the agent ends."""
    trace = Trace()
    claude = trace.run(1, "/usr/local/bin/claude", "-p", "n33dle")
    shell = trace.run(claude, "/bin/bash", "-c", "n33dle")
    for argv in (("/usr/bin/grep", "-r", "n33dle", "."), ("/usr/bin/sbatch", "n33dle.sh"), ("/usr/bin/tail", "n33dle"),
                 ("/usr/bin/sbatch", "n33dle.sh"), ("/usr/bin/squeue", "-j", "7"), ("/usr/bin/squeue", "-j", "7"),
                 ("/usr/bin/squeue", "-j", "7")):  # fmt: skip
        trace.exit(trace.run(shell, *argv))
    within = trace.fork(shell)  # a shell that runs no program itself
    trace.exit(trace.run(within, "/usr/bin/head", "n33dle"))
    left = trace.run(within, "/usr/bin/make", "n33dle")
    trace.exit(within)
    trace.exit(shell)
    trace.now_ms += 60_000
    trace.run(1, "/usr/sbin/crond", "n33dle")
    trace.run(left, "/usr/bin/gcc", "n33dle.c")
    trace.exit(claude)
    return trace


# --- the three forms -----------------------------------------------------------------------------------------
def auditd(trace: Trace, *, only_programs: bool = False, enriched: bool = True) -> list[bytes]:
    """Records as an audisp plugin gets them, of x86_64."""
    lines, serial = list[bytes](), 700
    steps = [step for step in trace.steps if step.what == "exec" or not only_programs]
    for serial, step in enumerate(steps, 700):
        stamp = f"msg=audit({step.at_ns // 10**9}.{step.at_ns // 10**6 % 1000:03}:{serial})"
        call, success, pid = {
            "exec": (59, "success=yes exit=0 ", step.pid), "exit": (231, "", step.pid),
            "fork": (56, f"success=yes exit={step.pid} ", step.parent),
        }[step.what]  # fmt: skip
        name = {59: "execve", 231: "exit_group", 56: "clone"}[call]
        exe = step.argv[0] if step.argv else "/bin/x"
        head = (
            f"type=SYSCALL {stamp}: arch=c000003e syscall={call} {success}a0=1200011 a1=5581 a2=55 a3=8 items=2 "
            f"ppid={step.parent} pid={pid} auid=1000 uid=1000 gid=1000 tty={'pts0' if step.tty else '(none)'} ses=3 "
            f'comm="{exe.rpartition("/")[2][:15]}" exe="{exe}" key="gatehouse"'
        )
        lines.append((head + (f'\x1dARCH=x86_64 SYSCALL={name} AUID="ada" UID="ada"' if enriched else "")).encode())
        if step.what == "exec":
            words = " ".join(f"a{place}={_written(word)}" for place, word in enumerate(step.argv))
            lines.append(f"type=EXECVE {stamp}: argc={len(step.argv)} {words}".encode())
            lines.append(f'type=CWD {stamp}: cwd="/home/ada"'.encode())
            lines.append(f'type=PATH {stamp}: item=0 name="{exe}" inode=1 nametype=NORMAL\x1dOUID="root"'.encode())
        lines.append(f"type=PROCTITLE {stamp}: proctitle={exe.encode().hex().upper()}".encode())
        lines.append(f"type=EOE {stamp}: ".encode())
    return lines


def _written(word: str) -> str:
    is_plain = word.isprintable() and not set(word) & set(' "') and word.isascii()
    return f'"{word}"' if is_plain and word else word.encode().hex().upper()


def tetragon(trace: Trace) -> list[bytes]:
    """Events as `tetra getevents -o json` writes them; forks are told by who the parent is."""
    lines, known, ran = list[bytes](), dict[int, dict[str, object]](), set[int]()
    for step in trace.steps:
        when = _rfc3339(step.at_ns)
        above = known.get(step.parent, {"pid": step.parent, "uid": 0, "binary": "/sbin/init", "start_time": when})
        if step.what == "fork":
            ran.discard(step.pid)
            above_id = above.get("exec_id", "")
            known[step.pid] = above | {
                "pid": step.pid,
                "parent_exec_id": above_id,
                "exec_id": _id(step),
                "start_time": when,
            }
            continue
        if step.what == "exit":
            told = {"process_exit": {"process": known.pop(step.pid), "time": when}}
        else:
            above = known[step.pid] if step.pid in ran else above  # who runs a second program is its own parent
            ran.add(step.pid)
            known[step.pid] = {
                "exec_id": _id(step), "pid": step.pid, "uid": 1000, "cwd": "/home/ada", "binary": step.argv[0],
                "arguments": " ".join(f'"{word}"' if " " in word else word for word in step.argv[1:]),
                "flags": "execve clone", "start_time": when, "auid": 1000, "tid": step.pid,
                "parent_exec_id": above.get("exec_id", ""),
            }  # fmt: skip
            told = {"process_exec": {"process": known[step.pid], "parent": above}}
        lines.append(json.dumps(told | {"node_name": "login1", "time": when}, separators=(",", ":")).encode())
    return lines


def _id(step: Step) -> str:
    return b64encode(f"login1:{step.at_ms}000000:{step.pid}".encode()).decode()


def falco(trace: Trace) -> list[bytes]:
    """Alerts of the rule in deploy/sensors, as `json_output` writes them."""
    lines, began = list[bytes](), dict[int, int]()
    for step in trace.steps:
        kind = {"exec": "execve", "exit": "procexit", "fork": "clone"}[step.what]
        began.setdefault(step.pid, step.at_ns)
        fields: dict[str, object] = {
            "evt.time": step.at_ns, "evt.type": kind, "proc.pid": step.pid, "proc.ppid": step.parent or None,
            "proc.pid.ts": began[step.pid], "proc.tty": step.tty, "user.uid": 1000, "thread.tid": step.pid,
        }  # fmt: skip
        if step.argv:
            fields |= {
                "evt.res": "SUCCESS", "proc.exepath": step.argv[0], "proc.exe": step.argv[0],
                "proc.args": " ".join(step.argv[1:]), "proc.cmdline": " ".join(step.argv),
            }  # fmt: skip
        told = {
            "hostname": "login1", "output": "n33dle", "output_fields": fields, "priority": "Debug",
            "rule": "Gatehouse process", "source": "syscall", "tags": [], "time": _rfc3339(step.at_ns),
        }  # fmt: skip
        lines.append(json.dumps(told).encode())
        if step.what == "exit":
            began.pop(step.pid, None)
    return lines


def _rfc3339(at_ns: int) -> str:
    return f"{datetime.fromtimestamp(at_ns // 10**9, UTC):%Y-%m-%dT%H:%M:%S}.{at_ns % 10**9:09}Z"


FORMS = {"auditd": auditd, "tetragon": tetragon, "falco": falco}


# --- reading -------------------------------------------------------------------------------------------------
def reader(form: str) -> Reader:
    """A reader of old records."""
    return Reader(form, Proc(NOWHERE), boot_ns=0, tick_ns=TICK_NS, may_replay=True)


def facts_of(form: str, lines: Iterable[bytes], *, sizes: Sequence[int] = ()) -> list[Fact]:
    """What lines come to; `sizes` cuts them into pieces."""
    made = reader(form)
    facts = [fact for piece in _pieces(b"\n".join(lines) + b"\n", sizes) for fact in made.feed(piece, LATER_NS)]
    return [*facts, *made.finish(LATER_NS)]


def _pieces(data: bytes, sizes: Sequence[int]) -> Iterator[bytes]:
    at = 0
    for size in sizes:
        yield data[at : at + size]
        at += size
    yield data[at:]


def parts_of(facts: Iterable[Fact | Found]) -> Parts:
    """What facts of a trace come to in the end."""
    watch = Watch(began_s=BEGAN_NS / 1e9, boot_s=0, ticks_s=100, key=b"node", apart_s=30)
    for fact in facts:
        watch.take(fact)
    return watch.close(BEGAN_NS / 1e9 + 1_000, float("inf"))
