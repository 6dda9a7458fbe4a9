"""`manage.py publish_aup`: a new version of the acceptable-use policy."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from policies import services as policy_services
from policies.engine import aup as aup_engine
from portal.core.errors import DomainError
from principals.actors import SYSTEM_ACTOR


class Command(BaseCommand):
    help = (
        "Publish a version of the AUP from TOML (--show prints the one in force); agents are held until it is accepted."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", nargs="?", help="the policy, as --show prints it; - reads standard input")
        parser.add_argument("--show", action="store_true", help="print the source of the version in force, to edit it")
        parser.add_argument("--markdown", action="store_true", help="print it as a page")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["show"] or options["markdown"]:
            current = policy_services.current_aup()
            text = aup_engine.render_markdown(current.policy) if options["markdown"] else current.source
            self.stdout.write(text, ending="")
            return
        if not options["file"]:
            raise CommandError("Name a file, or ask with --show for the policy in force.")
        try:
            source = sys.stdin.read() if options["file"] == "-" else Path(options["file"]).read_text(encoding="utf-8")
            version = policy_services.publish_aup(actor=SYSTEM_ACTOR, source=source)
        except OSError as error:
            raise CommandError(f"{options['file']}: {error.strerror}") from error
        except DomainError as error:
            raise CommandError(error.words) from error
        self.stdout.write(f"AUP {version.version} is published; agents are held until it is accepted for them.")
