"""`gatehouse me`: who am I to the portal, what may I do, what do I still lack."""

import argparse
import json
import sys
from typing import Any

from portal.cli import client


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = commands.add_parser("me", help="who this token is, what it may do, what it still lacks")
    parser.add_argument("--json", action="store_true", help="print the portal's answer as it is")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Ask and print."""
    try:
        me = client.get("/me")
    except client.PortalRefused as refused:
        print(refusal(refused.problem), file=sys.stderr)
        return 1
    except client.PortalUnreachable as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(me, indent=2) if options.json else describe(me))
    return 0


def refusal(problem: dict[str, Any]) -> str:
    """Say a problem in one or two lines."""
    said = f"{problem.get('detail') or problem.get('title')} [{problem.get('code', '')}]"
    remedy = problem.get("remedy")
    return f"{said}\n{remedy}" if remedy else said


def describe(me: dict[str, Any]) -> str:
    """Say the answer in a few lines."""
    lines = [
        f"{me['agent']} ({me['harness']}, {me['autonomy']}) acts for {me['acts_for']} of {me['lab']}.",
        f"Status {me['status']}; risk tier {me['tier']['name']}.",
        f"Its registration ends {me['limits']['registration_ends']}.",
        f"Scopes: {', '.join(me['token']['scopes'])}; this token ends {me['token']['expires']}.",
    ]
    lines += [f"Lacks: {item['what']} {item['remedy']}".rstrip() for item in me["missing"]]
    return "\n".join(lines)
