"""A mail that tries the mail server: sent at once, to one address, with nothing of anybody in it."""

import smtplib
import uuid
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from django.conf import settings
from django.db import transaction

from portal.core import audit, clock
from portal.core.errors import Conflict, Invalid
from principals.actors import SYSTEM_ACTOR
from principals.services.notices.mailing import Line, Refused, address_of


def send_test_mail(*, to: str) -> str:
    """Send one mail now and return its Message-ID. Errors: `Conflict`, `Invalid`; they say what to mend."""
    if not settings.MAIL.is_on:
        raise Conflict("This site sends no mail.", code="mail_off", remedy="Set GATEHOUSE_SMTP_HOST.")
    message = EmailMessage(policy=SMTP)
    try:
        message["To"] = address_of(to)
    except ValueError as error:
        raise Invalid("That is no plain address.", code="mail_address", remedy="Give name@host, in ASCII.") from error
    message["From"], message["Subject"] = settings.MAIL.sender, "[Gatehouse] Test of the mail server"
    message["Date"] = format_datetime(clock.now())
    message["Message-ID"] = f"<test-{uuid.uuid4().hex}@{settings.MAIL.domain}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(f"{settings.FACILITY_NAME} sends notices from {settings.BASE_URL}. Nothing is to be done.\n")
    line: Line | None = None
    try:
        line = Line()
        line.address(message)
        line.hand_over(message)
    except Refused as refusal:
        raise Conflict(str(refusal), code="mail_refused", remedy="Its log says why; see GATEHOUSE_MAIL_FROM.") from None
    except (OSError, smtplib.SMTPException) as error:
        words = f"The mail server was not reached, or broke off ({type(error).__name__})."
        raise Conflict(words, code="mail_unreached", remedy="See GATEHOUSE_SMTP_HOST, _PORT and _SECURITY.") from None
    finally:
        if line is not None:
            line.close()
    with transaction.atomic():
        audit.record(actor=SYSTEM_ACTOR.ref, verb="mail.test", object_kind="mail", object_id=0, object_label="test")
    return str(message["Message-ID"])
