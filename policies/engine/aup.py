"""The acceptable use policy: Markdown and clauses, one source for the page, the agent's text and the checks."""

import hashlib
import re
import tomllib
from dataclasses import dataclass
from datetime import date
from importlib.resources import files
from typing import Any, Final

from policies.engine.clause_toml import read_clause, write_clauses, write_text
from policies.engine.clauses import (
    STRONGEST_ACTION,
    Action,
    Applies,
    Check,
    Clause,
    Coverage,
    Fault,
    Modality,
    PolicyError,
    Standing,
    clause_faults,
    type_fault,
)

__all__ = [
    "STRONGEST_ACTION", "Action", "Applies", "Aup", "Check", "Clause", "Coverage", "Fault", "Modality", "PolicyError",
    "Standing", "aup_digest", "clause_faults", "default_source", "parse_aup", "render_agent_text", "render_markdown",
    "require_publishable", "write_aup",
]  # fmt: skip
GRACE_DAYS: Final = 14
LONGEST_GRACE_DAYS: Final = 180
VERSION_LENGTH: Final = 20
MOST_CLAUSES: Final = 60
LONGEST_TEXT: Final = 60_000
LONGEST_TITLE: Final = 120
DAYS: Final = (date(2000, 1, 1), date(2099, 12, 31))  # days that every clock and time zone can hold
_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_HEAD: Final = frozenset({"version", "title", "effective", "grace_days", "text", "clause"})


@dataclass(frozen=True, slots=True)
class Aup:
    """One version of the policy. `text` is Markdown for people; `grace_days` run from the day it is in force."""

    version: str
    title: str
    effective: str
    clauses: tuple[Clause, ...]
    text: str = ""
    grace_days: int = GRACE_DAYS

    @property
    def effective_day(self) -> date | None:
        """The day from which it is in force; None for a version of old whose day is no date."""
        try:
            day = date.fromisoformat(self.effective)
        except ValueError:
            return None
        return day if day.isoformat() == self.effective else None


