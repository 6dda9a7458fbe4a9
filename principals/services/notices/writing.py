"""Telling people: a notice is a row, written in the transaction of what it tells; mails are made of it afterwards."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction

from portal.core import clock, live
from portal.core.errors import Invalid
from portal.core.logs import redacted
from principals import events
from principals.actors import Actor
from principals.engine import notices as rules
from principals.engine.notices import How
from principals.models import Notice, NoticeMail, NoticePreference, User
from principals.permissions import person_of

KEPT: Final = timedelta(days=180)
_CHUNK: Final = 500


def notify(*, people: Iterable[int], kind: str, title: str, text: str = "", url: str = "", key: str = "") -> int:
    """Tell people (ids) something, each in the way they chose; return how many were told. Call it in a transaction.

    `kind` is one of `principals.engine.notices.KINDS`; `title` one line, `text` a few, both plain: what others wrote
    may stand in them, for they are never shown as anything but text. Secrets are taken out. `url` is a path of the
    portal. With a `key` the same person is told once, whoever asks how often (`token_ending:KEY`). People who left are
    told nothing.
    """
    told = rules.KINDS[kind]
    with transaction.atomic():
        found = list(User.objects.filter(pk__in=set(people), is_active=True).order_by("pk"))
        if key:
            known = set(Notice.objects.filter(person__in=found, key=key).values_list("person_id", flat=True))
            found = [person for person in found if person.pk not in known]
        chosen = {row.person_id: row for row in NoticePreference.objects.filter(person__in=found, kind=kind)}
        title, text = plain_line(title), plain_text(text)
        rows = []
        for person in found:
            how = How(chosen[person.pk].mailed) if person.pk in chosen else told.mailed
            rows.append(
                Notice(
                    person=person, kind=kind, title=title, text=text, url=url[:300], key=key[:120],
                    mail_at=_mail_at(person, how), is_digest=how is not How.AT_ONCE,
                )
            )  # fmt: skip
        Notice.objects.bulk_create(rows, batch_size=_CHUNK, ignore_conflicts=bool(key))
        hears = [row.person_id for row in rows if told.to_webhooks and _may_leave(chosen.get(row.person_id))]
        payload = {"kind": kind, "title": title, "text": text, "url": url}
        live.announce(live.News(events.NOTICE, (f"notices:{pk}",), payload) for pk in hears)
    return len(rows)


def plain_line(text: str) -> str:
    """Return a text as one line without controls and secrets: one that controls stood inside of is a secret, too."""
    return redacted(rules.one_line(redacted(text)))[: rules.MAX_TITLE]


def plain_text(text: str) -> str:
    """Return a text of some lines, without other controls and secrets."""
    return redacted(rules.some_lines(redacted(text)))[: rules.MAX_TEXT]


def _may_leave(chosen: NoticePreference | None) -> bool:
    return chosen is None or chosen.to_webhooks


def _mail_at(person: User, how: How) -> datetime | None:
    """Return from when a person may be mailed: never where there is no address, or no mail at this site."""
    if not settings.MAIL.is_on or not person.email or person.is_demo:
        return None
    return rules.mail_time(how, now=clock.now(), zone=ZoneInfo(settings.FACILITY_TIME_ZONE))


def mark_read(*, actor: Actor, upto: int) -> int:
    """Mark a person's own notices as read, up to the newest that they saw; return how many were not."""
    own = Notice.objects.visible_to(actor).unread().filter(pk__lte=upto)
    return own.update(read_at=clock.now())


def choose(*, actor: Actor, choices: Mapping[str, tuple[str, bool]]) -> None:
    """Set how a person is told of each kind: how it is mailed, and whether their webhooks are. Others stay as they are.

    What waits to be mailed goes as it was to. Errors: `Invalid` for a kind or a way that is none.
    """
    person = person_of(actor)
    for kind, (mailed, _) in choices.items():
        if kind not in rules.KINDS or mailed not in NoticePreference.Mailed.values:
            raise Invalid("There is no such notice, or way.", code="notice_choice", remedy="Load the page again.")
    with transaction.atomic():
        for kind, (mailed, to_webhooks) in choices.items():
            NoticePreference.objects.update_or_create(
                person=person, kind=kind, defaults={"mailed": mailed, "to_webhooks": to_webhooks}
            )


def prune() -> int:
    """Delete notices past their term, and the mails that told of them; return how many notices there were."""
    before = clock.now() - KEPT
    deleted, _ = Notice.objects.filter(created__lt=before).delete()
    NoticeMail.objects.filter(created__lt=before).delete()
    return deleted
