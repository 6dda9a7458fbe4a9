"""Find secrets in a text and redact them, saying so.

Two speeds: ``may_hold_secret`` is a chain of substring tests for bulk ingest; the rules run on hits only.
What is found is never kept: a finding holds a keyed fingerprint, a mask, the detector and the place.
"""

import hashlib
import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from security.engine import argv
from security.engine.rules import RULES, value_group

_MARKER = re.compile(r"\[REDACTED:[a-z_]+\]")
_BLANK = "\x00"
_GITHUB = re.compile(r"gh[aoprsu]_")  # "gh" alone is in weights and gh200


@dataclass(frozen=True, slots=True)
class SecretFinding:
    """One secret found: never the secret itself.

    ``start`` and ``end`` are offsets in the text that was given; ``fingerprint`` is the same for the same
    secret under the same key, wherever it is seen.
    """

    detector: str
    kind: str
    start: int
    end: int
    preview: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text that may be stored and what was taken out of it."""

    text: str
    findings: tuple[SecretFinding, ...]


@dataclass(frozen=True, slots=True)
class _Hit:
    start: int
    end: int
    kind: str
    detector: str
    rank: int


# One of these is in every text of ASCII alone that `may_hold_secret` points at: those of the first row in upper or
# lower case, those of the second as they are written. For many texts at once, where one search for all of them is
# cheap. "gh" points at much that is none.
SIGNS: Final = (
    "key", "pass", "token", "://", "login", "cre", "auth", "curl", "hf_", "sk-", "sql", "7z", "_pat_", "xox", "gh",
    "bearer", "sudo", "ldap", "pat-", "pi-", "pm_", "zip", "redis", "mariadb", "<<<", "cookie", "kinit", "_pwd",
    "gsk_", "k_live_", "r8_", "_api_", "pplx-", "xai-", "dapi",
)  # fmt: skip
EXACT_SIGNS: Final = ("IA", "Iza", "eyJ", "SG.", ":AA")
_HIDDEN = re.compile("[\u00ad\u200b\u200c\u200d\u2060\ufeff]")  # characters that show nothing


def may_hold_secret(text: str) -> bool:
    """Say whether any rule could match; ``False`` is certain, ``True`` is a guess.

    Written out because a loop over the needles, or one pattern for all of them, costs several times as much. A
    character that several needles share is asked for first. A test holds it to the needles of every rule.
    """
    t = text.lower()
    return (
        "key" in t or "pass" in t or "token" in t or "://" in t or "login" in t or "cre" in t or "auth" in t
        or "curl" in t or "sk-" in t or "sql" in t or "xox" in t or "pplx-" in t
        or ("_" in t and ("hf_" in t or "pm_" in t or "_pwd" in t or "_api_" in t))
        or ("gh" in t and _GITHUB.search(t) is not None)
        or "bearer" in t or "sudo" in t or "ldap" in t or "redis" in t or "<<<" in t
        or ("pi" in t and ("pi-" in t or "dapi" in t)) or ("pat" in t and ("pat-" in t or "_pat_" in t))
        or ("z" in t and ("7z" in t or "zip" in t or "Iza" in text)) or ("ki" in t and ("cookie" in t or "kinit" in t))
        or ("ia" in t and ("mariadb" in t or "IA" in text))
        or (t != text and (
            "eyJ" in text or "SG." in text or ":AA" in text or "xai-" in t or "r8_" in t
            or ("k_" in t and ("gsk_" in t or "k_live_" in t))
        ))
        or (not text.isascii() and _HIDDEN.search(text) is not None and may_hold_secret(_HIDDEN.sub("", text)))
    )  # fmt: skip


def _rule_hits(text: str, lowered: str) -> Iterator[_Hit]:
    for rule in RULES:
        if not any(needle in lowered for needle in rule.needles):
            continue
        for match in rule.pattern.finditer(text):
            if rule.check is None or rule.check(match):
                start, end = match.span(value_group(match))
                yield _Hit(start, end, _kind(match, rule.kind), rule.detector, rule.rank)


def _kind(match: re.Match[str], kind: str) -> str:
    """Name a value by the word before it: a password, a token or a key."""
    if "name" not in match.re.groupindex:
        return kind
    name = match["name"].lower()
    if name.startswith(("pass", "pwd")):
        return "password"
    if name == "token":
        return "token"
    return "key" if name.endswith("key") else kind


def _argument_hits(text: str, lowered: str) -> Iterator[_Hit]:
    if any(needle in lowered for needle in argv.NEEDLES):
        for start, end, kind in argv.find_argument_secrets(text):
            yield _Hit(start, end, kind, "argv", 1)


def _merge(hits: list[_Hit]) -> list[_Hit]:
    """Join overlapping hits into one span, named by the best rule of those that met."""
    merged: list[_Hit] = []
    for hit in sorted(hits, key=lambda each: (each.start, -each.rank, -each.end)):
        last = merged[-1] if merged else None
        if last is None or hit.start >= last.end:
            merged.append(hit)
            continue
        best = max(last, hit, key=lambda each: each.rank)
        merged[-1] = _Hit(last.start, max(last.end, hit.end), best.kind, best.detector, best.rank)
    return merged


def _blank(text: str, start: int, end: int) -> str:
    return text[:start] + _BLANK * (end - start) + text[end:]


def _look(text: str) -> Iterator[_Hit]:
    lowered = text.lower()
    yield from _rule_hits(text, lowered)
    yield from _argument_hits(text, lowered)


def _look_through(text: str) -> Iterator[_Hit]:
    """Look at a text without the characters that show nothing; what is found stands where it stands in the text."""
    if text.isascii() or _HIDDEN.search(text) is None:
        return
    places = [at for at, character in enumerate(text) if _HIDDEN.match(character) is None]
    for hit in _look("".join(text[at] for at in places)):
        yield replace(hit, start=places[hit.start], end=places[hit.end - 1] + 1)


def _find_all(text: str) -> list[_Hit]:
    """Look until a look finds nothing new.

    Found spans are blanked, so that offsets hold and every round leaves fewer characters to find.
    """
    found: list[_Hit] = []
    rest = _MARKER.sub(lambda marker: _BLANK * len(marker[0]), text)
    while True:
        hits = _merge([*_look(rest), *_look_through(rest)])
        if not hits:
            return sorted(found, key=lambda hit: hit.start)
        for hit in hits:
            rest = _blank(rest, hit.start, hit.end)
        found.extend(hits)


def mask(kind: str, value: str) -> str:
    """Name a secret by kind and, where it is long enough to stay secret, its last four characters."""
    return f"{kind} …{value[-4:]}" if len(value) >= 20 and kind != "private_key" else kind


def fingerprint(value: str, key: bytes) -> str:
    """Fingerprint a secret with the site's key: HMAC-SHA256, 64 hexadecimal digits."""
    return hmac.new(key, value.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def redact(text: str, *, key: bytes) -> Redaction:
    """Take every secret found out of a text and put ``[REDACTED:kind]`` in its place.

    ``key`` makes the fingerprints and must be a site secret of 16 bytes or more. Redacting a redacted text
    changes nothing.
    """
    if len(key) < 16:
        raise ValueError("The fingerprint key is shorter than 16 bytes.")
    if not may_hold_secret(text):
        return Redaction(text, ())
    parts: list[str] = []
    findings: list[SecretFinding] = []
    position = 0
    for hit in _find_all(text):
        value = _HIDDEN.sub("", text[hit.start : hit.end])
        parts += [text[position : hit.start], f"[REDACTED:{hit.kind}]"]
        findings.append(
            SecretFinding(hit.detector, hit.kind, hit.start, hit.end, mask(hit.kind, value), fingerprint(value, key))
        )
        position = hit.end
    return Redaction("".join([*parts, text[position:]]), tuple(findings))
