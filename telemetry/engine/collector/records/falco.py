"""Falco's alerts of the site's rules for us, as JSON lines (`json_output`): docs/operators.md has the rules.

Rules of other names are passed over: they tell of the same program once more. The words of a command line come as one
text, parted by blanks; a word with blanks in it cannot be told from several.
"""

from typing import Any, Final

from telemetry.engine.collector.records.telling import (
    Birth,
    End,
    Loss,
    Program,
    Record,
    bounded,
    load,
    number,
    pid_of,
    table,
    text,
    time_of,
    uid_of,
)

RULES: Final = "gatehouse"  # what the names of our rules begin with
DROPS: Final = "falco internal: syscall event drop"
_STARTS: Final = frozenset({"execve", "execveat"})
_FORKS: Final = frozenset({"clone", "clone3", "fork", "vfork"})
_DONE: Final = ("SUCCESS", 0, "0")
_NOTHING: Final = (None, "", "<NA>")


def read(line: bytes) -> list[Record]:
    """Return what a line tells; nothing where it is none of ours. Errors: `Unreadable`."""
    told = load(line)
    rule, fields = str(told.get("rule", "")).lower(), told.get("output_fields")
    if rule == DROPS:
        return [Loss(number(table(fields).get("n_drops")))]
    if not rule.startswith(RULES):
        return []
    fields = table(fields)
    kind, at_ns, pid = fields.get("evt.type"), _time(fields, told), pid_of(fields.get("proc.pid"))
    if kind in _STARTS:
        # What only begins has no result yet, and is told again.
        return [_program(fields, at_ns, pid)] if fields.get("evt.res", 0) in _DONE else []
    if fields.get("thread.tid") not in (*_NOTHING, pid):
        return []  # a thread's
    if kind in _FORKS:
        return [Birth(at_ns, _parent(fields), pid, _start(fields))]
    return [End(at_ns, pid)] if kind == "procexit" else []


def _time(fields: dict[str, Any], told: dict[str, Any]) -> int:
    at = fields.get("evt.rawtime") or fields.get("evt.time")
    return at if isinstance(at, int) and at > 0 else time_of(told.get("time"))


def _program(fields: dict[str, Any], at_ns: int, pid: int) -> Program:
    tty = fields.get("proc.tty")
    return Program(
        at_ns, pid, _parent(fields), uid_of(fields.get("user.uid")),
        0 if tty in _NOTHING else number(tty), _field(fields, "proc.exepath"), bounded(_argv(fields)), _start(fields),
    )  # fmt: skip


def _argv(fields: dict[str, Any]) -> list[bytes]:
    first = _field(fields, "proc.exe")
    if first and "proc.args" in fields:
        return [first, *_field(fields, "proc.args").split()]
    name, *rest = _field(fields, "proc.cmdline").split() or [_field(fields, "proc.exepath")]
    return [word for word in (first or name, *rest) if word]


def _field(fields: dict[str, Any], name: str) -> bytes:
    told = fields.get(name)
    return b"" if told in _NOTHING else text(told)


def _parent(fields: dict[str, Any]) -> int:
    told = fields.get("proc.ppid")
    return 0 if told in _NOTHING else number(told, most=2**31 - 1)


def _start(fields: dict[str, Any]) -> int:
    told = fields.get("proc.pid.ts")
    return told if isinstance(told, int) and told > 0 else 0
