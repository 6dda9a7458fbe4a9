"""`manage.py issue_service_token`: a token for site automation, printed once."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.defaultfilters import pluralize

from portal.core.errors import DomainError
from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR
from principals.engine import scopes, tokens
from principals.models import ServiceAccount, ServiceToken

NAMES = [scope.name for scope in scopes.scopes_for(tokens.TokenKind.SERVICE)]


class Command(BaseCommand):
    help = "Issue a token for a piece of site automation (a hook, a collector); it is printed once. --revoke ends them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("account", help="the account's name, made on first use")
        parser.add_argument("--cluster", help="bind a new account to one cluster, which is made on first use")
        parser.add_argument("--scope", action="append", choices=NAMES, help="repeatable; all where left out")
        parser.add_argument("--days", type=int, default=365, help="its life, a year at most")
        parser.add_argument("--from", dest="networks", action="append", default=[], help="an address range; repeatable")
        parser.add_argument("--revoke", action="store_true", help="revoke every token of the account instead")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["revoke"]:
                self._revoke(options["account"])
            else:
                self._issue(options)
        except DomainError as error:
            raise CommandError(error.words) from error

    def _issue(self, options: dict[str, Any]) -> None:
        service = ServiceAccount.objects.filter(name=options["account"]).first()
        if service is None:
            cluster = principal_services.ensure_cluster(options["cluster"]) if options["cluster"] else None
            service = principal_services.create_service_account(
                actor=SYSTEM_ACTOR, name=options["account"], cluster=cluster
            )
        issued = principal_services.issue_service_token(
            actor=SYSTEM_ACTOR, service=service, scope_names=options["scope"] or NAMES, days=options["days"],
            network_ranges=options["networks"],
        )  # fmt: skip
        self.stderr.write(f"A token of {service.name}, until {issued.row.expires:%Y-%m-%d}; it is not shown again:")
        self.stdout.write(issued.plain)

    def _revoke(self, account: str) -> None:
        tokens_left = ServiceToken.objects.filter(service__name=account, revoked_at=None).select_related("service")
        for token in tokens_left:
            principal_services.revoke_service_token(actor=SYSTEM_ACTOR, token=token, reason="revoked by command")
        self.stdout.write(
            f"{len(tokens_left)} token{pluralize(tokens_left)} of {account} {pluralize(tokens_left, 'is,are')} revoked."
        )
