"""The courier: sends what is due, many receivers side by side, none at another's cost.

One works at a time, in one thread that alone touches the database; each attempt is a thread that only talks to its
receiver. Receivers that were slow or failed last time have half of the places, so that all of them together never
hold up the prompt ones.
"""

import time
from dataclasses import dataclass
from datetime import datetime
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final

import structlog
from django.conf import settings

from portal.core import clock, leases, live, stopping
from portal.core import topics as kernel_topics
from portal.core.errors import DomainError
from portal.realtime.sequencer import Sequencer
from portal.webhooks import batches, posting, rights, signing
from portal.webhooks.models import Delivery, Webhook
from portal.webhooks.posting import Answer
from portal.webhooks.rights import Permit

log = structlog.get_logger(__name__)

PLACES: Final = 16
SLOW_PLACES: Final = 8
ROUND_S: Final = 10.0  # then the next task goes on: none holds a worker's place for long
LEASE_NAME: Final = "webhook-courier"
LEASE_S: Final = 20.0
_LOOK_S: Final = 0.2
_RENEW_S: Final = 5.0
_GRACE_S: Final = 1.0
# A resolver may be silent for longer than an attempt may take; its thread ends by itself.
_PATIENCE_S: Final = posting.TIMEOUT_S + 1.0


@dataclass(frozen=True, slots=True)
class Flight:
    """One attempt under way."""

    webhook_id: int
    is_slow: bool
    lease: datetime
    gives_up: float


def deliver(*, round_s: float = ROUND_S) -> int:
    """Send what is due, for a while at most; return how many attempts ended. Somebody else at it: none."""
    if not settings.WEBHOOK_HOSTS or not Webhook.objects.filter(state=Webhook.State.ON).exists():
        return 0
    with leases.held(LEASE_NAME, seconds=LEASE_S) as holder:
        return Courier(holder).work(round_s) if holder else 0


class Courier:
    """Works through one round."""

    def __init__(self, holder: str) -> None:
        self._holder = holder
        self._sequencer = Sequencer()
        self._answers: SimpleQueue[tuple[int, Answer]] = SimpleQueue()
        self._flights: dict[int, Flight] = {}
        self._landed = 0

    def work(self, round_s: float) -> int:
        """Send until nothing is due or the time is over, and wait for what is under way; not for long to stop."""
        until = time.monotonic() + round_s
        renew_at = time.monotonic() + _RENEW_S
        ours = True
        while True:
            if stopping.asked():
                until = min(until, time.monotonic())  # the first time decides
            if ours and time.monotonic() < until:
                self._depart()
            if not self._flights or (stopping.asked() and time.monotonic() > until + _GRACE_S):
                return self._landed
            self._land()
            if time.monotonic() >= renew_at:
                ours = leases.take(LEASE_NAME, self._holder, seconds=LEASE_S)
                renew_at = time.monotonic() + _RENEW_S

    def _depart(self) -> None:
        while self._sequencer.number():
            pass
        batches.put_up(newest=live.newest_seq())
        busy = [flight.webhook_id for flight in self._flights.values()]
        for slow in (False, True):
            for delivery in batches.due(slow=slow, limit=4 * PLACES, but=busy):
                if self._has_place(delivery.webhook):
                    self._try_to_send(delivery)

    def _has_place(self, webhook: Webhook) -> bool:
        """Say whether a webhook may be served now: one attempt at a time each, slow ones in their half."""
        flights = self._flights.values()
        if len(flights) >= PLACES or any(flight.webhook_id == webhook.pk for flight in flights):
            return False
        return not webhook.is_slow or sum(flight.is_slow for flight in flights) < SLOW_PLACES

    def _try_to_send(self, delivery: Delivery) -> None:
        """Send one; an error of ours in one webhook is nothing to the others."""
        try:
            self._send(delivery)
        except Exception:
            log.exception("webhook_not_sent", webhook=delivery.webhook.public_id)
            batches.postpone(delivery)

    def _send(self, delivery: Delivery) -> None:
        webhook = delivery.webhook
        try:
            permit = rights.require_permit(webhook)
        except DomainError as error:
            batches.switch_off_for(webhook, error)
            return
        body = self._body(delivery, permit)
        lease = batches.claim(delivery)
        if lease is None:
            return
        self._flights[delivery.pk] = Flight(webhook.pk, webhook.is_slow, lease, time.monotonic() + _PATIENCE_S)
        headers = _headers(delivery, permit, body)
        Thread(target=self._fly, args=(delivery.pk, permit, headers, body), name="webhook", daemon=True).start()

    def _body(self, delivery: Delivery, permit: Permit) -> bytes:
        """Return what is sent: of a delivery made for other topics than now, what its owner may still hear."""
        kept = delivery.webhook.topics
        topics = [each for each in delivery.topics if each in kept or kernel_topics.authorise(permit.actor, each)]
        body = batches.body_of(delivery, topics)
        if body is None:
            batches.turn_into_resync(delivery)
            body = batches.body_of(delivery, topics) or b""
        return body

    def _fly(self, delivery_id: int, permit: Permit, headers: dict[str, str], body: bytes) -> None:
        try:
            answer = posting.post(permit.place, headers, body)
        except Exception:
            log.exception("webhook_attempt_failed")
            answer = Answer(None, "An error of the portal; its log says more.")
        self._answers.put((delivery_id, answer))

    def _land(self) -> None:
        try:
            self._settle(*self._answers.get(timeout=_LOOK_S))
            while not self._answers.empty():
                self._settle(*self._answers.get_nowait())
        except Empty:
            pass
        now = time.monotonic()
        for delivery_id in [pk for pk, flight in self._flights.items() if now > flight.gives_up]:
            self._settle(delivery_id, Answer(None, "No answer in time.", _PATIENCE_S))

    def _settle(self, delivery_id: int, answer: Answer) -> None:
        flight = self._flights.pop(delivery_id, None)
        if flight is not None:
            self._landed += 1
            batches.settle(delivery_id, flight.lease, answer)


def _headers(delivery: Delivery, permit: Permit, body: bytes) -> dict[str, str]:
    signed = signing.headers(permit.keys, delivery=delivery.public_id, at_s=clock.now_s(), body=body)
    return {
        "User-Agent": "Gatehouse",
        "Content-Type": "application/json",
        "Gatehouse-Delivery": delivery.public_id,
        "Gatehouse-Webhook": delivery.webhook.public_id,
    } | signed
