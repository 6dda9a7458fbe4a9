"""Slurm's own command on this node: found behind ourselves in PATH, and run in our place."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

MARK: Final = "GATEHOUSE_PASSED_ON"  # in the environment of what we run: were it ourselves again, it would not go round
_HEAD_BYTES: Final = 400
NOT_FOUND: Final = 127  # what a shell says of a command that is not there


def find_real(program: str, environment: Mapping[str, str]) -> str | None:
    """Return the path of Slurm's own command: the first of its name in PATH that does not call us."""
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        path = Path(folder or ".", program)
        if os.access(path, os.X_OK) and not path.is_dir() and not is_ours(path, program):
            return str(path)
    return None


def is_ours(path: Path, program: str) -> bool:
    """Say whether a file is a script that calls `gatehouse PROGRAM`."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:  # it may be run and not read
        return False
    return head.startswith(b"#!") and f"gatehouse {program}".encode() in head


def run_real(program: str, arguments: Sequence[str]) -> NoReturn:
    """Become Slurm's own command; exit with 127 where this node has none."""
    path = None if MARK in os.environ else find_real(program, os.environ)
    if path is None:
        print(f"gatehouse: this node has no other {program} in PATH.", file=sys.stderr)
        sys.exit(NOT_FOUND)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(path, [program, *arguments], {**os.environ, MARK: program})  # noqa: S606 - no shell, and that is meant
