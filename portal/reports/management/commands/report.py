from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.core.errors import DomainError
from portal.reports import pages, services
from principals.actors import SYSTEM_ACTOR
from telemetry.management.inputs import find_cluster
from telemetry.models import RollupDay
from telemetry.selectors import Period


class Command(BaseCommand):
    help = "Write a month's agent-load report: the published one, or as the data are now."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--cluster", required=True, help="the cluster it is about")
        parser.add_argument("--month", required=True, help="as 2026-07")
        parser.add_argument(
            "--format", choices=["json", "csv", "html"], default="json", help="of what is written (json)"
        )
        parser.add_argument("--output", type=Path, help="a file; without it, standard output")
        parser.add_argument("--fresh", action="store_true", help="measure now, even where a version is published")

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = find_cluster(options["cluster"])
        try:
            period = Period.parse_month(options["month"])
            content = services.current_content(
                actor=SYSTEM_ACTOR, cluster=cluster, period=period, fresh=options["fresh"]
            )
        except DomainError as error:
            raise CommandError(f"{error.detail} {error.remedy}".strip()) from error
        if not RollupDay.objects.filter(cluster=cluster, day__range=(period.first, period.last)).exists():
            self.stderr.write(f"There are no jobs of {cluster.name} in {options['month']}; its counts are zero.")
        text = pages.write(content, options["format"])
        if options["output"]:
            try:
                options["output"].write_text(text, encoding="utf-8")
            except OSError as error:
                raise CommandError(f"{options['output']} cannot be written: {error.strerror}.") from error
            self.stderr.write(f"Wrote {options['output']}.")
        else:
            self.stdout.write(text)
