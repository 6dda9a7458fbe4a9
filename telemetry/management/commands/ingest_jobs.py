"""`manage.py ingest_jobs FILE… --cluster NAME`: read accounting logs in this process, with no worker."""

import sys
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.template.defaultfilters import pluralize

from portal.core import stopping
from portal.core.errors import DomainError
from principals.actors import SYSTEM_ACTOR
from telemetry import services
from telemetry.management.inputs import name_shown, open_input
from telemetry.models import IngestBatch
from telemetry.services.ingest.reading import FORMATS

_EVERY_S = 0.2


class Command(BaseCommand):
    help = "Ingest Slurm accounting logs. A second run changes nothing; an interrupted one goes on where it stopped."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", metavar="FILE", help="a log, or - for standard input")
        parser.add_argument("--cluster", required=True, help="name of the cluster the jobs ran on")
        parser.add_argument(
            "--format", default="sacct", choices=FORMATS, help="sacct (with header), sacct-json or xdmod"
        )
        parser.add_argument("--source", default="file", help="name of the source, for Ingest health")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            name, say = options["cluster"], self.stderr.write
            with services.feed_cluster(actor=SYSTEM_ACTOR, kind="jobs", name=name, say=say) as cluster:
                for file in options["files"]:
                    self._ingest(file, cluster, options)
        except DomainError as error:
            raise CommandError(error.words) from error
        except KeyboardInterrupt as error:
            self.stderr.write("\nInterrupted. All that was read is stored; run the same command again to go on.")
            sys.exit(stopping.status_of(error))

    def _ingest(self, name: str, cluster: Any, options: dict[str, Any]) -> None:
        shown = name_shown(name)
        meter = _Meter(self.stderr, shown)
        with open_input(name) as stream:
            batch = services.ingest_file(
                actor=SYSTEM_ACTOR, cluster=cluster, stream=stream, format=options["format"],
                source=options["source"], name=shown, progress=meter.show,
            )  # fmt: skip
        meter.clear()
        if batch.state != IngestBatch.State.DONE:
            raise CommandError(f"{shown}: {batch.error}")
        self.stdout.write(summary_of(batch, shown))
        if others := services.describe_others(batch):
            raise CommandError(
                f"{shown}: nothing was stored, for every record is of another cluster. {' '.join(others)}"
            )


def summary_of(batch: IngestBatch, shown: str) -> str:
    """Return the summary of a finished batch, one plain line a fact."""
    lines = [
        f"{shown}: {batch.total_rows} record{pluralize(batch.total_rows)}",
        f"  new {batch.created_rows}, changed {batch.updated_rows}, known already {batch.duplicate_rows}, "
        f"older than known {batch.late_rows}",
        f"  steps {batch.step_rows}, set aside {batch.rejected_rows}, secrets redacted {batch.redactions}",
    ]
    if batch.rejected_rows:
        reasons = services.count_reasons(batch)
        lines.append("  set aside for: " + ", ".join(f"{name} {number}" for name, number in reasons.items()))
    return "\n".join(lines)


class _Meter:
    """A line of progress on a terminal; nothing elsewhere."""

    def __init__(self, out: Any, name: str) -> None:
        self._out, self._name = out, name
        self._live = bool(out.isatty())
        self._start = self._shown = time.monotonic()
        self._first: services.Progress | None = None

    def show(self, progress: services.Progress) -> None:
        """Show how far it is, at most five times a second."""
        now = time.monotonic()
        first = self._first = self._first or progress
        if not self._live or now - self._shown < _EVERY_S:
            return
        self._shown, passed = now, max(now - self._start, 0.001)
        rows, pace = progress.rows, (progress.rows - first.rows) / passed
        parts = [f"{self._name}: {rows} record{pluralize(rows)}", f"{pace:.0f}/s"]
        if progress.bytes_total:
            parts.append(f"{progress.offset / 1e6:.1f} of {progress.bytes_total / 1e6:.1f} MB")
            speed = (progress.offset - first.offset) / passed
            if speed > 0:
                parts.append(f"about {(progress.bytes_total - progress.offset) / speed:.0f} s left")
        self._out.write("\r\x1b[K" + ", ".join(parts), ending="")

    def clear(self) -> None:
        """Take the line away."""
        if self._live:
            self._out.write("\r\x1b[K", ending="")