def parse_aup(text: str) -> Aup:
    """Read a policy from TOML; raise `PolicyError` (a `ValueError`) naming the clause and its first fault."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets by the thousand
        raise PolicyError(
            Fault("aup_no_toml", f"The text is no TOML: {error}", "Mend that place; https://toml.io shows the form.")
        ) from None
    aup = _head(document)
    for clause in aup.clauses:
        if faults := clause_faults(clause):
            raise PolicyError(faults[0], clause.type)
    types = [clause.type for clause in aup.clauses]
    if len(set(types)) != len(types):
        twice = next(each for each in types if types.count(each) > 1)
        raise PolicyError(
            Fault("clause_twice", "Two clauses have the same type.", "Make them one, or name one site.…"),
            twice,
        )  # fmt: skip
    return aup


def _head(document: dict[str, Any]) -> Aup:
    if unknown := sorted(set(document) - _HEAD):
        raise _faulty(
            "aup_field_unknown", f"There is no field {unknown[0]}.", f"There are: {', '.join(sorted(_HEAD))}."
        )
    version, title = _needed(document, "version"), _needed(document, "title")
    if len(version) > VERSION_LENGTH or not _VERSION.fullmatch(version):
        raise _faulty(
            "aup_version", f"Version {version[:40]!r} cannot be used.",
            f"At most {VERSION_LENGTH} letters, digits, dots and dashes.",
        )  # fmt: skip
    if "effective" not in document:
        raise _faulty("aup_field_missing", "The policy lacks its effective.", "Add the day, as effective = 2027-01-01.")
    grace, body = _grace(document), document.get("text", "")
    if not isinstance(body, str) or len(body) > LONGEST_TEXT:
        raise _faulty(
            "aup_text", "text is no text, or too long.", f"Give Markdown of at most {LONGEST_TEXT} characters."
        )
    return Aup(version, title, str(document["effective"]), _clauses(document), body, grace)


def _needed(document: dict[str, Any], name: str) -> str:
    found = document.get(name)
    if not isinstance(found, str) or not found.strip():
        raise _faulty("aup_field_missing", f"The policy lacks its {name}.", f'Add {name} = "…" at the top.')
    return found


def _grace(document: dict[str, Any]) -> int:
    grace = document.get("grace_days", GRACE_DAYS)
    if not isinstance(grace, int) or isinstance(grace, bool) or not 0 <= grace <= LONGEST_GRACE_DAYS:
        raise _faulty("aup_grace", "grace_days is no number of days.", f"Give a whole one, 0 to {LONGEST_GRACE_DAYS}.")
    return grace


def _clauses(document: dict[str, Any]) -> tuple[Clause, ...]:
    rows = document.get("clause", [])
    if not isinstance(rows, list) or len(rows) > MOST_CLAUSES or not all(isinstance(row, dict) for row in rows):
        remedy = f"Write each as [[clause]], {MOST_CLAUSES} at most."
        raise _faulty("aup_clauses", "clause is no list of tables, or too long.", remedy)
    return tuple(read_clause(row, number) for number, row in enumerate(rows, start=1))


def _faulty(code: str, sentence: str, remedy: str) -> PolicyError:
    return PolicyError(Fault(code, sentence, remedy))


def require_publishable(aup: Aup) -> None:
    """Raise `PolicyError` where a policy that reads well cannot be published: an unknown type, no day, no clause, …"""
    if not aup.clauses:
        raise _faulty("aup_empty", "The policy has no clauses.", "Start from one of the packs.")
    if aup.effective_day is None:
        raise _faulty("aup_effective", "effective is no day.", "Write it without quotes, as effective = 2027-01-01.")
    if not DAYS[0] <= aup.effective_day <= DAYS[1]:
        raise _faulty("aup_effective", "effective is out of range.", f"Give a day from {DAYS[0]} to {DAYS[1]}.")
    if len(aup.title) > LONGEST_TITLE or not aup.title.isprintable():
        raise _faulty("aup_title", "title is no line of text.", f"At most {LONGEST_TITLE} printable characters.")
    for clause in aup.clauses:
        if fault := type_fault(clause):
            raise PolicyError(fault, clause.type)


def write_aup(aup: Aup) -> str:
    """Write a policy as the TOML that `parse_aup` reads as the same policy."""
    day = aup.effective if aup.effective_day else write_text(aup.effective)
    head = [f"version = {write_text(aup.version)}", f"title = {write_text(aup.title)}", f"effective = {day}"]
    head.append(f"grace_days = {aup.grace_days}")
    if aup.text:
        head.append(f"text = {write_text(aup.text)}")
    return "\n".join(head) + "\n\n" + write_clauses(aup.clauses)


def default_source() -> str:
    """Read the TOML of the policy a new site starts with."""
    return files("policies.engine").joinpath("default_aup.toml").read_text(encoding="utf-8")


def render_markdown(aup: Aup) -> str:
    """Write the policy for people: its text, then each clause with how it is checked."""
    lines = [f"# {aup.title}, version {aup.version}", "", f"In force from {aup.effective}.", ""]
    if aup.text:
        lines += [aup.text.strip(), ""]
    for number, clause in enumerate(aup.clauses, start=1):
        lines.append(f"{number}. {clause.text_human} *{clause.check_words}*")
    return "\n".join(lines) + "\n"


def render_agent_text(aup: Aup) -> str:
    """Write the policy for an agent: plain lines, the modality first."""
    lines = [f"{aup.title}, version {aup.version}."]
    lines += [f"- {clause.modality.value.upper()}: {clause.text_agent}" for clause in aup.clauses]
    return "\n".join(lines) + "\n"


def aup_digest(aup: Aup) -> str:
    """Digest all that page and agent's text are made of, so that an acceptance names the exact policy."""
    return "sha256:" + hashlib.sha256(write_aup(aup).encode()).hexdigest()
