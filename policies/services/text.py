"""The boundary of `policies`: words of agents and people lose secrets and control characters before they are stored."""

import re

from django.conf import settings
from django.utils.crypto import salted_hmac

from security.engine.redact import redact

# Control characters but tab and newline, and those that turn the direction of text.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def stored_text(text: str, limit: int) -> str:
    """Return a text that may be stored, cut to `limit` characters."""
    # A lone surrogate is valid JSON and no valid UTF-8.
    valid = text.encode("utf-8", "replace").decode()
    key = salted_hmac("policies.text", "1", secret=settings.SECRET_KEY, algorithm="sha256").digest()
    return redact(_UNPRINTABLE.sub("\ufffd", valid.replace("\r\n", "\n")), key=key).text.strip()[:limit]
