"""Sending what waits in the spool: the oldest first, again and again until it arrives or never will."""

import hashlib
import hmac
import json
import random
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from portal.cli import client
from portal.cli.collect.spool import Spool, Waiting

PATH = "/ingest/activity"
FIRST_WAIT_S = 5.0
LONGEST_WAIT_S = 900.0
SPREAD_S = 10.0  # nodes make their batches at the same second
# What a portal may answer and still take later: a token that is mended, a disk that has room again, less hurry.
NOT_FINAL = frozenset({401, 403, 408, 413, 429})
OTHER_TOKEN = frozenset({401, 403})  # what a token that was replaced is answered
AHEAD = "future_date"  # the code of a batch whose end is still to come, by the portal's clock
AHEAD_S = 300.0  # so much the portal lets pass
LOOK_AGAIN_S = 60.0  # at batches that are ahead
LONGEST_HOLD_S = 3600.0

TAKEN, REFUSED, HELD = 0.0, -1.0, -2.0  # no seconds to wait

Post = Callable[[Waiting], client.Answer]
_LONGEST_WORDS = 300


class Sender(threading.Thread):
    """Send batches until told to stop. What cannot be sent waits on disk."""

    def __init__(self, spool: Spool, post: Post, *, spread_s: float = SPREAD_S):
        super().__init__(name="sender", daemon=True)
        self._spool, self._post, self._spread_s = spool, post, spread_s
        self._failures = 0
        self._is_last = threading.Event()
        self._held: dict[str, float] = {}  # until when, by a clock that nobody sets
        self._ahead_s = 0
        self._is_ahead_told = False

    @property
    def clock_ahead_s(self) -> int:
        """How far this node's clock was ahead of the portal's at its last answer, in whole seconds."""
        return self._ahead_s

    def run(self) -> None:
        """Send what waits; then wait for more."""
        is_last = False
        while not is_last:
            self._spool.arrived.clear()
            is_last = self._is_last.is_set()
            try:
                self.send_all()
            except OSError as error:
                self._wait(self._later(f"the spool cannot be read: {error.strerror}", None))
            if not (is_last or self._spool.waiting()):
                self._spool.arrived.wait()
                self._wait(random.uniform(0, self._spread_s))  # noqa: S311 - no secret

    def finish(self, timeout_s: float) -> None:
        """Let it try what waits once more, without waiting for anything, and end. What is left stays on disk."""
        self._is_last.set()
        self._spool.arrived.set()
        self.join(timeout_s)

    def send_all(self) -> None:
        """Send what waits, until nothing does, or the portal has to be waited for: that is done here too.

        What is ahead of the portal's clock holds up no other.
        """
        paths = self._spool.waiting()
        self._held = {path.name: self._held[path.name] for path in paths if path.name in self._held}
        for path in paths:
            if self._held.get(path.name, 0) > time.monotonic():
                continue
            waiting = self._spool.read(path)
            outcome = self._send(waiting) if waiting else REFUSED
            if outcome == TAKEN:
                self._spool.remove(path)
            elif outcome == REFUSED:
                self._spool.reject(path)
            elif outcome == HELD and waiting:
                self._held[path.name] = time.monotonic() + self._hold_s(waiting)
            else:
                self._wait(outcome)
                return
        if self._held:
            self._wait(LOOK_AGAIN_S)

    def _send(self, waiting: Waiting) -> float:
        """Try once: `TAKEN`, `REFUSED` for good, `HELD` by a clock, or how many seconds to wait."""
        try:
            answer = self._post(waiting)
        except client.PortalUnreachable as error:
            return self._later(str(error), None)
        if answer.date_s is not None:
            self._ahead_s = round(time.time() - answer.date_s)
        is_taken = 200 <= answer.status < 300
        if not is_taken and (answer.status in NOT_FINAL or not 400 <= answer.status < 500 or answer.retry_after_s):
            return self._later(_words(answer), answer.retry_after_s)
        if self._failures:
            _say("The portal takes batches again.")
        self._failures = 0
        if is_taken:
            self._note_rejected(answer)
            self._is_ahead_told = self._is_ahead_told and self._ahead_s >= AHEAD_S
            return TAKEN
        if answer.said.get("code") == AHEAD:
            self._tell_ahead()
            return HELD
        _say(f"Batch {waiting.id} was refused and set aside: {_words(answer)}")
        return REFUSED

    def _tell_ahead(self) -> None:
        if not self._is_ahead_told:
            self._is_ahead_told = True
            by = f" by {self._ahead_s} seconds" if self._ahead_s > 0 else ""
            _say(f"This node's clock is ahead of the portal's{by}: batches wait for their time. Set the clock.")

    def _hold_s(self, waiting: Waiting) -> float:
        """Return how long the portal's clock takes to the time that it takes a batch at."""
        until_s = time.time()
        with suppress(ValueError, KeyError, TypeError):
            until_s = datetime.fromisoformat(json.loads(waiting.body)["to"]).timestamp()
        early_s = until_s - AHEAD_S - (time.time() - self._ahead_s)
        return min(max(early_s, LOOK_AGAIN_S), LONGEST_HOLD_S)

    def _later(self, why: str, asked_s: float | None) -> float:
        self._failures += 1
        if self._failures == 1:
            _say(f"Batches wait: {why}")
        wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(self._failures - 1, 10))
        return max(wait_s * random.uniform(0.5, 1.5), asked_s or 0.0)  # noqa: S311 - no secret

    def _note_rejected(self, answer: client.Answer) -> None:
        rejected = answer.said.get("rejected")
        if isinstance(rejected, list) and rejected:
            first = rejected[0] if isinstance(rejected[0], dict) else {}
            _say(f"The portal left {len(rejected)} rows of a batch out; the first: {first.get('reason', '')}")

    def _wait(self, seconds: float) -> None:
        self._is_last.wait(min(seconds, LONGEST_WAIT_S * 4))


