"""Settings that harnesses read system-wide, made of clauses: what to deny and what to ask about, never a program.

Claude Code reads `managed-settings.json` and `CLAUDE.md` in /etc/claude-code (code.claude.com/docs/en/settings).
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from policies.engine.aup import Aup
from policies.engine.clauses import Modality, by_type

BINDING: Final = (Modality.FORBID, Modality.REQUIRE, Modality.LIMIT)
VERBS: Final = {
    "submit": ("Bash(sbatch:*)", "Bash(srun:*)", "Bash(salloc:*)"),
    "cancel": ("Bash(scancel:*)",),
    "delete": ("Bash(rm:*)",),
    "chmod": ("Bash(chmod:*)",),
    "install": ("Bash(pip install:*)", "Bash(conda install:*)", "Bash(npm install:*)"),
}
_LISTS: Final = ("deny", "ask")


def claude_code_settings(aup: Aup) -> str:
    """Return `managed-settings.json`. It names no hook and no command to run; `settings_fault` admits no other."""
    permissions: dict[str, Any] = {"deny": sorted(_denied(aup)), "ask": sorted(_asked(aup))}
    found = {name: rules for name, rules in permissions.items() if rules}
    if _binds(aup, "autonomy.no_bypass_mode"):
        found["disableBypassPermissionsMode"] = "disable"
    return json.dumps({"permissions": found}, indent=2, sort_keys=True) + "\n"


def settings_fault(text: str) -> str:
    """Say why a settings file is not inert data of the form above; "" where it is."""
    try:
        data = json.loads(text)
    except ValueError:
        return "it is no JSON"
    if not isinstance(data, dict) or set(data) != {"permissions"} or not isinstance(data["permissions"], dict):
        return "it holds more than permissions"
    rules = data["permissions"]
    if set(rules) - {*_LISTS, "disableBypassPermissionsMode"}:
        return "it holds permissions of another kind"
    if rules.get("disableBypassPermissionsMode", "disable") != "disable":
        return "it allows to bypass permissions"
    if not all(isinstance(each, str) for name in _LISTS for each in rules.get(name, [])):
        return "its rules are no texts"
    return "" if all(isinstance(rules.get(name, []), list) for name in _LISTS) else "its rules are no lists"


def _binds(aup: Aup, name: str) -> bool:
    clause = by_type(aup.clauses).get(name)
    return clause is not None and clause.modality in BINDING


def _denied(aup: Aup) -> Iterator[str]:
    if _binds(aup, "secrets.out_of_reach"):
        for path in by_type(aup.clauses)["secrets.out_of_reach"].listed("paths"):
            yield f"Read({path})"
            yield f"Read({path.rstrip('/')}/**)"


def _asked(aup: Aup) -> Iterator[str]:
    if _binds(aup, "autonomy.ask_before"):
        for verb in by_type(aup.clauses)["autonomy.ask_before"].listed("verbs"):
            yield from VERBS.get(verb, ())
