"""One mail: what stands in it, and its way to the mail server, up to the instant when the server may have it."""

import smtplib
import ssl
from collections.abc import Sequence
from email.errors import HeaderParseError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, parseaddr
from typing import Final

from django.conf import settings
from django.template.loader import render_to_string

from principals.engine.notices import one_line
from principals.models import Notice, NoticeMail

TIMEOUT_S: Final = 20.0
SHOWN: Final = 50  # notices of one mail; the portal has them all


def address_of(text: str) -> str:
    """Return an address as the mail server is told it. Errors: `ValueError` where it is none, several, or not ASCII."""
    if not (text.isascii() and text.isprintable()) or any(each in text for each in " ,;<>()"):
        raise ValueError("not one plain address")
    try:
        address = Address(addr_spec=text)
    except (AttributeError, IndexError, TypeError, HeaderParseError) as error:  # the library stumbles over `a@[`
        raise ValueError("no address") from error
    if not (address.username and address.domain):
        raise ValueError("half an address")
    return text


def compose(mail: NoticeMail, notices: Sequence[Notice]) -> EmailMessage:
    """Return a mail as it goes out. All of it comes from its row, so that every attempt carries the same Message-ID.

    Errors: `ValueError` for an address that the server cannot be told.
    """
    shown = list(notices[:SHOWN])
    context = {
        "notices": shown, "more": len(notices) - len(shown), "facility": settings.FACILITY_NAME,
        "base": settings.BASE_URL,
    }  # fmt: skip
    message = EmailMessage(policy=SMTP)
    title = shown[0].title if len(notices) == 1 else f"{len(notices)} notices"
    message["From"] = settings.MAIL.sender
    message["To"] = address_of(mail.person.email)
    message["Subject"] = one_line(f"[Gatehouse] {title}")
    message["Date"] = format_datetime(mail.created)
    message["Message-ID"] = f"<{mail.public_id}@{settings.MAIL.domain}>"
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no answer of a machine, please
    message["List-Unsubscribe"] = f"<{context['base']}/notices/choose/>"
    message.set_content(render_to_string("notices/mail.txt", context))
    message.add_alternative(render_to_string("notices/mail.html", context), subtype="html")
    return message


class Refused(Exception):
    """The server said no to one mail. `is_final`: for good (a status of 5xx, RFC 5321, 4.2.1)."""

    def __init__(self, words: str, *, is_final: bool) -> None:
        super().__init__(words)
        self.is_final = is_final


class Line:
    """A connection to the mail server. Errors of the connection itself are `OSError` and `smtplib.SMTPException`."""

    def __init__(self) -> None:
        where = settings.MAIL
        context = ssl.create_default_context()
        if where.security == "tls":
            self._smtp: smtplib.SMTP = smtplib.SMTP_SSL(where.host, where.port, timeout=TIMEOUT_S, context=context)
        else:
            self._smtp = smtplib.SMTP(where.host, where.port, timeout=TIMEOUT_S)
        try:
            if where.security == "starttls":
                self._smtp.starttls(context=context)
            if where.user:
                self._smtp.login(where.user, where.password)
            else:
                self._smtp.ehlo_or_helo_if_needed()
        except BaseException:
            self.close()
            raise

    def address(self, message: EmailMessage) -> None:
        """Name sender and receiver. Up to here the server has no mail. Errors: `Refused`."""
        sender, to = (parseaddr(str(message[name]))[1] for name in ("From", "To"))
        # What a server says beside its number is not ours to store. A no to the sender is the site's to mend.
        for ask, whom, is_final in ((self._smtp.mail, sender, False), (self._smtp.rcpt, to, True)):
            code, _ = ask(whom)
            if code >= 400:
                self._smtp.rset()
                raise Refused(f"The mail server answered {code}.", is_final=is_final and code >= 500)

    def hand_over(self, message: EmailMessage) -> None:
        """Give the server the mail: once this began, it may have it. Errors: `Refused`, where it said it has not."""
        try:
            code, _ = self._smtp.data(message.as_bytes())
        except smtplib.SMTPDataError as error:
            code = error.smtp_code
        if code >= 400:
            raise Refused(f"The mail server answered {code}.", is_final=code >= 500)

    def close(self) -> None:
        """Say good-bye, or not."""
        try:
            self._smtp.quit()
        except (OSError, smtplib.SMTPException):
            self._smtp.close()
