from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.core import anchors, audit


class Command(BaseCommand):
    help = "Seal what is left, prove the audit chain against its anchors, and fail on any fault."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--no-seal", action="store_true", help="prove only; leave unsealed rows as they are")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["no_seal"]:
            audit.seal_all()
        noted = anchors.read_anchors()
        faults = list(audit.verify(noted))
        for fault in faults[:50]:
            self.stderr.write(f"seq {fault.seq}: {fault.message}")
        if faults:
            raise CommandError(f"The audit chain has {len(faults)} faults.")
        seq, hashed = audit.head()
        self.stdout.write(f"{seq} events verified, {len(noted)} anchors agree, head {hashed[:16]}")
