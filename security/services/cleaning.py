"""The boundary: text from outside loses its secrets and its control characters before anything is stored."""

import re
from collections.abc import Iterable
from functools import lru_cache

from django.conf import settings
from django.utils.crypto import salted_hmac

from security.engine.redact import Redaction, fingerprint, redact

_PURPOSE = "gatehouse.security.fingerprint"
# Control characters but tab and newline, and those that turn the direction of text: evidence is to be read as it is.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_MARKER = re.compile(r"\[REDACTED:[a-z_]+\]")
MAX_MASKS = 40


@lru_cache(maxsize=4)
def _key_of(secret_key: str) -> bytes:
    return salted_hmac(_PURPOSE, "1", secret=secret_key, algorithm="sha256").digest()


def fingerprint_key() -> bytes:
    """Return the site's key for fingerprints, 32 bytes, derived from SECRET_KEY for this purpose alone."""
    return _key_of(settings.SECRET_KEY)


def cleaned(text: str) -> Redaction:
    """Return a text that may be stored, and the secrets taken out of it (fingerprints and masks only)."""
    # A lone surrogate is valid JSON and no valid UTF-8.
    valid = text.encode("utf-8", "replace").decode()
    return redact(_UNPRINTABLE.sub("\ufffd", valid.replace("\r\n", "\n")), key=fingerprint_key())


def clean_text(text: str) -> str:
    """Return a text that may be stored."""
    return cleaned(text).text.strip()


def masks_in(evidence: str, given: Iterable[str]) -> list[str]:
    """Return the parts of a cleaned evidence that stand for secrets: our markers, and those the reporter named."""
    named = (clean_text(mask) for mask in given)
    found = [*_MARKER.findall(evidence), *(mask for mask in named if mask and mask in evidence)]
    return list(dict.fromkeys(found))[:MAX_MASKS]


def foreign_fingerprint(value: str) -> str:
    """Return a reporter's fingerprint under the site's key: an unkeyed hash from the edge could be guessed back."""
    return fingerprint(f"reported:{value}", fingerprint_key()) if value else ""
