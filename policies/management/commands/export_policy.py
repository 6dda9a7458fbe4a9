"""`manage.py export_policy`: what nodes read of the policy, as files with a signature beside them."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from policies import services as policy_services
from portal.core.errors import DomainError
from principals.actors import SYSTEM_ACTOR


class Command(BaseCommand):
    help = (
        "Write the policy in force as files for nodes (AGENTS.md, a skill, context and settings of harnesses): "
        "inert data with a version that only rises. `gatehouse verify` checks them there."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "folder", metavar="DIR", type=Path, help="a folder that exists; only our own files are written"
        )
        parser.add_argument(
            "--sign-key", metavar="FILE", type=Path, help="sign with this key of Ed25519 (PEM, mode 0600)"
        )
        parser.add_argument(
            "--only-sign", action="store_true", help="sign what stands in DIR; asks no database, for a host of its own"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        folder, key = options["folder"], options["sign_key"]
        if not folder.is_dir():
            raise CommandError(f"{folder} is no folder. Make it (mkdir), or name another.")
        if options["only_sign"] and key is None:
            raise CommandError("--only-sign needs --sign-key FILE.")
        try:
            if not options["only_sign"]:
                done = policy_services.export_policy(actor=SYSTEM_ACTOR, folder=folder)
                what = "is written" if done.changed else "stands there already"
                self.stdout.write(f"Policy {done.policy}, version {done.serial}, {what} in {folder}.")
            if key is not None:
                policy_services.sign_policy(folder=folder, key_file=key)
                self.stdout.write("It is signed.")
            elif not options["only_sign"]:
                self.stdout.write("It is not signed: --only-sign --sign-key FILE does that, also on another host.")
        except OSError as error:
            raise CommandError(f"{error.filename or folder} cannot be written: {error.strerror}.") from error
        except DomainError as error:
            raise CommandError(error.words) from error
