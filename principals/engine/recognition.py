"""Which harness a process is, from what it runs.

Names are compared whole, never as a part of a command line: an editor with `codex.md` open is no harness.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Final

from principals.engine.interpreters import script_of

_INTERPRETERS: Final = ("node", "nodejs", "bun", "deno", "python", "python3")
_ENDINGS: Final = (".js", ".mjs", ".cjs", ".py")


@dataclass(frozen=True, slots=True)
class Signature:
    """How the processes of one harness are recognised."""

    slug: str
    executables: frozenset[str]
    packages: tuple[str, ...]
    folders: tuple[str, ...]
    passing: frozenset[str]
    markers: frozenset[str]

    def is_named(self, program: PurePosixPath, parts: Sequence[str]) -> bool:
        """Say whether a program or script is ours by its name or by a part of its path."""
        path = f"{program.parent}/"
        return _stem(program.name) in self.executables or any(f"/{part}/" in path for part in parts)


@cache
def signatures() -> tuple[Signature, ...]:
    """Read the signatures of the harnesses we know."""
    text = files("principals.engine").joinpath("harnesses.toml").read_text(encoding="utf-8")
    return read_signatures(tomllib.loads(text)["recognise"])


def read_signatures(tables: Mapping[str, Mapping[str, str]]) -> tuple[Signature, ...]:
    """Make signatures of tables as they stand in `harnesses.toml`; words that are missing are none."""

    def words(table: Mapping[str, str], name: str) -> list[str]:
        return str(table.get(name, "")).split()

    return tuple(
        Signature(
            slug,
            frozenset(words(table, "executables")),
            tuple(words(table, "packages")),
            tuple(words(table, "folders")),
            frozenset(words(table, "passing")),
            frozenset(words(table, "markers")),
        )
        for slug, table in tables.items()
    )


def recognise(argv: Sequence[str], exe: str = "", *, among: Sequence[Signature] | None = None) -> str:
    """Return the slug of the harness that a command line starts to work with, "" for any other.

    `exe` is the program that the kernel runs, where known. A command that only sets a harness up or asks for its
    version starts none.
    """
    if not argv:
        return ""
    program, rest = PurePosixPath(argv[0]), argv[1:]
    script = _script_of(program, rest)
    for each in signatures() if among is None else among:
        if each.is_named(program, each.folders) or (exe and each.is_named(PurePosixPath(exe), each.folders)):
            return "" if each.passing & set(rest[:1]) else each.slug
        if script and each.is_named(PurePosixPath(script[0]), each.packages):
            return "" if each.passing & set(script[1:2]) else each.slug
    return ""


def _script_of(program: PurePosixPath, rest: Sequence[str]) -> Sequence[str]:
    """Return the script that an interpreter runs, with the words behind it; empty where there is none."""
    return script_of(rest) if _stem(program.name.rstrip("0123456789.")) in _INTERPRETERS else ()


def _stem(name: str) -> str:
    return next((name.removesuffix(end) for end in _ENDINGS if name.endswith(end)), name)
