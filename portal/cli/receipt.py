"""`gatehouse receipt`: a word for a job's comment, by which the agent of this token declares the job."""

import argparse
import json
import sys

from portal.cli import client
from portal.cli.me import refusal


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = commands.add_parser("receipt", help='print a receipt: sbatch --comment "$(gatehouse receipt)" job.sh')
    parser.add_argument("--cluster", default="", help="the cluster, where the lab has accounts on several")
    parser.add_argument("--json", action="store_true", help="print the portal's answer as it is")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Ask and print. What is refused prints nothing to stdout: the job is submitted without a receipt then."""
    from urllib.parse import urlencode

    path = f"/jobs/receipts?{urlencode({'cluster': options.cluster})}"
    try:
        answer = client.post(client.portal_url(), path, token=client.token(), body=b"", headers={})
    except client.PortalUnreachable as error:
        print(error, file=sys.stderr)
        return 2
    if answer.status >= 300:
        print(refusal(answer.said), file=sys.stderr)
        return 1
    print(json.dumps(answer.said, indent=2) if options.json else answer.said["receipt"])
    return 0
