"""`manage.py send_test_mail`: try the mail server with one mail."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.core.errors import DomainError
from principals.services.notices.trying import send_test_mail


class Command(BaseCommand):
    help = "Send one mail to an address at once, to try the mail server; it names nobody."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("to", help="the address")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            sent = send_test_mail(to=options["to"])
        except DomainError as error:
            raise CommandError(error.words) from error
        self.stdout.write(f"The mail server took it: {sent}")
