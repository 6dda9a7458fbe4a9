"""`gatehouse eventd`: sends what Slurm's hooks tell to the portal; for `deploy/systemd/gatehouse-eventd.service`."""

import argparse
import sys

DEFAULT_CONFIG = "/etc/gatehouse/eventd.toml"


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "eventd", help="send what Slurm’s hooks tell of jobs to the portal",
        description="Take what the hooks of slurmctld wrote to their spool, and send it to the portal at once. It runs "
        "on the controller’s host, as SlurmUser.",
    )  # fmt: skip
    parser.add_argument("--config", metavar="FILE", help=f"its settings ({DEFAULT_CONFIG})")
    parser.add_argument("--once", action="store_true", help="send what is there and end: 1 where it was not taken")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Send until told to stop; 0, or 2 with a code and a remedy for bad settings. Once: 1 where something is left."""
    from portal.cli.eventd.running import serve
    from portal.cli.files import Unusable

    try:
        return serve(options)
    except Unusable as error:
        print(error, file=sys.stderr)
        return 2
