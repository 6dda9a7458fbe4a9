"""`manage.py import_labs`: labs, their people and accounts from CSV."""

from collections import Counter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.core.errors import DomainError
from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR
from principals.engine.lab_csv import read_labs


class Command(BaseCommand):
    help = (
        "Import labs, their people and Slurm accounts from CSV; a ColdFront export's columns work. Says what became of "
        "each line. Doing it again changes nothing, and nobody is taken away."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="a CSV file whose first line names the columns")
        parser.add_argument("--cluster", default="", help="tie the accounts that it names, on this cluster, to labs")
        parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do none of it")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with options["file"].open(encoding="utf-8-sig", newline="") as text:
                lines = list(read_labs(text))
            done = principal_services.import_labs(
                actor=SYSTEM_ACTOR, lines=lines, cluster_name=options["cluster"], dry_run=options["dry_run"]
            )
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{options['file']} cannot be read: {error}.") from error
        except ValueError as error:
            raise CommandError(str(error)) from error
        except DomainError as error:
            raise CommandError(error.words) from error
        for line in done:
            self.stdout.write(f"line {line.number}: {line.outcome}: {line.words}")
        counts = Counter(line.outcome for line in done)
        kept = "Nothing was kept: this was a dry run." if options["dry_run"] else "Nobody was taken away."
        self.stdout.write(
            f"{counts['changed']} changed, {counts['unchanged']} unchanged, {counts['refused']} refused. {kept}"
        )
