"""`manage.py baseline_study start|end|list`: the studies in which people's own shells are observed."""

from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.core import clock
from portal.core.errors import DomainError
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster
from telemetry import services
from telemetry.models import BaselineStudy


class Command(BaseCommand):
    help = "Start, end or list the approved studies in which people's own shells are observed on login nodes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("act", choices=("start", "end", "list"), help="what to do")
        parser.add_argument("name", nargs="?", default="", help="the study's name, as collectors are told it")
        parser.add_argument("--cluster", help="the cluster whose login nodes take part")
        parser.add_argument("--purpose", default="", help="what it is for, in a sentence; people can read it")
        parser.add_argument("--approved-by", default="", help="the board or office that approved it, and its reference")
        parser.add_argument("--from", dest="since", help="its first day, UTC (2026-07-07); from now on where left out")
        parser.add_argument("--until", help="its last day, UTC (2026-08-01)")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            {"start": self._start, "end": self._end, "list": self._list}[options["act"]](options)
        except DomainError as error:
            raise CommandError(error.words) from error

    def _start(self, options: dict[str, Any]) -> None:
        if not options["until"]:
            raise CommandError("A study has a last day: give it with --until.")
        study = services.start_study(
            actor=SYSTEM_ACTOR, cluster=_cluster(options), name=options["name"], purpose=options["purpose"],
            approved_by=options["approved_by"], starts=_midnight(options["since"]) if options["since"] else None,
            until=_midnight(options["until"]) + timedelta(days=1),
        )  # fmt: skip
        self.stdout.write(_describe(study))

    def _end(self, options: dict[str, Any]) -> None:
        study = BaselineStudy.objects.filter(cluster=_cluster(options), name=options["name"]).first()
        if study is None:
            raise CommandError(f"There is no study {options['name']!r} on this cluster.")
        self.stdout.write(_describe(services.end_study(actor=SYSTEM_ACTOR, study=study)))

    def _list(self, options: dict[str, Any]) -> None:
        studies = BaselineStudy.objects.select_related("cluster").order_by("-starts", "name")
        if options["cluster"]:
            studies = studies.filter(cluster=_cluster(options))
        self.stdout.write("\n".join(map(_describe, studies)) or "There is no study: people are not observed.")


def _cluster(options: dict[str, Any]) -> Cluster:
    cluster = Cluster.objects.named(options["cluster"] or "").first()
    if cluster is None:
        raise CommandError(f"There is no cluster {options['cluster'] or ''!r}: name one with --cluster.")
    return cluster


def _midnight(day: str) -> datetime:
    return clock.midnight(clock.read_day(day))


def _describe(study: BaselineStudy) -> str:
    return (
        f"{study.name} on {study.cluster.name}: {study.state}, {study.first_day} to {study.last_day} (UTC), "
        f"approved by {study.approved_by}. {study.purpose}"
    )
