"""Which harness a process is, from what it runs.

Names are compared whole, never as a part of a command line: an editor with `codex.md` open is no harness.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from principals.engine.interpreters import script_of

_INTERPRETERS: Final = ("node", "nodejs", "bun", "deno", "python", "python3")
_BEGINNINGS: Final = ("node", "bun", "deno", "python")  # of their names, with a version behind
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


def markers_of(known: Sequence[Signature]) -> tuple[tuple[str, str], ...]:
    """Return the variables that tell of a harness, each with its slug; the first signature that has one counts."""
    found: dict[str, str] = {}
    for each in known:
        for name in sorted(each.markers):
            found.setdefault(name, each.slug)
    return tuple(found.items())


class Recogniser:
    """Recognise the harnesses of some signatures; the first that fits counts. Make it once, use it often."""

    def __init__(self, known: Sequence[Signature]) -> None:
        self._known = tuple(known)
        self._executables: dict[str, int] = {}
        for place, each in enumerate(self._known):
            for name in each.executables:
                self._executables.setdefault(name, place)
        self._folders = [(f"/{part}/", place) for place, each in enumerate(self._known) for part in each.folders]
        self._packages = [(f"/{part}/", place) for place, each in enumerate(self._known) for part in each.packages]

    def recognise(self, argv: Sequence[str], exe: str = "") -> str:
        """Return the slug of the harness that a command line starts to work with, as `recognise` does."""
        if not argv:
            return ""
        script = _script_of(argv)
        native = min(self._named(argv[0], self._folders), self._named(exe, self._folders))
        scripted = self._named(script[0], self._packages) if script else len(self._known)
        place = min(native, scripted)
        if place == len(self._known):
            return ""
        behind = argv[1:2] if native <= scripted else script[1:2]
        return "" if self._known[place].passing & set(behind) else self._known[place].slug

    def _named(self, path: str, parts: Sequence[tuple[str, int]]) -> int:
        """Return the place of the first signature that a program or script has by its name or a part of its path."""
        folder, _, name = path.rstrip("/").rpartition("/")
        found = self._executables.get(_stem(name), len(self._known))
        return min([found, *(place for part, place in parts if part in f"{folder}/")]) if folder else found


@cache
def recogniser() -> Recogniser:
    """Return the recogniser of the harnesses we know."""
    return Recogniser(signatures())


def recognise(argv: Sequence[str], exe: str = "", *, among: Sequence[Signature] | None = None) -> str:
    """Return the slug of the harness that a command line starts to work with, "" for any other.

    `exe` is the program that the kernel runs, where known. A command that only sets a harness up or asks for its
    version starts none.
    """
    return (recogniser() if among is None else Recogniser(among)).recognise(argv, exe)


def _script_of(argv: Sequence[str]) -> Sequence[str]:
    """Return the script that an interpreter runs, with the words behind it; empty where there is none."""
    program = argv[0].rstrip("/").rpartition("/")[2]
    # By its beginning first: of all processes of a node few are interpreters.
    is_one = program.startswith(_BEGINNINGS) and _stem(program.rstrip("0123456789.")) in _INTERPRETERS
    return script_of(argv[1:]) if is_one else ()


def _stem(name: str) -> str:
    return next((name.removesuffix(end) for end in _ENDINGS if name.endswith(end)), name)
