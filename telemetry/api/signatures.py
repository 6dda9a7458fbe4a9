"""Signed bodies: a body is signed with the token that it is sent with, so one altered or cut on its way is refused."""

import hashlib
import hmac
from typing import Any, Final

from django.http import HttpRequest

from portal.core.errors import Invalid
from principals.auth import requires

HEADER: Final = "X-Gatehouse-Signature"
# What an operation that takes signed bodies says of the header in its description.
DESCRIBED: Final[dict[str, Any]] = {
    "parameters": [
        {
            "in": "header", "name": HEADER, "required": True,
            "description": "HMAC-SHA256 of the body, with the token's text as key.",
            "schema": {"type": "string", "pattern": "^sha256=[0-9a-f]{64}$"},
        }
    ]
}  # fmt: skip


def signature_of(body: bytes, token: str) -> str:
    """Return what the header says of a body that is sent with a token."""
    return "sha256=" + hmac.new(token.encode(), body, hashlib.sha256).hexdigest()


class requires_signed(requires):
    """Bearer authentication for a scope that takes only bodies signed with the caller's token (RFC 2104, HMAC).

    It looks before the body is read as anything, and what is not signed leaves no answer behind. Errors: `Invalid`
    `signature_invalid`.
    """

    def __call__(self, request: HttpRequest) -> Any:
        actor = super().__call__(request)
        token = request.headers.get("Authorization", "").partition(" ")[2].strip()
        given = request.headers.get(HEADER, "")
        if not hmac.compare_digest(signature_of(request.body, token).encode(), given.encode(errors="replace")):
            raise Invalid(
                "The body is not the one that was signed.", code="signature_invalid",
                remedy=f"Send `{HEADER}: sha256=<HMAC-SHA256 of the body, with the token's text as key>`.",
            )  # fmt: skip
        return actor
