"""A small client of the REST API: the standard library alone, so that a login node installs nothing else.

What opens connections is imported when a request is made: `gatehouse --help` does not wait for it.
"""

import json
import os
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from urllib.request import OpenerDirector

DEFAULT_TOKEN_FILE = "~/.config/gatehouse/token"  # noqa: S105 - a path
TIMEOUT_S = 20


class PortalUnreachable(Exception):
    """The portal does not answer, or address or token are not configured."""


class PortalRefused(Exception):
    """The portal answered with a problem (RFC 9457)."""

    def __init__(self, problem: dict[str, Any]) -> None:
        super().__init__(problem.get("detail", ""))
        self.problem = problem


def portal_url() -> str:
    """Return the portal's address: GATEHOUSE_URL, or the demo's. Errors: `PortalUnreachable` where it is none."""
    from urllib.parse import urlsplit

    text = os.environ.get("GATEHOUSE_URL", "http://127.0.0.1:8000").rstrip("/")
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and not (parts.query or parts.fragment)
        _ = parts.port
    except ValueError:
        is_address = False
    if not is_address:
        raise PortalUnreachable(f"GATEHOUSE_URL is {text!r}; it must be like https://gatehouse.example.org")
    return text


def token() -> str:
    """Return the token: GATEHOUSE_TOKEN, or the file GATEHOUSE_TOKEN_FILE names, which only its owner may read."""
    if text := os.environ.get("GATEHOUSE_TOKEN"):
        return _checked(text, "GATEHOUSE_TOKEN")
    path = Path(os.environ.get("GATEHOUSE_TOKEN_FILE", DEFAULT_TOKEN_FILE)).expanduser()
    try:
        mode = path.stat().st_mode
        if mode & 0o077:
            raise PortalUnreachable(f"Others can read {path}. Run: chmod 600 {path}")
        return _checked(path.read_text(encoding="utf-8", errors="replace"), str(path))
    except OSError as error:
        raise PortalUnreachable(
            f"No token ({error.strerror}). Set GATEHOUSE_TOKEN, or write it to {path} (mode 0600)."
        ) from None


def _checked(text: str, place: str) -> str:
    text = text.strip()
    if not text or not text.isascii() or not text.isprintable():
        raise PortalUnreachable(f"What stands in {place} is no token: one line of plain characters.")
    return text


def get(path: str) -> dict[str, Any]:
    """GET an address below /api/v1 and return its JSON.

    Errors: `PortalRefused` with the problem the portal gave, `PortalUnreachable` where it gave none.
    """
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import Request

    url = portal_url()
    request = Request(  # noqa: S310 - `portal_url` lets http and https through alone
        f"{url}/api/v1{path}", headers={"Authorization": f"Bearer {token()}", "User-Agent": "gatehouse"}
    )
    try:
        with _opener().open(request, timeout=TIMEOUT_S) as response:
            return _object(response)
    except HTTPError as error:
        with error:
            raise PortalRefused(_problem(error.code, error)) from None
    except URLError as error:
        raise PortalUnreachable(f"{url} does not answer: {error.reason}") from None
    except (OSError, HTTPException, ValueError) as error:
        raise PortalUnreachable(f"{url} does not answer: {error or type(error).__name__}") from None


def _opener() -> "OpenerDirector":
    """Return what opens requests and follows no redirect: a token goes where the site said, nowhere else."""
    from urllib.request import HTTPRedirectHandler, build_opener

    class StayHere(HTTPRedirectHandler):
        def redirect_request(self, *args: Any, **kwargs: Any) -> None:
            return None

    return build_opener(StayHere)


def _object(response: IO[bytes]) -> dict[str, Any]:
    body = json.load(response)
    if not isinstance(body, dict):
        raise ValueError("the answer is not a Gatehouse portal's")
    return body


def _problem(status: int, response: IO[bytes]) -> dict[str, Any]:
    try:
        return _object(response)
    except (ValueError, OSError):
        return {"title": f"The portal answered HTTP {status}.", "detail": "", "code": f"http_{status}"}
