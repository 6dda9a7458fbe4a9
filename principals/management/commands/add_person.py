"""`manage.py add_person`: a person, their roles and their place in a lab."""

import getpass
import sys
from argparse import BooleanOptionalAction
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.core.errors import DomainError
from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR
from principals.models import LabMembership, User

_FLAGS: Final = {
    "staff": "research-computing staff",
    "infosec": "works on incidents",
    "auditor": "reads everything, changes nothing",
}
_COLUMNS: Final = {"staff": "is_research_computing", "infosec": "is_infosec", "auditor": "is_auditor"}


class Command(BaseCommand):
    help = (
        "Add a person, or change one who is known: what is not named is kept. --staff gives a role, --no-staff takes "
        "it away; --lab gives a place in a lab, which is made on first use."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("login", help="the login name, as on the cluster")
        parser.add_argument("--email", default="", help="where notices go")
        for flag, words in _FLAGS.items():
            parser.add_argument(f"--{flag}", action=BooleanOptionalAction, help=words)
        parser.add_argument("--lab", help="the lab's name: the Slurm account it is charged under, where it has one")
        parser.add_argument(
            "--role", choices=LabMembership.Role.values, help="in the lab (the one held there, else member)"
        )
        parser.add_argument("--password", action="store_true", help="ask for a password (or read it from a pipe)")
        parser.add_argument(
            "--active", action=BooleanOptionalAction, help="whether they may sign in, and their agents work"
        )
        parser.add_argument("--no-second-factor", action="store_true", help="take it away, for whoever lost it")
        parser.add_argument(
            "--forget-identities", action="store_true", help="untie them from providers: the next sign-in ties anew"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        password = None
        if options["password"]:
            password = getpass.getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
        roles = {column: options[flag] for flag, column in _COLUMNS.items() if options[flag] is not None}
        before = _facts(options["login"], options["lab"])
        try:
            user = principal_services.add_person(
                actor=SYSTEM_ACTOR, login=options["login"], email=options["email"], password=password, roles=roles
            )
            if options["lab"]:
                lab = principal_services.ensure_lab(actor=SYSTEM_ACTOR, name=options["lab"])
                held = user.memberships.filter(lab=lab).values_list("role", flat=True).first()
                role = options["role"] or held or LabMembership.Role.MEMBER
                principal_services.add_lab_member(actor=SYSTEM_ACTOR, lab=lab, user=user, role=role)
            done = self._keys(user, options)
        except DomainError as error:
            raise CommandError(error.words) from error
        self.stdout.write(_summary(user.username, before, _facts(user.username, options["lab"])))
        for line in done:
            self.stdout.write(f"  {line}")

    def _keys(self, user: User, options: dict[str, Any]) -> list[str]:
        """Switch the account on or off, take away what opens it, and say what was done."""
        done = []
        if options["active"] is not None:
            principal_services.set_person_active(actor=SYSTEM_ACTOR, user=user, active=options["active"])
            on = "The account is on."
            done.append(on if options["active"] else "The account is off: sessions, sockets and agents’ tokens end.")
        if options["no_second_factor"]:
            had = principal_services.remove_second_factor(actor=SYSTEM_ACTOR, user=user)
            done.append("The second factor is taken away." if had else "There was no second factor.")
        if options["forget_identities"]:
            count = principal_services.forget_identities(actor=SYSTEM_ACTOR, user=user)
            done.append(f"Identities untied: {count}.")
        return done


def _facts(login: str, lab: str | None) -> dict[str, str]:
    """Return what is known of a person, in words; nothing of one who is not. The password stands as its hash."""
    user = User.objects.filter(username=login).first()
    if user is None:
        return {}
    roles = ", ".join(flag for flag, column in _COLUMNS.items() if getattr(user, column)) or "none"
    facts = {"facility roles": roles, "email": user.email or "none", "password": user.password}
    if lab:
        held = user.memberships.filter(lab__name=lab).values_list("role", flat=True).first()
        facts[f"role in {lab}"] = f"{held} of {lab}" if held else "none"
    return facts


def _summary(login: str, before: dict[str, str], after: dict[str, str]) -> str:
    """Say what was added, or what was changed and kept of a person who was known, and how to change it."""
    shown = {name: value for name, value in after.items() if name != "password"}
    if not before:
        return f"{login} is added: " + "; ".join(f"{name}: {value}" for name, value in shown.items()) + "."
    changed = [
        name if name == "password" else f"{name} from {before[name]} to {value}"
        for name, value in after.items() if before[name] != value
    ]  # fmt: skip
    kept = [
        name if name == "password" else f"{name} ({value})" for name, value in after.items() if before[name] == value
    ]
    lines = [
        f"{login} was known.",
        f"  changed: {'; '.join(changed) or 'nothing'}",
        f"  kept: {'; '.join(kept) or 'nothing'}",
        "  To change a role: --staff or --no-staff, likewise infosec and auditor; --lab NAME --role ROLE.",
    ]
    return "\n".join(lines)
