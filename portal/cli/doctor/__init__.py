"""`gatehouse doctor`: what this node, user and site allow, tier by tier, each lack with what would mend it."""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from portal.cli.doctor.findings import Finding
    from portal.cli.doctor.leftovers import Leftover
    from portal.cli.doctor.node import Node

TIERS = 5


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "doctor", help="what this node, user and site allow, and what would mend what they do not",
        description="Look at this node tier by tier and say what works, what is missing, and what would mend it. "
        "Nothing is changed; Slurm's controller is asked once for its settings.",
    )  # fmt: skip
    parser.add_argument(
        "--tier", type=int, choices=range(TIERS), action="append", metavar="N",
        help="0 assess, 1 register, 2 serve, 3 observe, 4 enforce; without it 0 to 2; may be given again",
    )  # fmt: skip
    parser.add_argument("--uninstall", action="store_true", help="list what the tiers left here, and how it goes")
    parser.add_argument("--dry-run", action="store_true", help="with --uninstall: needed, for nothing is removed")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Look and print; 0, 1 where something is wrong, 2 for options that do not go together."""
    from portal.cli.doctor import findings, leftovers
    from portal.cli.doctor.node import Node

    if options.uninstall is not options.dry_run:
        print(
            "gatehouse doctor lists what there is to remove and removes nothing: give --uninstall --dry-run together.",
            file=sys.stderr,
        )
        return 2
    node = Node()
    if options.uninstall:
        found = [each for each in leftovers.find(node) if not options.tier or each.tier in options.tier]
        print(json.dumps([each._asdict() for each in found], indent=2) if options.json else _list(found))
        return 0
    seen = list(look(node, options.tier or [0, 1, 2]))
    print(json.dumps(findings.as_data(seen), indent=2) if options.json else findings.describe(seen))
    return int(any(finding.state == "wrong" for finding in seen))


def look(node: "Node", tiers: Iterable[int]) -> "Iterable[Finding]":
    """Return what the checks of some tiers find."""
    from portal.cli.doctor import enforcing, first_contact, observing, portal, serving

    looks = (first_contact.look, portal.look, serving.look, observing.look, enforcing.look)
    return (finding for tier in sorted(set(tiers)) for finding in looks[tier](node))


def _list(found: "Sequence[Leftover]") -> str:
    if not found:
        return "Nothing of Gatehouse is left on this node, as far as you may look."
    return "\n".join(line for each in found for line in (f"T{each.tier} {each.what}", f"     {each.remove}"))