class Poster:
    """What sends a batch to a portal, signed with the token of now.

    `read` reads the token anew, once the portal does not take it any more: it may have been replaced. Errors of it:
    `OSError`, `PortalUnreachable`.
    """

    def __init__(self, url: str, token: str, read: Callable[[], str]) -> None:
        self._url, self._token, self._read = url, token, read
        self._is_told = False

    def __call__(self, waiting: Waiting) -> client.Answer:
        answer = self._post(waiting)
        return self._post(waiting) if answer.status in OTHER_TOKEN and self._renew() else answer

    def _post(self, waiting: Waiting) -> client.Answer:
        headers = {"Idempotency-Key": waiting.id, "X-Gatehouse-Signature": sign(self._token.encode(), waiting.body)}
        return client.post(self._url, PATH, token=self._token, body=waiting.body, headers=headers)

    def _renew(self) -> bool:
        """Read the token anew; say whether it is another one."""
        before = self._token
        try:
            self._token = self._read()
        except (OSError, client.PortalUnreachable) as error:
            if not self._is_told:
                self._is_told = True
                _say(f"The token cannot be read anew, only by a new start: {error}")
        return self._token != before


def sign(token: bytes, body: bytes) -> str:
    """Return the signature of a body: HMAC-SHA-256 (RFC 2104) with the token's text as key."""
    return f"sha256={hmac.new(token, body, hashlib.sha256).hexdigest()}"


def _words(answer: client.Answer) -> str:
    said = answer.said
    text = f"{said.get('detail') or said.get('title') or ''} [{said.get('code', '')}] {said.get('remedy') or ''}"
    return f"HTTP {answer.status} {text}".strip()


def _say(text: str) -> None:
    """Write a line to standard error; what came from elsewhere cannot drive a terminal."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    print(plain[:_LONGEST_WORDS], file=sys.stderr, flush=True)
