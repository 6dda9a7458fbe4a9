"""Keys and signatures of deliveries, in the form of Standard Webhooks (standardwebhooks.com, specification 1.0.0).

A key is derived from one of the site's peppers, so that none is stored.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterable
from typing import Final

PREFIX: Final = "whsec_"  # by which libraries for receivers know a key


def derive_key(pepper: bytes, webhook: str, generation: int) -> bytes:
    """Return the key of one generation of a webhook, 32 bytes."""
    return hmac.new(pepper, f"gatehouse.webhook\n{webhook}\n{generation}".encode(), hashlib.sha256).digest()


def written(key: bytes) -> str:
    """Write a key as its receiver takes it: `whsec_` and base64."""
    return PREFIX + base64.b64encode(key).decode()


def headers(keys: Iterable[bytes], *, delivery: str, at_s: int, body: bytes) -> dict[str, str]:
    """Return the three headers that prove a delivery: one signature for each key, parted by spaces."""
    signed = f"{delivery}.{at_s}.".encode() + body
    signatures = (base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode() for key in keys)
    return {
        "webhook-id": delivery,
        "webhook-timestamp": str(at_s),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
