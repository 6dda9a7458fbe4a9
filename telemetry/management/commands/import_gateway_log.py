"""`manage.py import_gateway_log FILE… --kind ondemand|jupyterhub|firecrest --cluster NAME --host GATEWAY`."""

import contextlib
import gzip
import zlib
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.template.defaultfilters import pluralize

from portal.core.errors import DomainError
from principals.actors import SYSTEM_ACTOR
from telemetry import services
from telemetry.engine.gateways import KINDS
from telemetry.engine.gateways.lines import LONGEST_LINE
from telemetry.management.inputs import name_shown, open_input

_GZIP: Final = b"\x1f\x8b"


class Command(BaseCommand):
    help = "Import access logs of a gateway: who works through it by agents. The same lines again change nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", metavar="FILE", nargs="+", help="logs, also gzipped (.gz), or - for stdin")
        parser.add_argument("--kind", required=True, choices=KINDS, help="which gateway wrote them")
        parser.add_argument("--cluster", required=True, help="name of the cluster that it leads to")
        parser.add_argument("--host", required=True, help="name of the gateway's host, as its sessions are shown")
        parser.add_argument(
            "--zone", default="", help="time zone of logs that tell none (JupyterHub, FirecREST); else the facility's"
        )
        parser.add_argument("--realm", default="", help="what stands behind the @ of login names of this site")
        parser.add_argument("--system", default="", help="FirecREST: the system's name there; others are passed over")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            zone = ZoneInfo(options["zone"] or settings.FACILITY_TIME_ZONE)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise CommandError(f"{options['zone']} is no time zone; write it as Europe/Zurich or UTC.") from error
        asked = services.Asked(zone, options["realm"].removeprefix("@"), options["system"])
        for name in options["files"]:
            self._import(name, asked, options)

    def _import(self, name: str, asked: services.Asked, options: dict[str, Any]) -> None:
        try:
            with (
                open_input(name) as stream,
                services.feed_cluster(
                    actor=SYSTEM_ACTOR, kind="gateway", name=options["cluster"], say=self.stderr.write
                ) as cluster,
            ):
                summary = services.import_gateway_log(
                    actor=SYSTEM_ACTOR, cluster=cluster, lines=lines_of(stream), kind=options["kind"],
                    host=options["host"], name=name_shown(name), asked=asked,
                )  # fmt: skip
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise CommandError(f"{name_shown(name)} is no whole gzip file: nothing of it was taken.") from error
        except DomainError as error:
            raise CommandError(error.words) from error
        self.stdout.write(_describe(summary, name_shown(name)))


def lines_of(stream: BinaryIO) -> Iterator[str]:
    """Yield the lines of a log, gzipped or not; of one that is far too long, its beginning."""
    with contextlib.ExitStack() as stack:
        buffered = stream
        if hasattr(stream, "peek") and stream.peek(2)[:2] == _GZIP:
            buffered = cast(BinaryIO, stack.enter_context(gzip.open(stream)))
        while line := buffered.readline(LONGEST_LINE + 2):
            yield line.decode(errors="replace")
            while line and not line.endswith(b"\n"):
                line = buffered.readline(LONGEST_LINE)


def _describe(summary: services.GatewaySummary, shown: str) -> str:
    batch, asked = summary.batch, summary.requests
    total = asked.total()
    lines = [
        f"{shown}: {total} request{pluralize(total)} of somebody: agents’ {asked['agent']}, people’s {asked['human']}, "
        f"nobody knows whose {asked['unknown']}",
        f"  new {batch.created_rows}, known already {batch.duplicate_rows}, set aside {batch.rejected_rows}",
        f"  {summary.sessions} new session{pluralize(summary.sessions)} of agents, attributions of jobs changed "
        f"{summary.jobs}",
    ]
    for words, reasons in (("set aside for", services.count_reasons(batch)), ("no requests", summary.passed)):
        if reasons:
            lines.append(f"  {words}: " + ", ".join(f"{name} {number}" for name, number in sorted(reasons.items())))
    return "\n".join(lines)
