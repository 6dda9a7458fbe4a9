"""Conditions under which a lesson holds, as predicates that can be compared: ``gpu_arch == sm_120``.

Context pasted into the text does not help to tell causes apart; typed conditions do.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

OPERATORS = ("==", "!=", "<=", ">=", "<", ">")
MAX_CONDITIONS = 12
MAX_VALUE = 100
_CONDITION = re.compile(
    r"(?P<key>[A-Za-z][\w:.-]{0,59})\s*(?P<op>==|!=|<=|>=|<|>)\s*(?P<value>[^\s<>=!].*)\Z", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Condition:
    """One predicate on the environment: a key such as ``partition`` or ``module:openmpi``, an operator, a value."""

    key: str
    op: str
    value: str

    def __str__(self) -> str:
        return f"{self.key} {self.op} {self.value}"


def parse_condition(text: str) -> Condition:
    """Read one condition. Raises ``ValueError`` with a sentence that names the fault."""
    match = _CONDITION.match(text.strip())
    if match is None:
        raise ValueError(f"“{text.strip()[:60]}” is no condition: write a key, one of {' '.join(OPERATORS)}, a value.")
    value = match["value"].strip()
    if len(value) > MAX_VALUE or not value.isprintable():
        raise ValueError(f"The value of {match['key']} is longer than {MAX_VALUE} characters or not printable.")
    return Condition(match["key"], match["op"], value)


def parse_conditions(texts: Iterable[str]) -> tuple[Condition, ...]:
    """Read conditions, each once, in order; empty texts are passed over. Raises ``ValueError`` as above."""
    found = tuple(dict.fromkeys(parse_condition(text) for text in texts if text.strip()))
    if len(found) > MAX_CONDITIONS:
        raise ValueError(f"There are {len(found)} conditions; at most {MAX_CONDITIONS} are kept.")
    return found
