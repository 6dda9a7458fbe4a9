"""`manage.py add_person`: a person, their roles and their place in a lab."""

import getpass
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.core.errors import DomainError
from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR
from principals.models import LabMembership


class Command(BaseCommand):
    help = "Add a person, or change their roles; --lab gives them a place in a lab, which is made on first use."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("login", help="the login name, as on the cluster")
        parser.add_argument("--email", default="", help="where notices go")
        parser.add_argument("--staff", action="store_true", help="research-computing staff")
        parser.add_argument("--infosec", action="store_true", help="works on incidents")
        parser.add_argument("--auditor", action="store_true", help="reads everything, changes nothing")
        parser.add_argument("--lab", help="the lab's name: the Slurm account it is charged under, where it has one")
        parser.add_argument(
            "--role", choices=LabMembership.Role.values, default=LabMembership.Role.MEMBER, help="in the lab"
        )
        parser.add_argument("--password", action="store_true", help="ask for a password (or read it from a pipe)")

    def handle(self, *args: Any, **options: Any) -> None:
        password = None
        if options["password"]:
            password = getpass.getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
        roles = {f"is_{name}": options[flag] for name, flag in
                 (("research_computing", "staff"), ("infosec", "infosec"), ("auditor", "auditor"))}  # fmt: skip
        try:
            user = principal_services.add_person(
                actor=SYSTEM_ACTOR, login=options["login"], email=options["email"], password=password, roles=roles
            )
            if options["lab"]:
                lab = principal_services.ensure_lab(actor=SYSTEM_ACTOR, name=options["lab"])
                principal_services.add_lab_member(actor=SYSTEM_ACTOR, lab=lab, user=user, role=options["role"])
        except DomainError as error:
            raise CommandError(f"{error.detail} {error.remedy}".strip()) from error
        place = f", {options['role']} of {options['lab']}" if options["lab"] else ""
        self.stdout.write(f"{user.username} is known{place}.")
