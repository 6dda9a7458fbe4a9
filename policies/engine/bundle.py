"""What nodes read of the policy: inert files, a manifest with a version that only rises, and a signature beside it.

The key that signs does not live on the web host. A node checks signature, manifest and every file before it uses one.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from policies.engine.agents_md import SKILL, agents_md, skill_md
from policies.engine.aup import Aup, aup_digest
from policies.engine.clauses import Clause, Fault
from policies.engine.ed25519 import is_signed
from policies.engine.harness_settings import (
    claude_code_settings,
    codex_fault,
    codex_requirements,
    gemini_fault,
    gemini_settings,
    settings_fault,
)

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
SIGNATURE: Final = "manifest.sig"
POLICY: Final = "agent-policy.json"
SETTINGS: Final = "claude-code/managed-settings.json"
LARGEST: Final = 256 * 1024
CODEX: Final = "codex/requirements.toml"
GEMINI: Final = "gemini-cli/settings.json"
FILES: Final = ("AGENTS.md", f"skills/{SKILL}/SKILL.md", "claude-code/CLAUDE.md", SETTINGS, CODEX, GEMINI, POLICY)
_FAULTS: Final[Mapping[str, Callable[[str], str]]] = {
    SETTINGS: settings_fault, CODEX: codex_fault, GEMINI: gemini_fault,
}  # fmt: skip
_TO_EXPORT: Final = "Export and sign the policy anew, and deliver all of it."


@dataclass(frozen=True, slots=True)
class Checked:
    """A bundle that holds: its version, its policy, and its files by path."""

    serial: int
    policy: str
    files: Mapping[str, bytes]


class BundleError(ValueError):
    """A bundle that must not be used."""

    def __init__(self, code: str, sentence: str, remedy: str = _TO_EXPORT) -> None:
        super().__init__(sentence)
        self.fault = Fault(code, sentence, remedy)


def policy_document(aup: Aup, *, url: str, public: bool = False) -> dict[str, Any]:
    """Return the policy as JSON. In public no lab is named, and no path, host or project."""
    return {
        "format": FORMAT,
        "version": aup.version,
        "title": aup.title,
        "effective": aup.effective,
        "digest": aup_digest(aup),
        "page": f"{url}/aup/",
        "agents_md": f"{url}/api/v1/site/agents.md",
        "api": f"{url}/api/v1/",
        "polls": polls(aup),
        "clauses": [_clause(clause, public=public) for clause in aup.clauses],
    }


def polls(aup: Aup) -> dict[str, float]:
    """Return the budgets of asking: by clause, its number; a client may hold itself to them."""
    names = {
        "scheduler.poll_min_s": "scheduler_min_gap_s", "scheduler.no_loops": "scheduler_queries_per_minute",
        "scheduler.portal_questions": "portal_questions_per_minute",
    }  # fmt: skip
    return {names[each.type]: each.value for each in aup.clauses if each.type in names and each.value is not None}


def _clause(clause: Clause, *, public: bool) -> dict[str, Any]:
    labs = clause.applies.labs
    said: dict[str, Any] = {
        "type": clause.type, "modality": clause.modality.value, "value": clause.value, "unit": clause.unit,
        "place": list(clause.place), "standing": clause.standing.value, "action": clause.action.value,
        "applies": {
            "labs": ["some"] if public and "*" not in labs else list(labs),
            "data_class": list(clause.applies.data_class), "harness": list(clause.applies.harness),
        },
        "text": clause.text_agent, "source": clause.source,
    }  # fmt: skip
    if not public:
        said["parameters"] = {name: list(each) if isinstance(each, tuple) else each for name, each in clause.parameters}
    return said


def make_files(aup: Aup, *, url: str) -> dict[str, bytes]:
    """Return the files of a policy by path; the same policy gives the same bytes."""
    told = agents_md(aup, url=url)
    settings = (claude_code_settings(aup), codex_requirements(aup), gemini_settings(aup))
    texts = (told, skill_md(aup, url=url), told, *settings, _json(policy_document(aup, url=url)))
    return {name: text.encode() for name, text in zip(FILES, texts, strict=True)}


def make_manifest(aup: Aup, files: Mapping[str, bytes], *, serial: int, url: str) -> bytes:
    """Return the manifest that is signed: version, policy and the digest of every file."""
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    whole = {
        "format": FORMAT, "serial": serial, "policy": aup.version, "digest": aup_digest(aup), "portal": url,
        "files": digests,
    }  # fmt: skip
    return _json(whole).encode()


def next_serial(now_s: int, before: int) -> int:
    """Return a version above the one before; seconds since 1970 rise even where the last bundle is lost."""
    return max(now_s, before + 1)


def serial_of(manifest: bytes) -> int:
    """Return the version that a manifest says, 0 where it says none."""
    try:
        found = json.loads(manifest).get("serial", 0)
    except (ValueError, AttributeError):
        return 0
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0


def check(read: Callable[[str], bytes], *, key: bytes, seen: int = 0) -> Checked:
    """Return a bundle that `read` gives file by file, if it is whole, signed by `key` and not older than `seen`.

    Errors: `BundleError` with a code and a remedy; what `read` raises (`OSError`) goes through.
    """
    manifest = read(MANIFEST)
    try:
        signature = base64.b64decode(read(SIGNATURE).strip(), validate=True)
    except binascii.Error:
        raise BundleError("signature_form", "The signature is not of our form.") from None
    if not is_signed(key, manifest, signature):
        raise BundleError("signature_wrong", "The signature is not of this key over this manifest.")
    said = _read_manifest(manifest)
    serial = serial_of(manifest)
    if serial < seen:
        raise BundleError("serial_old", f"Version {serial} is older than {seen}, which was used here before.")
    files = {name: _file(name, read(name), said["files"][name]) for name in FILES}
    return Checked(serial, said["policy"], files)


def _read_manifest(manifest: bytes) -> dict[str, Any]:
    try:
        said = json.loads(manifest)
    except ValueError:
        said = None
    form = isinstance(said, dict) and said.get("format") == FORMAT and isinstance(said.get("policy"), str)
    if not form or not serial_of(manifest) or not isinstance(said.get("files"), dict):
        raise BundleError("manifest_form", "The manifest is not of our form.", "Update `gatehouse` on this node.")
    if set(said["files"]) != set(FILES):
        raise BundleError("manifest_files", "The manifest names other files than a policy has.")
    whole: dict[str, Any] = said
    return whole


def _file(name: str, content: bytes, digest: object) -> bytes:
    if hashlib.sha256(content).hexdigest() != digest:
        raise BundleError("file_changed", f"{name} is not the file that was signed.")
    if len(content) > LARGEST:
        raise BundleError("file_large", f"{name} is larger than {LARGEST} bytes.")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise BundleError("file_form", f"{name} is no text.") from None
    fault = _FAULTS[name](text) if name in _FAULTS else ""
    if fault:
        raise BundleError("file_form", f"{name}: {fault}.")
    return content


def _json(whole: Mapping[str, Any]) -> str:
    return json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
