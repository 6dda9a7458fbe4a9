"""The postman: puts notices into mails, and sends these. One conditional update decides each step.

A mail's row moves to `handed` before its text goes to the server and away from there once the server answered. Who is
killed in between leaves a mail of which nobody can know whether the server took it (SMTP has no way to ask: RFC 5321,
6.1); it is not sent a second time, and the notices stand in the portal. Whatever fails before that is tried again,
with the same Message-ID.
"""

import smtplib
import time
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, Q, QuerySet
from prometheus_client.core import GaugeMetricFamily

from portal.core import clock, leases, stopping
from principals.engine.notices import Due, mails_of
from principals.models import Notice, NoticeMail
from principals.services.notices import mailing
from principals.services.notices.mailing import Line, Refused

log = structlog.get_logger(__name__)

LEASE_NAME: Final = "postman"
LEASE_S: Final = 120.0
MAIL_LEASE: Final = timedelta(minutes=5)  # a server has 20 s for each of its answers
ROUND_S: Final = 30.0
MOST_GATHERED: Final = 5000
WAITS_S: Final = (60, 300, 900, 3600, 4 * 3600)  # the last again and again
GIVE_UP: Final = timedelta(days=4)  # RFC 5321, 4.5.4.1: four to five days
_OPEN, _HANDED = NoticeMail.State.OPEN, NoticeMail.State.HANDED


def deliver(*, round_s: float = ROUND_S) -> int:
    """Put what is due into mails and send what waits, for a while at most; return how many were sent."""
    if not settings.MAIL.is_on:
        return 0
    with leases.held(LEASE_NAME, seconds=LEASE_S) as holder:
        if not holder:
            return 0
        gather()
        settle_left()
        return _send_all(holder, time.monotonic() + round_s)


def gather() -> int:
    """Put the notices whose time has come into mails, as many a person as an hour allows; return how many mails."""
    due = Notice.objects.filter(mail=None, mail_at__lte=clock.now())
    waiting = due.filter(person__is_active=True).exclude(person__email="")
    hour = NoticeMail.objects.filter(created__gt=clock.now() - timedelta(hours=1))
    counted = hour.order_by().values("person").annotate(number=Count("pk"))
    full = counted.filter(number__gte=settings.MAIL.per_hour).values("person")
    waiting = waiting.exclude(person__in=full)  # else one with thousands stands before all others
    by_person: dict[int, list[Due]] = defaultdict(list)
    for pk, person, digest in waiting.order_by("pk").values_list("pk", "person_id", "is_digest")[:MOST_GATHERED]:
        by_person[person].append(Due(pk, digest))
    hour = NoticeMail.objects.filter(created__gt=clock.now() - timedelta(hours=1)).order_by()
    had = dict(hour.values_list("person").annotate(Count("pk")))
    made = 0
    for person, theirs in by_person.items():
        room = settings.MAIL.per_hour - had.get(person, 0)
        made += sum(_make(person, ids) for ids in mails_of(theirs, room=room))
    return made


def _make(person: int, ids: list[int]) -> bool:
    with transaction.atomic():
        mail = NoticeMail.objects.create(person_id=person)
        if Notice.objects.filter(pk__in=ids, mail=None).update(mail=mail):
            return True
        mail.delete()  # somebody else put them into one
    return False


def settle_left() -> int:
    """Leave alone what was handed over by somebody who never told what came of it; return how many there were."""
    left = NoticeMail.objects.filter(state=_HANDED, leased_until__lt=clock.now())
    words = "Its sender was ended while the mail server took it, or did not. It is not sent again."
    return left.update(state=NoticeMail.State.UNSURE, ended=clock.now(), leased_until=None, words=words)


