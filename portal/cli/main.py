"""The `gatehouse` command for login nodes: it speaks to the portal's REST API and imports no server code."""

import argparse
import sys
from collections.abc import Sequence

from portal.cli import me
from portal.cli.output import writing_carefully


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command."""
    parser = argparse.ArgumentParser(prog="gatehouse", description="Speak to the Gatehouse portal.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    me.add_to(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; return 0, 1 when the portal refused, 2 when it could not be reached or asked."""
    with writing_carefully():
        options = build_parser().parse_args(arguments)
        status: int = options.run(options)
    return status


if __name__ == "__main__":
    sys.exit(main())
