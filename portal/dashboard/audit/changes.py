"""What an event changed, in words that fit a cell: no digest at full length, no syntax of a language."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from portal.core.models import AuditEvent

SHOWN_DIGEST: Final = 12
SHOWN_TEXT: Final = 80
_DIGEST: Final = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9a-f]{32,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?![0-9A-Za-z])"
)
# Counts of a batch that stayed at nothing are no change worth a line.
NOTHING: Final[tuple[Any, ...]] = (0, None, "", [], {})
# The one field of what has only one: its name would say nothing.
_ITSELF: Final = "is"


@dataclass(frozen=True, slots=True)
class Words:
    """A value in words: `shown` fits a cell, `whole` is all of it. Both are empty for nothing."""

    whole: str

    @property
    def shown(self) -> str:
        """The words with digests at their first digits, and an end where they are long."""
        short = shorten(self.whole)
        return short if len(short) <= SHOWN_TEXT else f"{short[: SHOWN_TEXT - 1]}…"

    @property
    def is_cut(self) -> bool:
        return self.shown != self.whole

    def __str__(self) -> str:
        return self.shown


@dataclass(frozen=True, slots=True)
class Change:
    """One field before and after; its name is empty where there is one field only."""

    name: str
    before: Words
    after: Words

    @property
    def is_cut(self) -> bool:
        return self.before.is_cut or self.after.is_cut


def shorten(text: str) -> str:
    """Return a text with every UUID, and digest of 32 hex digits and more, at its first twelve characters."""
    return _DIGEST.sub(lambda found: f"{found[0][:SHOWN_DIGEST]}…", text)


def changes_of(event: AuditEvent) -> list[Change]:
    """Return what an event changed, field by field."""
    content = event.payload or {}
    before, after = content.get("before") or {}, content.get("after") or {}
    names = [*after, *(name for name in before if name not in after)]
    return [
        Change(_name(name), Words(in_words(before.get(name))), Words(in_words(after.get(name))))
        for name in names
        if before.get(name) != after.get(name) and (name in before or after[name] not in NOTHING)
    ]


def in_words(value: Any) -> str:
    """Write a value of JSON as words: `joined 1, left 2` for an object, its items with commas for a list."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(_pairs(value))
    if isinstance(value, list):
        return ", ".join(f"({in_words(each)})" if isinstance(each, dict | list) else in_words(each) for each in value)
    return "" if value is None else str(value)


def _pairs(value: dict[str, Any]) -> Iterator[str]:
    for name, each in value.items():
        words = in_words(each) or "–"
        yield f"{_name(name)} ({words})" if isinstance(each, dict | list) else f"{_name(name)} {words}"


def _name(name: str) -> str:
    return "" if name == _ITSELF else name.replace("_", " ")
