"""`manage.py slurm_reader --cluster NAME`: read a Slurm for as long as it runs; a second one stands by."""

import signal
import sys
import threading
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.template.defaultfilters import pluralize

from portal.core.errors import DomainError
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster
from telemetry import services
from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.source import SlurmSource
from telemetry.models import InventoryReading
from telemetry.services.reader.asking import describe, describe_with_remedy
from telemetry.services.reader.reader import ReaderStopped
from telemetry.services.reader.service import Pace


class Command(BaseCommand):
    help = (
        "Read a Slurm's queue, accounting and inventory into the portal, with the commands of this host or by PySlurm. "
        "One reader serves a cluster; another that is started stands by and takes over when the first has gone."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--cluster", required=True, help="name of the cluster, as Slurm calls it")
        parser.add_argument("--every", type=float, default=5.0, metavar="S", help="seconds between looks at the queue")
        parser.add_argument(
            "--sweep", type=float, default=300.0, metavar="S", help="seconds between sweeps of accounting"
        )
        parser.add_argument(
            "--source", choices=("commands", "pyslurm"), default="commands", help="who asks Slurm; PySlurm is of 25.11"
        )
        parser.add_argument(
            "--pyslurm-python", metavar="PATH", help="the Python interpreter that has PySlurm (default: this one)"
        )
        parser.add_argument(
            "--slurm-name", default="", metavar="NAME", help="what Slurm calls the cluster, where the portal differs"
        )
        parser.add_argument("--once", action="store_true", help="one look, one sweep and the inventory, then end")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["every"] < 1 or options["sweep"] < options["every"]:
            raise CommandError("--every is a second or more, and --sweep no less than that.")
        given = {"source": _source(options), "slurm_name": options["slurm_name"]}
        try:
            name, say = options["cluster"], self.stderr.write
            with services.feed_cluster(actor=SYSTEM_ACTOR, kind="jobs", name=name, say=say) as cluster:
                if options["once"]:
                    self._read_once(cluster, **given)
                    return
                services.serve(
                    actor=SYSTEM_ACTOR, cluster=cluster, stop=_ended_by_signals(), say=say,
                    pace=Pace(look_s=options["every"], sweep_s=options["sweep"]), **given,
                )  # fmt: skip
        except (DomainError, FormatError) as error:
            raise CommandError(describe_with_remedy(error)) from error

    def _read_once(self, cluster: Cluster, **given: Any) -> None:
        with services.hold_reader(actor=SYSTEM_ACTOR, cluster=cluster, **given) as reader:
            if reader is None:
                raise CommandError(f"Another reader reads {cluster.name}: what this one would read is being read.")
            try:
                self._read(reader)
            except ReaderStopped as error:
                raise CommandError(f"Another reader has taken {cluster.name} over.") from error

    def _read(self, reader: services.Reader) -> None:
        try:
            reader.meet()
            asked = reader.look()
            reader.sweep()
            reader.count()
            self._take_inventory(reader)
        except (DomainError, FormatError) as error:
            reader.fail(describe_with_remedy(error))
            raise
        finally:
            reader.close()
        services.catch_up(cluster=reader.cluster, gpus=False)
        self.stdout.write(
            f"{len(reader.queue)} job{pluralize(reader.queue)} in the queue, {asked} asked about, "
            f"{len(reader.unsettled)} unsettled."
        )

    def _take_inventory(self, reader: services.Reader) -> None:
        """Say what is in vain: the jobs, which are what was asked for, are read by then."""
        for kind in InventoryReading.Kind:
            try:
                reader.take_inventory(kind)
            except (DomainError, FormatError) as error:
                self.stderr.write(f"{kind.label}: {describe(error)}")


def _source(options: dict[str, Any]) -> SlurmSource:
    if options["source"] == "pyslurm":
        return services.PySlurm(python=options["pyslurm_python"] or sys.executable)
    if options["pyslurm_python"]:
        raise CommandError("--pyslurm-python goes with --source pyslurm.")
    return services.Commands()


def _ended_by_signals() -> threading.Event:
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop
