import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.core import clock
from portal.core.errors import DomainError
from portal.reports import pages, services
from principals.actors import SYSTEM_ACTOR
from telemetry.management.inputs import find_cluster
from telemetry.models import RollupDay
from telemetry.selectors import Period

KINDS = (*pages.KINDS, pages.TEXT)


class Command(BaseCommand):
    help = "Write a period's agent-load report: the published one, or as the data are now."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?", metavar="CLUSTER", help="the cluster it is about")
        parser.add_argument("--cluster", help="the same, as an option")
        parser.add_argument("--month", help="as 2026-07")
        parser.add_argument("--week", help="as 2026-W28, or `last`: Monday to Sunday, UTC")
        parser.add_argument("--from", dest="first", help="the first day, as 2026-07-07; with --to")
        parser.add_argument("--to", dest="last", help="the last day, as 2026-08-01")
        parser.add_argument("--short", action="store_true", help="its headline figures alone, fit for a mail")
        parser.add_argument("--format", choices=KINDS, help="of what is written (as --out ends, else json)")
        parser.add_argument("--output", "--out", type=Path, help="a file; without it, standard output")
        parser.add_argument("--fresh", action="store_true", help="measure now, even where a version is published")

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = find_cluster(_cluster_name(options))
        kind = _kind(options)
        try:
            period = _period(options)
            content = services.current_content(
                actor=SYSTEM_ACTOR, cluster=cluster, period=period, fresh=options["fresh"]
            )
            written = pages.write_brief(content, kind) if options["short"] else pages.write(content, kind)
        except DomainError as error:
            raise CommandError(error.words) from error
        if not RollupDay.objects.filter(period.holds_day, cluster=cluster).exists():
            self.stderr.write(f"There are no jobs of {cluster.name} in {period.name}; its counts are zero.")
        if options["output"]:
            try:
                options["output"].write_bytes(written)
            except OSError as error:
                raise CommandError(f"{options['output']} cannot be written: {error.strerror}.") from error
            self.stderr.write(f"Wrote {options['output']}.")
        elif kind == "pdf":
            sys.stdout.buffer.write(written)
        else:
            self.stdout.write(written.decode())


def _cluster_name(options: dict[str, Any]) -> str:
    named = {name for name in (options["name"], options["cluster"]) if name}
    if len(named) != 1:
        raise CommandError("Name the cluster it is about." if not named else "Name one cluster.")
    return str(named.pop())


def _period(options: dict[str, Any]) -> Period:
    days = options["first"] or options["last"]
    if sum(map(bool, (options["month"], options["week"], days))) != 1:
        raise CommandError("Name one period: --month, --week, or --from and --to.")
    if options["month"]:
        return Period.parse_month(options["month"])
    if options["week"]:
        last = options["week"] == "last"
        return Period.week(clock.now().date()).previous() if last else Period.parse_week(options["week"])
    return Period.between(options["first"] or "", options["last"] or "")


def _kind(options: dict[str, Any]) -> str:
    """Return what is to be written: as asked for, else as the file's name ends."""
    known = pages.BRIEF_KINDS if options["short"] else pages.KINDS
    ending = options["output"].suffix[1:].lower() if options["output"] else ""
    kind = options["format"] or {"txt": pages.TEXT, "": "json"}.get(ending, ending)
    if kind not in known:
        raise CommandError(f"{'The short form' if options['short'] else 'A report'} is written as {', '.join(known)}.")
    return str(kind)