def _send_all(holder: str, until: float) -> int:
    line: Line | None = None
    sent = 0
    try:
        while time.monotonic() < until and not stopping.asked() and leases.take(LEASE_NAME, holder, seconds=LEASE_S):
            mail = _next()
            if mail is None:
                break
            lease = _claim(mail)
            if lease is None:
                continue
            try:
                line = line or Line()
                sent += _send(line, mail, lease)
            except (OSError, smtplib.SMTPException) as error:
                log.warning("mail_server_failed", kind=type(error).__name__)
                _put_back(mail, lease, "The mail server was not reached, or broke off.")
                break  # the others would find the same
            except Exception as error:  # noqa: BLE001 - a mail that cannot be made must not stand before all others
                log.error("mail_failed", mail=mail.public_id, kind=type(error).__name__)
                _put_back(mail, lease, "It could not be made: an error of the portal.")
    finally:
        if line is not None:
            line.close()
    return sent


def _free() -> Q:
    return Q(leased_until=None) | Q(leased_until__lt=clock.now())


def _next() -> NoticeMail | None:
    due = NoticeMail.objects.filter(_free(), state=_OPEN, next_at__lte=clock.now())
    return due.select_related("person").order_by("next_at", "pk").first()


def _claim(mail: NoticeMail) -> datetime | None:
    """Take a mail for one attempt; return our lease, or None where somebody else was first."""
    lease = clock.now() + MAIL_LEASE
    same = NoticeMail.objects.filter(_free(), pk=mail.pk, state=_OPEN, attempts=mail.attempts)
    if not same.update(attempts=F("attempts") + 1, leased_until=lease):
        return None
    mail.attempts += 1
    return lease


def _send(line: Line, mail: NoticeMail, lease: datetime) -> bool:
    notices = list(mail.notices.order_by("pk"))
    if not notices or not mail.person.is_active or not mail.person.email:
        return _end(mail, lease, _OPEN, NoticeMail.State.DEAD, "There is nobody, or nothing, to send it to any more.")
    try:
        message = mailing.compose(mail, notices)
    except ValueError:  # an address that no header can hold
        return _end(mail, lease, _OPEN, NoticeMail.State.DEAD, "The address is none.")
    try:
        line.address(message)
        if not _ours(mail, lease, _OPEN).update(state=_HANDED):
            return False
        line.hand_over(message)
    except Refused as refusal:
        if refusal.is_final:
            return _end(mail, lease, None, NoticeMail.State.DEAD, str(refusal))
        _put_back(mail, lease, str(refusal), even_handed=True)
        return False
    _end(mail, lease, _HANDED, NoticeMail.State.SENT, "The mail server took it.")
    return True


def _ours(mail: NoticeMail, lease: datetime, state: str | None) -> QuerySet[NoticeMail]:
    ours = NoticeMail.objects.filter(pk=mail.pk, leased_until=lease)
    return ours.filter(state=state) if state else ours.filter(state__in=(_OPEN, _HANDED))


def _end(mail: NoticeMail, lease: datetime, old: str | None, new: str, words: str) -> bool:
    """Move a mail to an end; say False, for nothing was sent by that."""
    _ours(mail, lease, old).update(state=new, ended=clock.now(), leased_until=None, words=words)
    return False


def _put_back(mail: NoticeMail, lease: datetime, words: str, *, even_handed: bool = False) -> None:
    """Let a mail wait for its next attempt, or give it up after days. One that may be taken is left as it is.

    `even_handed`: the server itself said that it did not take it.
    """
    now = clock.now()
    ours = _ours(mail, lease, None if even_handed else _OPEN)
    if now - mail.created > GIVE_UP:
        ours.update(state=NoticeMail.State.DEAD, ended=now, leased_until=None, words=words)
        return
    wait = WAITS_S[min(mail.attempts, len(WAITS_S)) - 1]
    ours.update(state=_OPEN, next_at=now + timedelta(seconds=wait), leased_until=None, words=words)


def metrics() -> Iterable[GaugeMetricFamily]:
    """Give `/metrics` the number of mails that are kept, by state."""
    family = GaugeMetricFamily("gatehouse_notice_mails", "Mails of notices that are kept, by state", labels=["state"])
    counts = dict(NoticeMail.objects.order_by().values_list("state").annotate(Count("pk")))
    for state in NoticeMail.State.values:
        family.add_metric([state], counts.get(state, 0))
    yield family
