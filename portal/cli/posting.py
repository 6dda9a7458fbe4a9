"""Posting signed bodies to a portal, for those who do it again and again: what an answer means, how long to wait."""

import hashlib
import hmac
import random
import sys
from collections.abc import Callable, Mapping

from portal.cli import client
from telemetry.engine.plain import plain

# What a portal may answer and still take later: a token that is mended, a disk that has room again, less hurry.
NOT_FINAL = frozenset({401, 403, 408, 413, 429})
OTHER_TOKEN = frozenset({401, 403})  # what a token that was replaced is answered
_LONGEST_WORDS = 300


class Poster:
    """What posts bodies to one address below /api/v1 of a portal, signed with the token of now.

    `read` reads the token anew, once the portal does not take it any more: it may have been replaced. Errors of it:
    `OSError`, `PortalUnreachable`.
    """

    def __init__(self, url: str, path: str, token: str, read: Callable[[], str]) -> None:
        self._url, self._path, self._token, self._read = url, path, token, read
        self._is_told = False

    def post(self, body: bytes, headers: Mapping[str, str] | None = None) -> client.Answer:
        """Post a body; once more where there is another token by now. Errors: `PortalUnreachable`."""
        answer = self._post(body, headers or {})
        return self._post(body, headers or {}) if answer.status in OTHER_TOKEN and self._renew() else answer

    def _post(self, body: bytes, headers: Mapping[str, str]) -> client.Answer:
        signed = {**headers, "X-Gatehouse-Signature": sign(self._token.encode(), body)}
        return client.post(self._url, self._path, token=self._token, body=body, headers=signed)

    def _renew(self) -> bool:
        """Read the token anew; say whether it is another one."""
        before = self._token
        try:
            self._token = self._read()
        except (OSError, client.PortalUnreachable) as error:
            if not self._is_told:
                self._is_told = True
                say(f"The token cannot be read anew, only by a new start: {error}")
        return self._token != before


def sign(token: bytes, body: bytes) -> str:
    """Return the signature of a body: HMAC-SHA-256 (RFC 2104) with the token's text as key."""
    return f"sha256={hmac.new(token, body, hashlib.sha256).hexdigest()}"


def is_taken(answer: client.Answer) -> bool:
    """Say whether the portal took a body."""
    return 200 <= answer.status < 300


def is_refused(answer: client.Answer) -> bool:
    """Say whether the portal will never take a body."""
    return 400 <= answer.status < 500 and answer.status not in NOT_FINAL and not answer.retry_after_s


def wait_after(failures: int, asked_s: float | None, *, first_s: float, longest_s: float) -> float:
    """Return how many seconds to wait after so many failures: longer each time, not all at once, as asked at least."""
    wait_s = min(longest_s, first_s * 2.0 ** min(failures - 1, 10))
    return max(wait_s * random.uniform(0.5, 1.5), asked_s or 0.0)  # noqa: S311 - no secret


def words_of(answer: client.Answer) -> str:
    """Return what a portal answered, as one line to tell."""
    said = answer.said
    text = f"{said.get('detail') or said.get('title') or ''} [{said.get('code', '')}] {said.get('remedy') or ''}"
    return f"HTTP {answer.status} {text}".strip()


def say(text: str) -> None:
    """Write a line to standard error; what came from elsewhere cannot drive a terminal."""
    print(plain(text)[:_LONGEST_WORDS], file=sys.stderr, flush=True)
