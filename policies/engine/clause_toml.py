"""Clauses as TOML, read and written: what is written reads as the same clauses."""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, TypeVar

from policies.engine.clauses import (
    EVERYTHING,
    LARGEST_VALUE,
    PLACES,
    Action,
    Applies,
    Check,
    Clause,
    Coverage,
    Fault,
    Modality,
    PolicyError,
    Value,
)

_Choice = TypeVar("_Choice", bound=Enum)
_FIELDS: Final = frozenset(
    {
        "type", "modality", "text_human", "text_agent", "check", "action", "value", "unit", "place", "applies",
        "parameters", "source",
    }
)  # fmt: skip
_CHECK: Final = frozenset({"coverage", "measure", "words"})
_APPLIES: Final = frozenset({"labs", "data_class", "harness"})
_ESCAPED: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def read_clause(row: Mapping[str, Any], number: int = 0) -> Clause:
    """Read one table. Errors: `PolicyError` for what is missing, misspelt or of the wrong kind."""
    where = row["type"] if isinstance(row.get("type"), str) else f"number {number}"
    _known(row, _FIELDS, where, "")
    check, applies = _table(row, "check", where), _table(row, "applies", where)
    _known(check, _CHECK, where, "check.")
    _known(applies, _APPLIES, where, "applies.")
    return Clause(
        type=_text(row, "type", where, needed=True),
        modality=_choice(Modality, row, "modality", where),
        text_human=_text(row, "text_human", where, needed=True),
        text_agent=_text(row, "text_agent", where, needed=True),
        check=Check(
            _choice(Coverage, check, "coverage", where, "none"), _text(check, "measure", where),
            _text(check, "words", where),
        ),
        action=_choice(Action, row, "action", where, "none"),
        value=_number(row, where),
        unit=_text(row, "unit", where),
        place=_words(row, "place", where, PLACES),
        applies=Applies(*(_words(applies, name, where, EVERYTHING) for name in ("labs", "data_class", "harness"))),
        parameters=_parameters(_table(row, "parameters", where), where),
        source=_text(row, "source", where),
    )  # fmt: skip


def write_clauses(clauses: Sequence[Clause]) -> str:
    """Write clauses as the `[[clause]]` tables of a policy; what is left out is the default."""
    return "\n".join("\n".join(_lines(clause)) + "\n" for clause in clauses)


def write_text(text: str) -> str:
    """Write a text as a TOML string: of many lines where it has many."""
    if "\n" not in text:
        return _quoted(text)
    body = _UNPRINTABLE.sub(_coded, text.replace("\\", "\\\\")).replace('"""', '""\\"')
    if body.endswith('"'):
        body = body[:-1] + '\\"'
    return f'"""\n{body}"""'


def _lines(clause: Clause) -> Iterator[str]:
    yield "[[clause]]"
    yield f"type = {_quoted(clause.type)}"
    yield f"modality = {_quoted(clause.modality.value)}"
    if clause.value is not None:
        yield f"value = {clause.value!r}"
    if clause.unit:
        yield f"unit = {_quoted(clause.unit)}"
    if clause.place != PLACES:
        yield f"place = {_written(clause.place)}"
    if clause.action is not Action.NONE:
        yield f"action = {_quoted(clause.action.value)}"
    yield f"text_human = {_quoted(clause.text_human)}"
    yield f"text_agent = {_quoted(clause.text_agent)}"
    check = {"coverage": clause.check.coverage.value, "measure": clause.check.measure, "words": clause.check.words}
    yield f"check = {_table_of({name: each for name, each in check.items() if each})}"
    applies = {name: getattr(clause.applies, name) for name in ("labs", "data_class", "harness")}
    if narrowed := {name: each for name, each in applies.items() if each != EVERYTHING}:
        yield f"applies = {_table_of(narrowed)}"
    if clause.parameters:
        yield f"parameters = {_table_of(dict(clause.parameters))}"
    if clause.source:
        yield f"source = {_quoted(clause.source)}"


def _table_of(items: Mapping[str, Value]) -> str:
    return "{ " + ", ".join(f"{name} = {_written(each)}" for name, each in items.items()) + " }"


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_written, value)) + "]"
    return repr(value)


def _quoted(text: str) -> str:
    escaped = "".join(_ESCAPED.get(each, each) for each in text)
    return '"' + _UNPRINTABLE.sub(_coded, escaped) + '"'


def _coded(found: "re.Match[str]") -> str:
    return f"\\u{ord(found.group()):04x}"


# --- reading: every fault has its code and its remedy ------------------------------------------------------
def _known(row: Mapping[str, Any], names: frozenset[str], where: str, before: str) -> None:
    if unknown := sorted(set(row) - names):
        raise PolicyError(
            Fault("clause_field_unknown", f"It has a field {before}{unknown[0]} that nobody reads.",
                  f"There are: {', '.join(sorted(names))}."), where,
        )  # fmt: skip


def _wrong(name: str, kind: str, where: str) -> PolicyError:
    return PolicyError(Fault("clause_field_kind", f"Its {name} is not {kind}.", f"Write {name} as {kind}."), where)


def _text(row: Mapping[str, Any], name: str, where: str, *, needed: bool = False) -> str:
    if name not in row and needed:
        raise PolicyError(Fault("clause_field_missing", f"It lacks {name}.", f"Add {name} to this clause."), where)
    found = row.get(name, "")
    if not isinstance(found, str):
        raise _wrong(name, "a text", where)
    return found


def _table(row: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    found = row.get(name, {})
    if not isinstance(found, dict):
        raise _wrong(name, "a table", where)
    return found


def _choice(kind: type[_Choice], row: Mapping[str, Any], name: str, where: str, default: str = "") -> _Choice:
    found = row.get(name, default)
    if not found:
        raise PolicyError(Fault("clause_field_missing", f"It lacks {name}.", f"Add {name} to this clause."), where)
    try:
        return kind(found)
    except ValueError:
        allowed = ", ".join(str(each.value) for each in kind)
        fault = Fault("clause_choice", f"Its {name} is {str(found)[:40]!r}.", f"It is one of {allowed}.")
        raise PolicyError(fault, where) from None


def _number(row: Mapping[str, Any], where: str) -> float | None:
    found = row.get("value")
    if found is not None and (isinstance(found, bool) or not isinstance(found, int | float)):
        raise _wrong("value", "a number", where)
    return found


def _words(row: Mapping[str, Any], name: str, where: str, default: tuple[str, ...]) -> tuple[str, ...]:
    found = row.get(name, list(default))
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise _wrong(name, "a list of texts", where)
    return tuple(found)


def _parameters(table: Mapping[str, Any], where: str) -> tuple[tuple[str, Value], ...]:
    return tuple(sorted((name, _value(name, each, where)) for name, each in table.items()))


def _value(name: str, found: Any, where: str) -> Value:
    if isinstance(found, list) and all(_is_plain(each) for each in found):
        return tuple(found)
    if _is_plain(found):
        plain: Value = found
        return plain
    raise _wrong(f"parameter {name}", "a text, a number or a list of them", where)


def _is_plain(found: Any) -> bool:
    """Say whether it is a text, or a number that JSON has as well."""
    return isinstance(found, str) or (isinstance(found, int | float) and abs(found) <= LARGEST_VALUE)
