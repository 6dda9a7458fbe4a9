"""What a check found: how it stands, in a sentence, and what would mend it."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from telemetry.engine.plain import plain

State = Literal["ok", "missing", "wrong", "unknown"]

TIERS: Final = {
    0: "assess: the first figures, from what sacct tells you",
    1: "register: the portal knows you and your agent",
    2: "serve: events instead of polling",
    3: "observe: what agents do on this node",
    4: "enforce: labels, budgets and sandboxes",
}
_MARKS: Final[dict[State, str]] = {"ok": "ok", "missing": "--", "wrong": "!!", "unknown": "??"}


@dataclass(frozen=True)
class Finding:
    """One line: `wrong` stops the tier, `missing` is what it could still have, `unknown` could not be looked at."""

    tier: int
    code: str
    state: State
    said: str
    fix: str = ""


def as_data(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return findings as they go into JSON."""
    return [asdict(finding) for finding in findings]


def describe(findings: Sequence[Finding]) -> str:
    """Return findings in lines, tier by tier, each with its fix below it."""
    lines: list[str] = []
    for tier in sorted({finding.tier for finding in findings}):
        lines += ([""] if lines else []) + [f"T{tier} {TIERS[tier]}"]
        for finding in findings:
            if finding.tier == tier:
                lines += [f"  {_MARKS[finding.state]} {plain(finding.said)}"]
                lines += [f"       {plain(line)}" for line in finding.fix.splitlines()]
    wrong = sum(finding.state == "wrong" for finding in findings)
    missing = sum(finding.state == "missing" for finding in findings)
    unknown = sum(finding.state == "unknown" for finding in findings)
    return "\n".join([*lines, "", f"{wrong} wrong (!!), {missing} missing (--), {unknown} not known (??)."])
