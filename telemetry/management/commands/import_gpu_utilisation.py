"""`manage.py import_gpu_utilisation FILE --cluster NAME --format jobstats|dcgm`."""

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from django.core.management.base import BaseCommand, CommandError
from django.template.defaultfilters import pluralize

from portal.core.errors import DomainError
from principals.actors import SYSTEM_ACTOR
from telemetry import services
from telemetry.engine.gpu_exports import FORMATS
from telemetry.engine.slurm.errors import FormatError
from telemetry.management.inputs import name_shown, open_input

_LONGEST_LINE: Final = 2**20


class Command(BaseCommand):
    help = "Import what jobs used of their GPUs. A second run changes nothing; a newer file replaces what is older."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="an export whose first line names columns, or - for stdin")
        parser.add_argument("--cluster", required=True, help="name of the cluster the jobs ran on")
        parser.add_argument(
            "--format", required=True, choices=FORMATS,
            help="jobstats (sacct with AdminComment, or flat CSV) or dcgm (CSV of samples)",
        )  # fmt: skip
        parser.add_argument("--source", default="file", help="name of the source, for Ingest health")

    def handle(self, *args: Any, **options: Any) -> None:
        name, say = options["file"], self.stderr.write
        try:
            with (
                open_input(name) as stream,
                services.feed_cluster(actor=SYSTEM_ACTOR, kind="gpu", name=options["cluster"], say=say) as cluster,
            ):
                summary = services.import_gpu_file(
                    actor=SYSTEM_ACTOR, cluster=cluster, lines=lines_of(stream), format=options["format"],
                    name=name_shown(name), source=options["source"],
                )  # fmt: skip
        except FormatError as error:
            raise CommandError(f"{name}: {error}") from error
        except DomainError as error:
            raise CommandError(error.words) from error
        self.stdout.write(_describe(summary, name_shown(name)))


def lines_of(stream: BinaryIO) -> Iterator[str]:
    """Yield lines, of very long ones the beginning only: no line of an export is a megabyte."""
    while line := stream.readline(_LONGEST_LINE):
        yield line.decode(errors="replace")
        while line and not line.endswith(b"\n"):
            line = stream.readline(_LONGEST_LINE)


def _describe(summary: services.FileSummary, shown: str) -> str:
    batch = summary.batch
    lines = [
        f"{shown}: {batch.total_rows} reading{pluralize(batch.total_rows)} of a job's GPU",
        f"  new {batch.created_rows}, changed {batch.updated_rows}, known already {batch.duplicate_rows}, "
        f"older than known {batch.late_rows}",
        f"  job not known yet {summary.waiting}, set aside {batch.rejected_rows}",
    ]
    for words, reasons in (("set aside for", services.count_reasons(batch)), ("skipped", summary.skipped)):
        if reasons:
            lines.append(f"  {words}: " + ", ".join(f"{name} {number}" for name, number in reasons.items()))
    return "\n".join(lines)
