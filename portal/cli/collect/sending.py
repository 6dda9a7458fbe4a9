"""Sending what waits in the spool: the oldest first, again and again until it arrives or never will."""

import random
import sys
import threading
from collections.abc import Callable

from portal.cli import client
from portal.cli.collect.spool import Spool, Waiting

PATH = "/ingest/activity"
FIRST_WAIT_S = 5.0
LONGEST_WAIT_S = 900.0
SPREAD_S = 10.0  # nodes make their batches at the same second
# What a portal may answer and still take later: a token that is mended, a disk that has room again, less hurry.
NOT_FINAL = frozenset({401, 403, 408, 413, 429})

TAKEN, REFUSED = 0.0, -1.0  # no seconds to wait

Post = Callable[[Waiting], client.Answer]
_LONGEST_WORDS = 300


class Sender(threading.Thread):
    """Send batches until told to stop. What cannot be sent waits on disk."""

    def __init__(self, spool: Spool, post: Post, *, spread_s: float = SPREAD_S):
        super().__init__(name="sender", daemon=True)
        self._spool, self._post, self._spread_s = spool, post, spread_s
        self._failures = 0
        self._is_last = threading.Event()

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
        """Send what waits, until nothing does, or the portal has to be waited for: that is done here too."""
        for path in self._spool.waiting():
            waiting = self._spool.read(path)
            outcome = self._send(waiting) if waiting else REFUSED
            if outcome == TAKEN:
                self._spool.remove(path)
            elif outcome == REFUSED:
                self._spool.reject(path)
            else:
                self._wait(outcome)
                return

    def _send(self, waiting: Waiting) -> float:
        """Try once: `TAKEN`, `REFUSED` for good, or how many seconds to wait."""
        try:
            answer = self._post(waiting)
        except client.PortalUnreachable as error:
            return self._later(str(error), None)
        is_taken = 200 <= answer.status < 300
        if not is_taken and (answer.status in NOT_FINAL or not 400 <= answer.status < 500 or answer.retry_after_s):
            return self._later(_words(answer), answer.retry_after_s)
        if self._failures:
            _say("The portal takes batches again.")
        self._failures = 0
        if is_taken:
            self._note_rejected(answer)
            return TAKEN
        _say(f"Batch {waiting.id} was refused and set aside: {_words(answer)}")
        return REFUSED

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


def poster(url: str, token: str) -> Post:
    """Return what sends a batch to a portal."""

    def post(waiting: Waiting) -> client.Answer:
        headers = {"Idempotency-Key": waiting.id, "X-Gatehouse-Signature": waiting.signature}
        return client.post(url, PATH, token=token, body=waiting.body, headers=headers)

    return post


def _words(answer: client.Answer) -> str:
    said = answer.said
    text = f"{said.get('detail') or said.get('title') or ''} [{said.get('code', '')}] {said.get('remedy') or ''}"
    return f"HTTP {answer.status} {text}".strip()


def _say(text: str) -> None:
    """Write a line to standard error; what came from elsewhere cannot drive a terminal."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    print(plain[:_LONGEST_WORDS], file=sys.stderr, flush=True)
