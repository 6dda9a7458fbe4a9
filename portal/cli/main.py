"""The `gatehouse` command for login nodes: it speaks to the portal's REST API and imports no server code.

`assess` alone speaks to nobody, and imports the server's code when it runs.
"""

import argparse
import sys
from collections.abc import Sequence

from portal.cli import assess, check_data, checkin, collect, doctor, eventd, init, login, me, receipt, verify, wait
from portal.cli.output import writing_carefully


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command."""
    parser = argparse.ArgumentParser(
        prog="gatehouse", description="Speak to the Gatehouse portal, or assess a cluster without one."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    me.add_to(commands)
    login.add_to(commands)
    receipt.add_to(commands)
    checkin.add_to(commands)
    check_data.add_to(commands)
    wait.add_to(commands)
    assess.add_to(commands)
    collect.add_to(commands)
    eventd.add_to(commands)
    doctor.add_to(commands)
    init.add_to(commands)
    verify.add_to(commands)
    commands.add_parser("squeue", help="what squeue prints, of your own jobs, without asking the controller")
    commands.add_parser("sacct", help="what sacct prints, of your own jobs, asked once for all who wait for it")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; return 0, 1 when the portal refused, 2 when it or a file could not be asked."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] in (["squeue"], ["sacct"]):  # every word behind it is Slurm's, and a loop waits for it
        from portal.cli.shims.run import run

        with writing_carefully():
            return run(given[0], given[1:])
    with writing_carefully():
        options = build_parser().parse_args(arguments)
        status: int = options.run(options)
    return status


if __name__ == "__main__":
    sys.exit(main())
