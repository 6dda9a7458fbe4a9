"""A small client of the REST API: the standard library alone, so that a login node installs nothing else.

What opens connections is imported when a request is made: `gatehouse --help` does not wait for it.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from urllib.request import OpenerDirector, Request

DEFAULT_TOKEN_FILE = "~/.config/gatehouse/token"  # noqa: S105 - a path
TIMEOUT_S = 20
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_WHICH = "GATEHOUSE_URL says which portal is asked."


class PortalUnreachable(Exception):
    """The portal does not answer, or address or token are not configured."""


class PortalRefused(Exception):
    """The portal answered with a problem (RFC 9457), and with this status."""

    def __init__(self, problem: dict[str, Any], status: int) -> None:
        super().__init__(problem.get("detail", ""))
        self.problem = problem
        self.status = status


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
    """Return the token: GATEHOUSE_TOKEN, the file that GATEHOUSE_TOKEN_FILE names, that of a login, the default file.

    Only its owner may read a file with one.
    """
    if text := os.environ.get("GATEHOUSE_TOKEN"):
        return _checked(text, "GATEHOUSE_TOKEN")
    if "GATEHOUSE_TOKEN_FILE" not in os.environ:
        from portal.cli import session_file

        if file := session_file.find(portal_url()):
            return read_token(file)
    path = Path(os.environ.get("GATEHOUSE_TOKEN_FILE", DEFAULT_TOKEN_FILE)).expanduser()
    try:
        return read_token(path)
    except OSError as error:
        raise PortalUnreachable(
            f"No token ({error.strerror}). Run gatehouse login, set GATEHOUSE_TOKEN, or write it to {path} (mode 0600)."
        ) from None


def read_token(path: Path) -> str:
    """Return the token in a file. Errors: `OSError`, `PortalUnreachable` for one that others can read, or no token."""
    if path.stat().st_mode & 0o077:
        raise PortalUnreachable(f"Others can read {path}. Run: chmod 600 {path}")
    return _checked(path.read_text(encoding="utf-8", errors="replace"), str(path))


def _checked(text: str, place: str) -> str:
    text = text.strip()
    if not text or not text.isascii() or not text.isprintable():
        raise PortalUnreachable(f"What stands in {place} is no token: one line of plain characters.")
    return text


def get(path: str, *, timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
    """GET an address below /api/v1 and return its JSON.

    Errors: `PortalRefused` with the problem the portal gave, `PortalUnreachable` where it gave none.
    """
    with asking(path, timeout_s=timeout_s) as response:
        return _object(response)


@contextmanager
def asking(path: str, *, timeout_s: float = TIMEOUT_S) -> Iterator[IO[bytes]]:
    """GET an address below /api/v1 and give the answer to be read, each time within `timeout_s`.

    Errors, also while it is read: `PortalRefused` with the problem the portal gave, `PortalUnreachable` without one.
    """
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import Request

    url = portal_url()
    request = Request(  # noqa: S310 - `portal_url` lets http and https through alone
        f"{url}/api/v1{path}", headers={"Authorization": f"Bearer {token()}", "User-Agent": "gatehouse"}
    )
    try:
        with _opener().open(request, timeout=timeout_s) as response:
            yield response
    except HTTPError as error:
        with error:
            raise PortalRefused(_problem(error.code, error), error.code) from None
    except URLError as error:
        raise PortalUnreachable(f"{url} does not answer: {error.reason}. {_WHICH}") from None
    except (OSError, HTTPException, ValueError) as error:
        raise PortalUnreachable(f"{url} does not answer: {error or type(error).__name__}. {_WHICH}") from None


def is_loopback(url: str) -> bool:
    """Say whether an address is this machine's own."""
    from urllib.parse import urlsplit

    return urlsplit(url).hostname in LOOPBACK


def ask(url: str, path: str) -> "Answer":
    """GET a path of a portal without a token, and return what it answers, also where it refuses.

    Errors: `PortalUnreachable` where nothing answers, or what is no answer of HTTP. `url` is http or https.
    """
    from urllib.request import Request

    return _answer_to(url, Request(f"{url}{path}", headers={"User-Agent": "gatehouse"}))  # noqa: S310 - see above


def load() -> None:
    """Import all that a request needs now, for a process that may not read it any more once it asks."""
    from importlib import import_module

    encodings = ("encodings.ascii", "encodings.idna", "encodings.latin_1")
    for name in ("http.client", "ssl", "urllib.request", "email.utils", *encodings):
        import_module(name)


class Answer(NamedTuple):
    """What a portal, or whatever stands before it, answered. `retry_after_s`: how long it asks to wait, if it does;
    `date_s`: what its clock says, in seconds since 1970."""

    status: int
    said: dict[str, Any]
    retry_after_s: float | None
    date_s: float | None = None


def post(
    url: str, path: str, *, token: str, body: bytes, headers: Mapping[str, str], timeout_s: float = TIMEOUT_S
) -> Answer:  # fmt: skip
    """POST JSON to an address below /api/v1 of a portal, and return what it answers, also where it refuses.

    Errors: `PortalUnreachable` where nothing answers, or what is no answer of HTTP. `url` is http or https.
    """
    from urllib.request import Request

    own = {
        **({"Authorization": f"Bearer {token}"} if token else {}),
        "User-Agent": "gatehouse",
        "Content-Type": "application/json",
    }
    request = Request(f"{url}/api/v1{path}", body, {**own, **headers}, method="POST")  # noqa: S310 - see above
    return _answer_to(url, request, timeout_s)


def _answer_to(url: str, request: "Request", timeout_s: float = TIMEOUT_S) -> Answer:
    from http.client import HTTPException
    from urllib.error import HTTPError

    try:
        with _opener().open(request, timeout=timeout_s) as response:
            return Answer(response.status, _object(response), None, _date_of(response.headers.get("Date")))
    except HTTPError as error:
        with error:
            wait = error.headers.get("Retry-After", "")
            wait_s = float(wait) if wait.isdecimal() else None
            return Answer(error.code, _problem(error.code, error), wait_s, _date_of(error.headers.get("Date")))
    except (OSError, HTTPException, ValueError) as error:
        why = getattr(error, "reason", "") or error or type(error).__name__
        raise PortalUnreachable(f"{url} does not answer: {why}") from None


def _opener() -> "OpenerDirector":
    """Return what opens requests and follows no redirect: a token goes where the site said, nowhere else."""
    from urllib.request import HTTPRedirectHandler, build_opener

    class StayHere(HTTPRedirectHandler):
        def redirect_request(self, *args: Any, **kwargs: Any) -> None:
            return None

    return build_opener(StayHere)


def _date_of(text: str | None) -> float | None:
    """Return what a `Date` says (RFC 9110); None for what is none."""
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except (ValueError, OverflowError):
        return None


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
