"""One rule of the policy as data: what binds whom, where, how strongly, how it is checked and what may follow."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from policies.engine.clause_types import CLAUSE_TYPES, OWN, PARAMETER_NAMES
from policies.engine.measures import MEASURES

Value = str | int | float | bool | tuple[str | int | float, ...]


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


class Standing(Enum):
    """How far a clause is more than words here and now."""

    ENFORCED = "enforced"
    MEASURED = "measured"
    DECLARED = "declared"
    NOT_YET = "not yet enforced"
    UNVERIFIED = "unverified"


_RANK: Final = {action: rank for rank, action in enumerate(Action)}
STRONGEST_ACTION: Final = {
    Modality.FORBID: Action.HOLD,
    Modality.REQUIRE: Action.HOLD,
    Modality.LIMIT: Action.REFUSE,
    Modality.ADVISE: Action.NOTIFY,
    Modality.INFORM: Action.NONE,
}
PLACES: Final = ("login", "agent_host", "job", "workstation")
AGENT_TEXT_WORDS: Final = 60  # an agent reads every clause at every check-in
LARGEST_VALUE: Final = 10**12  # a float holds it, and so does every database
EVERYTHING: Final = ("*",)
_TYPE: Final = re.compile(r"[a-z][a-z_]*(?:\.[a-z][a-z0-9_]*)+")
_ADDRESS: Final = re.compile(r"https?://[^\s<>\"']+")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a clause or a policy: a stable code, a sentence, and what would mend it."""

    code: str
    sentence: str
    remedy: str

    @property
    def words(self) -> str:
        return f"{self.sentence} {self.remedy}"


class PolicyError(ValueError):
    """A policy that cannot be read or is not sound; `where` names the clause, "" for the whole."""

    def __init__(self, fault: Fault, where: str = "") -> None:
        super().__init__(f"Clause {where}: {fault.sentence}" if where else fault.sentence)
        self.fault = fault
        self.where = where


@dataclass(frozen=True, slots=True)
class Check:
    """What measures a clause, how far it sees, and the sentence people read about it."""

    coverage: Coverage
    measure: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class Applies:
    """Whom a clause binds: slugs of labs, labels of data, slugs of harnesses; `*` is everything."""

    labs: tuple[str, ...] = EVERYTHING
    data_class: tuple[str, ...] = EVERYTHING
    harness: tuple[str, ...] = EVERYTHING

    @property
    def words(self) -> str:
        """Say whom, or "" where it is everybody."""
        parts = (("labs", self.labs), ("data", self.data_class), ("harnesses", self.harness))
        return "; ".join(f"{what} {', '.join(names)}" for what, names in parts if names != EVERYTHING)

    def reaches(self, *, lab: str = "*", harness: str = "*") -> bool:
        """Say whether agents of a lab, with a harness, are bound; `*` asks about any. Data are asked of `data_gate`."""
        asked = ((self.labs, lab), (self.harness, harness))
        return all(name == "*" or "*" in names or name in names for names, name in asked)


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
    applies: Applies = Applies()
    parameters: tuple[tuple[str, Value], ...] = ()
    source: str = ""

    @property
    def standing(self) -> Standing:
        """How far it is checked here: a measure that nothing takes counts for nothing."""
        if self.check.coverage is Coverage.NONE:
            return Standing.UNVERIFIED
        if self.check.coverage is Coverage.DECLARED:
            return Standing.DECLARED
        measure = MEASURES.get(self.check.measure)
        if measure is None:
            return Standing.NOT_YET
        said = self.type == "sessions.max" and measure.refuses_if_said and self.action is Action.REFUSE
        return Standing.ENFORCED if measure.refuses or said else Standing.MEASURED

    @property
    def is_verified(self) -> bool:
        """Say whether anything checks it; what nobody checks is never shown as kept."""
        return self.standing not in (Standing.UNVERIFIED, Standing.NOT_YET)

    @property
    def check_words(self) -> str:
        """Say how it is checked, or that it is not."""
        if self.standing is Standing.UNVERIFIED:
            return "Not measured. We rely on you."
        if self.standing is Standing.NOT_YET:
            return "Not yet enforced: nothing here measures it. We rely on you."
        if self.check.words:
            return self.check.words
        return "Declared by you." if self.standing is Standing.DECLARED else MEASURES[self.check.measure].words

    def parameter(self, name: str) -> Value | None:
        """Return a parameter, None where it is not given."""
        return dict(self.parameters).get(name)

    def listed(self, name: str) -> tuple[str, ...]:
        """Return a parameter that is a list of words; empty where it is not given."""
        found = self.parameter(name)
        return tuple(map(str, found)) if isinstance(found, tuple) else ()


