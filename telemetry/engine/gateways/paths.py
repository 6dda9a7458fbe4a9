"""What a request asked for, in one word: a job's submission, a transfer, or nothing that is counted by itself."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

SUBMISSION: Final = "submission"
TRANSFER: Final = "transfer"
_LONGEST: Final = 2048  # characters of a path that are looked at
_MOST_WORDS: Final = 40


class _Rule(NamedTuple):
    act: str
    methods: frozenset[str]
    untold: int | None
    paths: re.Pattern[str]


@cache
def _rules(kind: str) -> tuple[_Rule, ...]:
    text = files("telemetry.engine.gateways").joinpath("paths.toml").read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = tomllib.loads(text)[kind]
    return tuple(
        _Rule(row["act"], frozenset(row["methods"].split()), row.get("untold"), _pattern(row["paths"].split()))
        for row in rows
    )


def _pattern(paths: list[str]) -> re.Pattern[str]:
    words = {"*": "/[^/]+", "**": "(?:/[^/]+)*"}
    return re.compile(
        "|".join("".join(words.get(word, "/" + re.escape(word)) for word in path[1:].split("/")) for path in paths)
    )


def act_of(kind: str, method: str, target: str, status: int) -> str:
    """Return `submission`, `transfer` or "" for a request; `method` "" where the log does not tell it.

    What was refused is none.
    """
    path = target[:_LONGEST].partition("?")[0].rstrip("/")
    if status >= 400 or path.count("/") > _MOST_WORDS:
        return ""
    for rule in _rules(kind):
        asked = method in rule.methods if method else rule.untold in (None, status)
        if asked and rule.paths.fullmatch(path):
            return rule.act
    return ""
