"""Signed bodies: a body is signed when it is written to a node's spool, so one altered or cut on disk is refused."""

import hashlib
import hmac
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, Final, ParamSpec, cast

from django.http import HttpRequest, HttpResponse

from portal.core.errors import Invalid

HEADER: Final = "X-Gatehouse-Signature"
P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


def signature_of(body: bytes, token: str) -> str:
    """Return what the header says of a body that is sent with a token."""
    return "sha256=" + hmac.new(token.encode(), body, hashlib.sha256).hexdigest()


def signed(view: View[P]) -> View[P]:
    """Let an operation take only bodies signed with the caller's token (RFC 2104, HMAC).

    Stands below the router's decorator and above `idempotent`: what is not signed leaves no answer behind. Errors:
    `Invalid` `signature_invalid`.
    """

    @wraps(view)
    def run(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        token = request.headers.get("Authorization", "").partition(" ")[2].strip()
        given = request.headers.get(HEADER, "")
        if not hmac.compare_digest(signature_of(request.body, token).encode(), given.encode(errors="replace")):
            raise Invalid(
                "The body is not the one that was signed.", code="signature_invalid",
                remedy=f"Send `{HEADER}: sha256=<HMAC-SHA256 of the body, with the token's text as key>`.",
            )  # fmt: skip
        return view(request, *args, **kwargs)

    return cast(View[P], run)
