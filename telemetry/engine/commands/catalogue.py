"""The programs we know: what each is for, and how one that runs another is looked through."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

OTHER: Final = "other"
_VERSION: Final = re.compile(r"[-_]?\d+(?:\.\d+)*$")
_SCRIPT: Final = re.compile(r"(?:-cli)?\.(?:py|pyz|pl|rb|js|mjs|cjs|sh)$")


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How to find what a program runs: options with a value, words before it, and whether assignments may stand."""

    values: frozenset[str]
    skip: int
    assignments: bool


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Programs by name. `titles` names the categories in the order they are shown."""

    titles: Mapping[str, str]
    categories: Mapping[str, str]
    tools: Mapping[str, str]
    wrappers: Mapping[str, Wrapper]
    hosts: Mapping[str, str]
    registries: Mapping[str, frozenset[str]]

    def name_of(self, word: str) -> str:
        """Return the known program that a first word names, "" for one we do not know: its name is somebody's own."""
        name = word.removeprefix("-").rstrip("/").rpartition("/")[2].lower()
        if self._knows(name):  # most are: patterns are slow, and this is asked of everything that starts
            return name
        if "." in name and self._knows(plain := _SCRIPT.sub("", name)):
            return plain
        return plain if name[-1:].isdigit() and self._knows(plain := _VERSION.sub("", name)) else ""

    def _knows(self, name: str) -> bool:
        return name in self.categories or name in self.wrappers

    def kind_of_host(self, host: str) -> str:
        """Return `code`, `search` or `web` for a host name."""
        host = host.lower().rstrip(".")
        ends = ["." + host.split(".", cut)[-1] for cut in range(host.count(".") + 1)]
        return next((self.hosts[each] for each in (host, *ends) if each in self.hosts), "web")


@cache
def catalogue() -> Catalogue:
    """Read the catalogue."""
    text = files("telemetry.engine.commands").joinpath("catalogue.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    return Catalogue(
        titles=data["category"],
        categories=_by_word(data["programs"]),
        tools=_by_word(data["tools"]),
        wrappers={name: _wrapper(table) for name, table in data["wrappers"].items()},
        hosts=_by_word(data["destinations"]),
        registries={name: frozenset(words.split()) for name, words in data["registries"].items()},
    )


def _by_word(table: Mapping[str, str]) -> dict[str, str]:
    return {word: key for key, words in table.items() for word in words.split()}


def _wrapper(table: Mapping[str, Any]) -> Wrapper:
    values = frozenset(str(table.get("values", "")).split())
    return Wrapper(values, int(table.get("skip", 0)), bool(table.get("assignments", False)))
