"""Which names and attributes of a harness are looked at, and what they count for: `harnesses.toml`, read once."""

import tomllib
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final

from telemetry.engine.otel.measures import ACCEPTED, AUTOMATIC, MCP, OTHER, PLAIN, REJECTED

_HIDDEN: Final = frozenset({"", "<REDACTED>", "[REDACTED]"})  # what harnesses write where they leave a prompt out
_MCP: Final = "mcp__"


@dataclass(frozen=True, slots=True)
class Rule:
    """What a metric's point or an event counts for. See the head of `harnesses.toml`."""

    measure: str = ""
    by: str = ""
    of: MappingOf[str, str] = field(default_factory=dict)
    values: MappingOf[str, str] = field(default_factory=dict)
    decides: bool = False
    when: MappingOf[str, str] = field(default_factory=dict)
    present: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """How a harness says what became of a tool it wanted to use."""

    attribute: str
    tool: str
    source: str
    accepted: frozenset[str]
    rejected: frozenset[str]
    automatic: frozenset[str]


@dataclass(frozen=True, slots=True)
class Mapping:
    """All that is looked at of one harness."""

    prefix: str
    session: str
    tools: frozenset[str]
    prompts: frozenset[str]
    remedy: str
    settings: str
    decision: Decision
    metrics: MappingOf[str, tuple[Rule, ...]]
    events: MappingOf[str, tuple[Rule, ...]]

    def decided(self, told: MappingOf[str, Any]) -> str:
        """Return the measure of a decision; "" for one we do not know."""
        how = self.decision
        said, source = str(told.get(how.attribute, "")), str(told.get(how.source, ""))
        if source.lower() in how.automatic:
            return AUTOMATIC + self.tool_of(told)
        if said in how.accepted:
            return ACCEPTED + self.tool_of(told)
        return REJECTED + self.tool_of(told) if said in how.rejected else ""

    def tool_of(self, told: MappingOf[str, Any]) -> str:
        """Return the name of a tool: one of the harness's own, `mcp`, or `other`."""
        name = str(told.get(self.decision.tool, ""))
        if name in self.tools:
            return name
        return MCP if name.startswith(_MCP) else OTHER

    def holds_prompt(self, told: MappingOf[str, Any]) -> bool:
        """Say whether a record's attributes hold what was said to the model or by it."""
        return any(told[name] not in _HIDDEN for name in self.prompts if name in told)


def is_of_another(name: str, harness: Mapping) -> bool:
    """Say whether a name is one of another harness than the one it is told for."""
    return any(name.startswith(each.prefix) for each in _mappings().values() if each is not harness)


@cache
def mapping_of(harness: str) -> Mapping | None:
    """Return what is looked at of a harness; None for one of which nothing is known."""
    return _mappings().get(harness)


@cache
def _mappings() -> dict[str, Mapping]:
    text = files("telemetry.engine.otel").joinpath("harnesses.toml").read_text(encoding="utf-8")
    return {name: _mapping(table) for name, table in tomllib.loads(text).items()}


def _mapping(table: MappingOf[str, Any]) -> Mapping:
    how = table["decision"]
    return Mapping(
        prefix=table["prefix"],
        session=table["session"],
        tools=_words(table["tools"]),
        prompts=_words(table["prompts"]),
        remedy=table["remedy"],
        settings=table["settings"].strip(),
        decision=Decision(
            how["attribute"], how["tool"], how["source"],
            _words(how["accepted"]), _words(how["rejected"]), _words(how["automatic"]),
        ),
        metrics={name: tuple(map(_rule, rules)) for name, rules in table["metrics"].items()},
        events={name: tuple(map(_rule, rules)) for name, rules in table["events"].items()},
    )  # fmt: skip


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _rule(table: MappingOf[str, Any]) -> Rule:
    rule = Rule(
        measure=table.get("measure", ""),
        by=table.get("by", ""),
        of=table.get("is", {}),
        values=table.get("values", {}),
        decides=table.get("decides", False),
        when=table.get("when", {}),
        present=table.get("present", ""),
    )
    if unknown := {rule.measure, *rule.of.values(), *rule.values.values()} - PLAIN - {""}:
        raise ValueError(f"harnesses.toml names measures that there are not: {sorted(unknown)}")
    return rule
