"""Tetragon's events as it exports them: JSON lines of `process_exec` and `process_exit` (tetragon.io, `events.proto`).

`arguments` is one text without the first word; words with blanks stand in quotation marks, which are not escaped. What
names the parent names one that forked and ran nothing, too. An id of an execution is Base64 of `node:nanoseconds:pid`.
"""

import re
from base64 import b64decode
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from telemetry.engine.collector.records.telling import (
    LARGEST_PID,
    End,
    Loss,
    Program,
    Record,
    Unreadable,
    bounded,
    load,
    number,
    pid_of,
    table,
    text,
    time_of,
    uid_of,
)

_WORDS: Final = re.compile(rb'"([^"]*)"(?= |\Z)|(\S+)')
_SCRIPT_WITHIN: Final = 3  # of the words that an interpreter's program is told with


def read(line: bytes) -> list[Record]:
    """Return what a line tells; nothing where it tells of something else. Errors: `Unreadable`."""
    told = load(line)
    if "process_exec" in told:
        return _started(table(told["process_exec"]), told)
    if "process_exit" in told:
        return _ended(table(told["process_exit"]), told)
    if "rate_limit_info" in told:
        return [Loss(number(table(told["rate_limit_info"]).get("number_of_dropped_process_events")))]
    return []


def _started(event: dict[str, Any], told: dict[str, Any]) -> list[Record]:
    process, above = table(event.get("process")), event.get("parent")
    above = above if isinstance(above, dict) and above.get("pid") else {}
    pid, flags = pid_of(process.get("pid")), str(process.get("flags", "")).split()
    at_ns = time_of(told.get("time") or process.get("start_time"))
    again = above.get("pid") == pid  # it ran another program before, and did not fork
    above_it = _pid_in(above.get("parent_exec_id"))
    parent = above_it if again else above.get("pid") or _pid_in(process.get("parent_exec_id"))
    found = list[Record]()
    if above and not again:
        with suppress(Unreadable):
            found.append(_program(above, at_ns, above_it, is_news=False))
    program = _program(process, at_ns, number(parent, most=LARGEST_PID), again=again, is_news="procFS" not in flags)
    return [*found, program]


def _program(process: dict[str, Any], at_ns: int, parent: int, *, again: bool = False, is_news: bool) -> Program:
    binary = text(process.get("binary"))
    argv = bounded(_argv(binary, text(process.get("arguments"))))
    pid, uid = pid_of(process.get("pid")), uid_of(process.get("uid"))
    # When the program began is when the process did, as far as it is told, or later.
    start_ns = 0 if is_news else time_of(process.get("start_time"))
    return Program(at_ns, pid, parent, uid, 0, binary, argv, start_ns, again, is_news)


def _argv(binary: bytes, arguments: bytes) -> Sequence[bytes]:
    words = [quoted or plain for quoted, plain in _WORDS.findall(arguments)]
    # Of a script the interpreter is not told, but that it was given the script.
    if binary in words[:_SCRIPT_WITHIN]:
        words = words[words.index(binary) + 1 :]
    return (binary, *words) if binary else ()


def _ended(event: dict[str, Any], told: dict[str, Any]) -> list[Record]:
    process = table(event.get("process"))
    pid, thread = pid_of(process.get("pid")), process.get("tid")
    at_ns = time_of(event.get("time") or told.get("time"))
    return [End(at_ns, pid)] if thread in (None, pid) else []


def _pid_in(execution: object) -> int:
    """Return the process that an id of an execution names; 0 where it does not say."""
    try:
        return number(b64decode(text(execution)).rpartition(b":")[2].decode(), most=LARGEST_PID)
    except (ValueError, Unreadable):
        return 0
