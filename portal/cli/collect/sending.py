"""Sending what waits in the spool: the oldest first, again and again until it arrives or never will."""

import json
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from portal.cli import client, posting
from portal.cli.collect.spool import Spool, Waiting
from portal.cli.posting import say, words_of

PATH = "/ingest/activity"
FIRST_WAIT_S = 5.0
LONGEST_WAIT_S = 900.0
SPREAD_S = 10.0  # nodes make their batches at the same second
AHEAD = "future_date"  # the code of a batch whose end is still to come, by the portal's clock
AHEAD_S = 300.0  # so much the portal lets pass
LOOK_AGAIN_S = 60.0  # at batches that are ahead
LONGEST_HOLD_S = 3600.0

TAKEN, REFUSED, HELD = 0.0, -1.0, -2.0  # no seconds to wait

Post = Callable[[Waiting], client.Answer]


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
        is_taken = posting.is_taken(answer)
        if not is_taken and not posting.is_refused(answer):
            return self._later(words_of(answer), answer.retry_after_s)
        if self._failures:
            say("The portal takes batches again.")
        self._failures = 0
        if is_taken:
            self._note_rejected(answer)
            self._is_ahead_told = self._is_ahead_told and self._ahead_s >= AHEAD_S
            return TAKEN
        if answer.said.get("code") == AHEAD:
            self._tell_ahead()
            return HELD
        say(f"Batch {waiting.id} was refused and set aside: {words_of(answer)}")
        return REFUSED

    def _tell_ahead(self) -> None:
        if not self._is_ahead_told:
            self._is_ahead_told = True
            by = f" by {self._ahead_s} seconds" if self._ahead_s > 0 else ""
            say(f"This node's clock is ahead of the portal's{by}: batches wait for their time. Set the clock.")

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
            say(f"Batches wait: {why}")
        return posting.wait_after(self._failures, asked_s, first_s=FIRST_WAIT_S, longest_s=LONGEST_WAIT_S)

    def _note_rejected(self, answer: client.Answer) -> None:
        rejected = answer.said.get("rejected")
        if isinstance(rejected, list) and rejected:
            first = rejected[0] if isinstance(rejected[0], dict) else {}
            say(f"The portal left {len(rejected)} rows of a batch out; the first: {first.get('reason', '')}")

    def _wait(self, seconds: float) -> None:
        self._is_last.wait(min(seconds, LONGEST_WAIT_S * 4))


class Poster:
    """What sends a batch to a portal, as `posting.Poster` posts its body; its id lets it arrive once."""

    def __init__(self, url: str, token: str, read: Callable[[], str]) -> None:
        self._poster = posting.Poster(url, PATH, token, read)

    def __call__(self, waiting: Waiting) -> client.Answer:
        return self._poster.post(waiting.body, {"Idempotency-Key": waiting.id})
