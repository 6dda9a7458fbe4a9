"""The acceptable use policy as clauses: one source for the page, the agent's text and the checks."""

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from importlib.resources import files
from typing import Any


class Modality(Enum):
    """How strongly a clause binds."""

    FORBID = "forbid"
    REQUIRE = "require"
    LIMIT = "limit"
    ADVISE = "advise"
    INFORM = "inform"


class Action(Enum):
    """What may follow when a clause is not kept, from nothing to a hold."""

    NONE = "none"
    NOTIFY = "notify"
    WARN = "warn"
    REFUSE = "refuse"
    HOLD = "hold"


class Coverage(Enum):
    """How we know that a clause is kept."""

    OBSERVED = "observed"
    DECLARED = "declared"
    NONE = "none"


_RANK = {action: rank for rank, action in enumerate(Action)}
STRONGEST_ACTION = {
    Modality.FORBID: Action.HOLD,
    Modality.REQUIRE: Action.HOLD,
    Modality.LIMIT: Action.REFUSE,
    Modality.ADVISE: Action.NOTIFY,
    Modality.INFORM: Action.NONE,
}
PLACES = ("login", "agent_host", "job", "workstation")
AGENT_TEXT_WORDS = 60  # an agent reads every clause at every check-in
_TYPE = re.compile(r"[a-z][a-z_]*(?:\.[a-z][a-z0-9_]*)+")


@dataclass(frozen=True, slots=True)
class Check:
    """What measures a clause, how far it sees, and the sentence people read about it."""

    coverage: Coverage
    measure: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class Clause:
    """One rule of the policy."""

    type: str
    modality: Modality
    text_human: str
    text_agent: str
    check: Check
    action: Action = Action.NONE
    value: float | None = None
    unit: str = ""
    place: tuple[str, ...] = PLACES

    @property
    def is_verified(self) -> bool:
        """Say whether anything checks it; what nobody checks is never shown as kept."""
        return self.check.coverage is not Coverage.NONE

    @property
    def check_words(self) -> str:
        """Say how it is checked, or that it is not."""
        if not self.is_verified:
            return "Not measured. We rely on you."
        if self.check.words:
            return self.check.words
        return "Measured." if self.check.coverage is Coverage.OBSERVED else "Declared by you."


@dataclass(frozen=True, slots=True)
class Aup:
    """One version of the policy."""

    version: str
    title: str
    effective: str
    clauses: tuple[Clause, ...]


def clause_faults(clause: Clause) -> tuple[str, ...]:
    """List, in sentences, everything wrong with a clause; empty when it is sound."""
    checked = clause.check.coverage
    rules = (
        (_TYPE.fullmatch(clause.type) is None, "Its type is not of the form family.name."),
        (not clause.text_human or not clause.text_agent, "It needs a text for people and one for agents."),
        (
            len(clause.text_agent.split()) > AGENT_TEXT_WORDS,
            f"Its text for agents is longer than {AGENT_TEXT_WORDS} words.",
        ),
        (
            clause.modality is Modality.LIMIT and (clause.value is None or not clause.unit),
            "A limit needs a value and a unit.",
        ),
        (clause.value is not None and clause.value < 0, "Its value is negative."),
        (
            not clause.place or not set(clause.place) <= set(PLACES),
            f"Its places are among {', '.join(PLACES)}.",
        ),
        (
            _RANK[clause.action] > _RANK[STRONGEST_ACTION[clause.modality]],
            f"{clause.action.value} is stronger than {clause.modality.value} allows.",
        ),
        (
            checked is Coverage.NONE and _RANK[clause.action] > _RANK[Action.NOTIFY],
            "Nothing checks it, so nothing stronger than a notice can follow.",
        ),
        (checked is Coverage.OBSERVED and not clause.check.measure, "An observed clause names its measure."),
    )
    return tuple(sentence for broken, sentence in rules if broken)


def _clause(row: Mapping[str, Any]) -> Clause:
    check = row.get("check", {})
    return Clause(
        type=row["type"],
        modality=Modality(row["modality"]),
        text_human=row["text_human"],
        text_agent=row["text_agent"],
        check=Check(Coverage(check.get("coverage", "none")), check.get("measure", ""), check.get("words", "")),
        action=Action(row.get("action", "none")),
        value=row.get("value"),
        unit=row.get("unit", ""),
        place=tuple(row.get("place", PLACES)),
    )


def parse_aup(text: str) -> Aup:
    """Read a policy from TOML; raise ``ValueError`` naming the clause and its first fault."""
    document = tomllib.loads(text)
    clauses = []
    for row in document.get("clause", []):
        try:
            clause = _clause(row)
        except KeyError as error:
            raise ValueError(f"Clause {row.get('type', '?')} lacks {error.args[0]}.") from error
        faults = clause_faults(clause)
        if faults:
            raise ValueError(f"Clause {clause.type}: {faults[0]}")
        clauses.append(clause)
    types = [clause.type for clause in clauses]
    if len(set(types)) != len(types):
        raise ValueError("Two clauses have the same type.")
    return Aup(document["version"], document["title"], str(document["effective"]), tuple(clauses))


def default_source() -> str:
    """Read the TOML of the policy a new site starts with."""
    return files("policies.engine").joinpath("default_aup.toml").read_text(encoding="utf-8")


def render_markdown(aup: Aup) -> str:
    """Write the policy for people, each clause with how it is checked."""
    lines = [f"# {aup.title}, version {aup.version}", "", f"In force from {aup.effective}.", ""]
    for number, clause in enumerate(aup.clauses, start=1):
        lines.append(f"{number}. {clause.text_human} *{clause.check_words}*")
    return "\n".join(lines) + "\n"


def render_agent_text(aup: Aup) -> str:
    """Write the policy for an agent: plain lines, the modality first."""
    lines = [f"{aup.title}, version {aup.version}."]
    lines += [f"- {clause.modality.value.upper()}: {clause.text_agent}" for clause in aup.clauses]
    return "\n".join(lines) + "\n"


def aup_digest(aup: Aup) -> str:
    """Digest what people and agents were shown, so that an acceptance names the exact text."""
    text = render_markdown(aup) + "\x00" + render_agent_text(aup)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
