"""What changed from one version of the policy to the next: lines of the text, and clauses field by field."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum
from typing import Final

from policies.engine.aup import Aup
from policies.engine.clauses import Applies, Check, Clause, by_type

_MOST_COMPARED: Final = 1_000_000  # lines times lines
_WORDS: Final = {
    "modality": "binds as", "value": "limit", "unit": "unit", "place": "where", "applies": "applies to",
    "check": "checked by", "action": "may follow", "text_human": "text for people", "text_agent": "text for agents",
    "parameters": "parameters", "source": "source",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the text: `new`, `gone` or `same`."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of a clause, before and after, in words."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ClauseChange:
    """A clause that is `new`, `gone` or `changed`, with its fields where it changed."""

    kind: str
    clause: Clause
    fields: tuple[FieldChange, ...] = ()


@dataclass(frozen=True, slots=True)
class AupDiff:
    """All that changed. `lines` holds the whole text where any line of it changed, else nothing."""

    lines: tuple[Line, ...]
    clauses: tuple[ClauseChange, ...]

    @property
    def sentence(self) -> str:
        """Say how much changed."""
        counts = {kind: sum(each.kind == kind for each in self.clauses) for kind in ("new", "changed", "gone")}
        parts = [f"{number} {kind}" for kind, number in counts.items() if number]
        said = f"Clauses: {', '.join(parts)}." if parts else "No clause changed."
        return f"{said} The text {'changed' if self.lines else 'is the same'}."


def compare(old: Aup, new: Aup) -> AupDiff:
    """Compare two versions; clauses are the same by their type."""
    return AupDiff(_lines(old.text, new.text), tuple(_clauses(old.clauses, new.clauses)))


def _lines(old: str, new: str) -> tuple[Line, ...]:
    if old.strip() == new.strip():
        return ()
    before, after = old.strip().splitlines(), new.strip().splitlines()
    if len(before) * len(after) > _MOST_COMPARED:  # it would take minutes, and everybody may ask
        return (*(Line("gone", each) for each in before), *(Line("new", each) for each in after))
    lines: list[Line] = []
    for change, start, end, starts, ends in SequenceMatcher(None, before, after).get_opcodes():
        if change == "equal":
            lines += [Line("same", each) for each in before[start:end]]
        else:
            lines += [Line("gone", each) for each in before[start:end]]
            lines += [Line("new", each) for each in after[starts:ends]]
    return tuple(lines)


def _clauses(old: Sequence[Clause], new: Sequence[Clause]) -> list[ClauseChange]:
    before, after = by_type(tuple(old)), by_type(tuple(new))
    found = [
        _change(before[clause.type], clause) if clause.type in before else ClauseChange("new", clause) for clause in new
    ]
    found += [ClauseChange("gone", clause) for clause in old if clause.type not in after]
    return [each for each in found if each.kind != "changed" or each.fields]


def _change(old: Clause, new: Clause) -> ClauseChange:
    fields = (
        FieldChange(words, _said(getattr(old, name)), _said(getattr(new, name)))
        for name, words in _WORDS.items()
        if getattr(old, name) != getattr(new, name)
    )
    return ClauseChange("changed", new, tuple(fields))


def _said(value: object) -> str:
    if value is None or value == "" or value == ():
        return "–"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, tuple):
        return ", ".join(f"{each[0]}: {_said(each[1])}" if _is_pair(each) else _said(each) for each in value)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Check):
        return " ".join(part for part in (value.coverage.value, value.measure, value.words) if part)
    if isinstance(value, Applies):
        return value.words or "everybody"
    return str(value)


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2
