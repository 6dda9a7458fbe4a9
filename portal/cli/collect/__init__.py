"""`gatehouse collect`: what agents do on a node, as counts; for `deploy/systemd/gatehouse-collect.service`."""

import argparse
import sys

DEFAULT_CONFIG = "/etc/gatehouse/collect.toml"
FORMS = ("auditd", "tetragon", "falco")  # of records that are read


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "collect", help="count what agents do on this node, and send the counts",
        description="Watch the processes of this node and send the portal what agents do here: sessions, and counts a "
        "minute. Command lines are read, counted and forgotten here.",
    )  # fmt: skip
    parser.add_argument("--config", metavar="FILE", help=f"its settings ({DEFAULT_CONFIG})")
    parser.add_argument("--dry-run", action="store_true", help="print what would leave, and send nothing")
    parser.add_argument("--json", action="store_true", help="with --dry-run: exactly as it would leave, a body a line")
    parser.add_argument(
        "--seconds",
        type=_seconds,
        metavar="N",
        help="end after so long (with --dry-run: 60; records are read to their end)",
    )
    parser.add_argument(
        "--walk", action="store_true", help="walk /proc 5 times a second, also where the kernel tells what starts"
    )
    parser.add_argument(
        "--in-job", action="store_true", help="in a Slurm job: walk /proc for that job's processes alone, end with it"
    )
    parser.add_argument(
        "--records", choices=FORMS, metavar="FORM",
        help=f"read what the site's own sensor records instead of looking: {', '.join(FORMS)}",
    )  # fmt: skip
    parser.add_argument(
        "--records-from", metavar="FILE", help="the file or FIFO they come from, instead of standard input"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Collect until told to stop; 0, 1 where the helper failed, 2 with a code and a remedy for bad settings."""
    from portal.cli.collect.running import collect
    from portal.cli.files import Unusable

    try:
        return collect(options)
    except Unusable as error:
        print(error, file=sys.stderr)
        return 2


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds <= 31_536_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return seconds
