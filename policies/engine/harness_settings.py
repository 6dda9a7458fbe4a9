"""Settings that harnesses read system-wide, made of clauses: what to deny and what to ask about, never a program.

Claude Code reads `managed-settings.json` and `CLAUDE.md` in /etc/claude-code (code.claude.com/docs/en/settings).
The others are documented, not tried. Codex reads /etc/codex/requirements.toml
(developers.openai.com/codex/enterprise/managed-configuration), Gemini CLI /etc/gemini-cli/settings.json
(geminicli.com/docs/cli/enterprise). Each gets what its documentation has for a clause, and no more.
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
_NOTHING_TOML: Final = "# No clause of the policy asks for more.\n"
_ASKS_TOML: Final = """\
allowed_approval_policies = ["untrusted", "on-request"]
allowed_sandbox_modes = ["read-only", "workspace-write"]
"""
_NOTHING_JSON: Final = "{}\n"
_ASKS_JSON: Final = '{\n  "security": {\n    "disableYoloMode": true\n  }\n}\n'


def claude_code_settings(aup: Aup) -> str:
    """Return `managed-settings.json`. It names no hook and no command to run; `settings_fault` admits no other."""
    permissions: dict[str, Any] = {"deny": sorted(_denied(aup)), "ask": sorted(_asked(aup))}
    found = {name: rules for name, rules in permissions.items() if rules}
    if _binds(aup, "autonomy.no_bypass_mode"):
        found["disableBypassPermissionsMode"] = "disable"
    return json.dumps({"permissions": found}, indent=2, sort_keys=True) + "\n"


def codex_requirements(aup: Aup) -> str:
    """Return `requirements.toml`: no bypass of questions and of the sandbox, where a clause forbids it."""
    return _ASKS_TOML if _binds(aup, "autonomy.no_bypass_mode") else _NOTHING_TOML


def gemini_settings(aup: Aup) -> str:
    """Return Gemini CLI's `settings.json`: no YOLO mode, where a clause forbids it."""
    return _ASKS_JSON if _binds(aup, "autonomy.no_bypass_mode") else _NOTHING_JSON


def codex_fault(text: str) -> str:
    """Say why requirements are not one of the two texts above; "" where they are."""
    return "" if text in (_ASKS_TOML, _NOTHING_TOML) else "it holds other requirements than a policy makes"


def gemini_fault(text: str) -> str:
    """Say why Gemini CLI's settings are not one of the two texts above; "" where they are."""
    return "" if text in (_ASKS_JSON, _NOTHING_JSON) else "it holds other settings than a policy makes"


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
