"""`manage.py subject`: gives out, or erases, what is held about a person."""

import getpass
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.core import audit
from portal.core.errors import DomainError
from portal.rights import services
from portal.rights.review import inventory_table
from portal.rights.services import Step
from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR
from principals.models import User


class Command(BaseCommand):
    help = (
        "Export all that is held about a person as JSON, or erase it: what accounting and proof need stays under a "
        "pseudonym, the rest is deleted. Erasing only says what it would do, until it is told --yes. `inventory` "
        "prints the tables, as docs/review-board.md has them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("act", choices=("export", "erase", "inventory"), help="what to do")
        parser.add_argument("login", nargs="?", default="", help="the person's login name")
        parser.add_argument("--purpose", default="", help="what for: the person is told, and the audit trail keeps it")
        parser.add_argument("--out", default="-", help="export: the file to write, mode 0600; - is standard output")
        parser.add_argument("--yes", action="store_true", help="erase: do it")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["act"] == "inventory":
            self.stdout.write(inventory_table())
            return
        person = User.objects.filter(username=options["login"]).first()
        if person is None:
            raise CommandError(f"There is no person {options['login']}.")
        try:
            if options["act"] == "export":
                self._export(person, options)
            else:
                self._erase(person, options)
        except DomainError as error:
            raise CommandError(error.words) from error

    def _export(self, person: User, options: dict[str, Any]) -> None:
        target = None if options["out"] == "-" else _new_file(Path(options["out"]))
        try:
            self._write(person, target, options["purpose"])
        except BaseException:
            if target is not None:
                target.unlink(missing_ok=True)  # half of it would read as all
            raise

    def _write(self, person: User, target: Path | None, purpose: str) -> None:
        principal_services.open_data(
            actor=SYSTEM_ACTOR, person=person, by=f"{getpass.getuser()} on the portal’s host",
            what="All of it, as an export", purpose=purpose,
        )  # fmt: skip
        if target is None:
            for piece in services.export(person):
                self.stdout.write(piece, ending="")
            return
        with target.open("w", encoding="utf-8") as file:
            file.writelines(services.export(person))
        self.stdout.write(f"{target} is written (mode 0600).")

    def _erase(self, person: User, options: dict[str, Any]) -> None:
        services.require_erasable(person)
        if not options["yes"]:
            self._say(services.plan(person), "would be")
            self.stdout.write("Nothing was changed. Export first where the law asks for it, then say --yes.")
            return
        if not options["purpose"].strip():
            raise CommandError("Say why with --purpose: the audit trail keeps it.")
        self._say(services.erase(actor=SYSTEM_ACTOR, person=person, reason=options["purpose"]), "were")
        audit.seal_all()
        self.stdout.write(
            f"{person.username} is {services.pseudonym(person)} now. Left with the login name: fixed columns of the "
            "audit trail, news of the last 7 days, Slurm’s own accounting, backups and files of logs."
        )

    def _say(self, steps: Sequence[Step], word: str) -> None:
        for step in steps:
            what = "emptied" if step.holding.blank else "deleted"
            parts = [f"{step.touched} {word} {what}"] if step.touched else []
            parts += [f"{step.kept} {step.holding.on_erase}"] if step.kept else []
            self.stdout.write(f"{step.holding.table}: {', '.join(parts)}")


def _new_file(path: Path) -> Path:
    try:
        path.touch(mode=0o600, exist_ok=False)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
    return path
