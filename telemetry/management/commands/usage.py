import json
from argparse import ArgumentTypeError
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Max, Min

from portal.core import clock
from portal.core.errors import Invalid
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster
from telemetry import services
from telemetry.management.inputs import find_cluster
from telemetry.models import Job, RollupDay
from telemetry.selectors import Period, Scope, Totals, daily_totals, totals

HOURS = {
    "cpu_hours": "core_s", "wall_hours": "wall_s", "wait_hours": "wait_s", "node_hours": "node_s", "gpu_hours": "gpu_s",
}  # fmt: skip


def as_usage(sums: Totals) -> dict[str, int | float | None]:
    """Name totals as accounting does; hours unrounded."""
    hours = {name: getattr(sums, seconds) / 3600 for name, seconds in HOURS.items()}
    return {
        "job_count": sums.ended, **hours, "users": sums.users, "labs": sums.labs, "max_cores": sums.max_cores,
        "expansion_factor": sums.expansion_factor, "never_started": sums.ended_never_started,
        "submissions": sums.submissions,
    }  # fmt: skip


def _day(text: str) -> date:
    try:
        return clock.read_day(text)
    except Invalid as error:
        raise ArgumentTypeError(f"{error.detail} {error.remedy}") from None


class Command(BaseCommand):
    help = (
        "Print a cluster's usage from the rollups, once they are up to date. job_count, users, labs, wait_hours, "
        "max_cores and expansion_factor are of jobs that ended after having started; hours are cut at UTC midnights."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--cluster", required=True, help="the cluster to measure")
        parser.add_argument("--daily", action="store_true", help="also each UTC day; sums add up to the totals")
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
        parser.add_argument("--from", dest="first", type=_day, help="first UTC day, as 2026-07-01")
        parser.add_argument("--to", dest="last", type=_day, help="last UTC day, included")

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = find_cluster(options["cluster"])
        if not services.catch_up(cluster=cluster):
            raise CommandError("Another process holds the rollups' lease and does not finish; try again in a minute.")
        scope = Scope(actor=SYSTEM_ACTOR, cluster=cluster, period=_period(cluster, options["first"], options["last"]))
        report = self._report(scope, daily=options["daily"])
        self.stdout.write(json.dumps(report, indent=1) if options["json"] else _text(report))

    def _report(self, scope: Scope, *, daily: bool) -> dict[str, Any]:
        rows = Job.objects.filter(
            cluster=scope.cluster, submit__gte=scope.period.starts, submit__lt=scope.period.ends
        ).count()
        whole = {name: _rounded(value) for name, value in as_usage(totals(scope)).items()}
        report: dict[str, Any] = {
            "cluster": scope.cluster.name, "from": str(scope.period.first), "to": str(scope.period.last), **whole,
            "rows": rows,
        }  # fmt: skip
        if daily:
            report["days"] = [{"day": str(day), **as_usage(sums)} for day, sums in daily_totals(scope).items()]
        return report


def _period(cluster: Cluster, first: date | None, last: date | None) -> Period:
    known = RollupDay.objects.filter(cluster=cluster).aggregate(first=Min("day"), last=Max("day"))
    first = first or known["first"] or last or clock.now().date()
    last = last or max(known["last"] or first, first)
    if last < first:
        raise CommandError(f"The period ends ({last}) before it begins ({first}).")
    return Period(first, last)


def _rounded(value: float | None) -> float | None:
    return round(value, 4) if isinstance(value, float) else value


def _text(report: dict[str, Any]) -> str:
    days = report.pop("days", [])
    lines = [f"{name:<18}{_shown(value):>16}" for name, value in report.items()]
    if days:
        names = [name for name in days[0] if name != "expansion_factor"]
        lines += ["", "  ".join(f"{name:>13}" for name in names)]
        lines += ["  ".join(f"{_shown(day[name]):>13}" for name in names) for day in days]
    return "\n".join(lines)


def _shown(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else "-" if value is None else str(value)