def clause_faults(clause: Clause) -> tuple[Fault, ...]:
    """List everything wrong with a clause by itself; empty when it is sound."""
    return tuple(Fault(*said) for broken, *said in (*_form(clause), *_strength(clause)) if broken)


def _form(clause: Clause) -> tuple[tuple[bool, str, str, str], ...]:
    limits = clause.modality is Modality.LIMIT
    unknown = sorted({name for name, _ in clause.parameters} - PARAMETER_NAMES)
    empty = not (clause.applies.labs and clause.applies.data_class and clause.applies.harness)
    return (
        (
            _TYPE.fullmatch(clause.type) is None, "clause_type_form", "Its type is not of the form family.name.",
            "Write it in lower case with one dot, as scheduler.no_loops.",
        ),
        (
            not clause.text_human.strip() or not clause.text_agent.strip(), "clause_text_missing",
            "It needs a text for people and one for agents.", "Write text_human and text_agent.",
        ),
        (
            len(clause.text_agent.split()) > AGENT_TEXT_WORDS, "clause_text_long",
            f"Its text for agents is longer than {AGENT_TEXT_WORDS} words.", "Shorten it, or make it two clauses.",
        ),
        (
            limits and (clause.value is None or not clause.unit), "clause_limit_incomplete",
            "A limit needs a value and a unit.", 'Add both, as value = 6 and unit = "queries/min".',
        ),
        (
            clause.value is not None and not 0 <= clause.value <= LARGEST_VALUE, "clause_value",
            "Its value is negative, too large or no number.", f"Give a number from 0 to {LARGEST_VALUE}.",
        ),
        (
            not clause.place or not set(clause.place) <= set(PLACES), "clause_place",
            f"Its places are among {', '.join(PLACES)}.", "Name one of them or more, or leave place out for all.",
        ),
        (empty, "clause_applies", "It applies to nobody.", 'Leave the list out for everybody, or write ["*"].'),
        (
            bool(unknown), "clause_parameter", f"It has parameters nobody reads: {', '.join(unknown)}.",
            f"There are: {', '.join(sorted(PARAMETER_NAMES))}.",
        ),
        (
            bool(clause.source) and _ADDRESS.fullmatch(clause.source) is None, "clause_source",
            "Its source is no web address.", "Give it as https://…, or leave it out.",
        ),
    )  # fmt: skip


def _strength(clause: Clause) -> tuple[tuple[bool, str, str, str], ...]:
    checked = clause.check.coverage
    strongest = STRONGEST_ACTION[clause.modality]
    return (
        (
            _RANK[clause.action] > _RANK[strongest], "clause_action_too_strong",
            f"{clause.action.value} is stronger than {clause.modality.value} allows.",
            f"At most {strongest.value} may follow; or bind it more strongly.",
        ),
        (
            checked is Coverage.NONE and _RANK[clause.action] > _RANK[Action.NOTIFY], "clause_action_unchecked",
            "Nothing checks it, so nothing stronger than a notice can follow.",
            "Name its check, or let notify or none follow.",
        ),
        (
            checked is Coverage.OBSERVED and not clause.check.measure, "clause_measure_missing",
            "An observed clause names its measure.",
            f"Name one that is taken ({', '.join(MEASURES)}), or say declared or none.",
        ),
    )  # fmt: skip


def type_fault(clause: Clause) -> Fault | None:
    """Say what is wrong with the type of a clause that is to be published; older versions may hold others."""
    if clause.type in CLAUSE_TYPES or clause.type.startswith(OWN):
        return None
    family = clause.type.partition(".")[0]
    near = [name for name in CLAUSE_TYPES if name.startswith(f"{family}.")] or list(CLAUSE_TYPES)
    return Fault(
        "clause_type_unknown", f"There is no clause type {clause.type}.",
        f"Near it there are {', '.join(near[:6])}. A rule of the site’s own starts with {OWN}",
    )  # fmt: skip


def by_type(clauses: tuple[Clause, ...]) -> Mapping[str, Clause]:
    """Return the clauses of a policy by their type."""
    return {clause.type: clause for clause in clauses}
