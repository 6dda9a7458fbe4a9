"""`gatehouse check-data`: may a model see a path? Asked by a harness before it opens one."""

import argparse
import json
import os
import sys

from portal.cli import client
from portal.cli.me import refusal

REFUSED = 3


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = commands.add_parser("check-data", help="whether the site lets a model see a path (status 3: no)")
    parser.add_argument("path", help="a file or folder; its links are followed here")
    parser.add_argument("--provider", default="", help="who runs the model; site for the site's own")
    parser.add_argument("--model", default="")
    parser.add_argument("--project", default="", help="the project that the data belong to")
    parser.add_argument("--label", action="append", default=[], help="a label that the data have, again for more")
    parser.add_argument("--json", action="store_true", help="print the portal's answer as it is")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Ask; return 0 where the model may see it, 3 where not, 1 and 2 where nobody could say."""
    asked = {
        "path": os.path.realpath(options.path), "provider": options.provider, "model": options.model,
        "project": options.project, "labels": options.label,
    }  # fmt: skip
    body = json.dumps(asked).encode()
    try:
        answer = client.post(client.portal_url(), "/site/data-gate", token=client.token(), body=body, headers={})
    except client.PortalUnreachable as error:
        print(error, file=sys.stderr)
        return 2
    if answer.status >= 300:
        print(refusal(answer.said), file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(answer.said, indent=2))
    elif not answer.said["allowed"]:
        print(f"{answer.said['why']} [{answer.said['clause']}]\n{answer.said['remedy']}", file=sys.stderr)
    return 0 if answer.said["allowed"] else REFUSED
