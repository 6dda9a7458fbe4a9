"""A small client of the REST API: the standard library alone, so that a login node installs nothing else."""

import json
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

DEFAULT_TOKEN_FILE = "~/.config/gatehouse/token"  # noqa: S105 - a path
TIMEOUT_S = 20


class PortalUnreachable(Exception):
    """The portal does not answer, or no token is configured."""


class PortalRefused(Exception):
    """The portal answered with a problem (RFC 9457)."""

    def __init__(self, problem: dict[str, Any]) -> None:
        super().__init__(problem.get("detail", ""))
        self.problem = problem


def portal_url() -> str:
    """Return the portal's address: GATEHOUSE_URL, or the demo's."""
    return os.environ.get("GATEHOUSE_URL", "http://127.0.0.1:8000").rstrip("/")


def token() -> str:
    """Return the token: GATEHOUSE_TOKEN, or the file GATEHOUSE_TOKEN_FILE names, which only its owner may read."""
    if text := os.environ.get("GATEHOUSE_TOKEN"):
        return text.strip()
    path = Path(os.environ.get("GATEHOUSE_TOKEN_FILE", DEFAULT_TOKEN_FILE)).expanduser()
    try:
        mode = path.stat().st_mode
    except OSError:
        raise PortalUnreachable(f"No token. Set GATEHOUSE_TOKEN, or write it to {path} (mode 0600).") from None
    if mode & 0o077:
        raise PortalUnreachable(f"Others can read {path}. Run: chmod 600 {path}")
    return path.read_text(encoding="utf-8").strip()


def get(path: str) -> dict[str, Any]:
    """GET an address below /api/v1 and return its JSON.

    Errors: `PortalRefused` with the problem the portal gave, `PortalUnreachable` where it gave none.
    """
    request = urllib.request.Request(  # noqa: S310 - the address is the site's own setting
        f"{portal_url()}/api/v1{path}",
        headers={"Authorization": f"Bearer {token()}", "User-Agent": "gatehouse"},
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310
            body: dict[str, Any] = json.load(response)
            return body
    except urllib.error.HTTPError as error:
        with error:
            raise PortalRefused(_problem(error)) from None
    except (urllib.error.URLError, TimeoutError, ValueError) as error:
        raise PortalUnreachable(f"{portal_url()} does not answer: {error}") from None


def _problem(error: urllib.error.HTTPError) -> dict[str, Any]:
    try:
        problem = json.load(error)
    except ValueError:
        problem = None
    return problem if isinstance(problem, dict) else {"title": f"HTTP {error.code}", "detail": "", "code": ""}
