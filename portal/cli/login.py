"""`gatehouse login`: a token for twelve hours, by the node's MUNGE or by a code that its person enters in the browser.

`gatehouse logout` gives it back.
"""

import argparse
import json
import os
import sys
from typing import Any

from portal.cli import client
from portal.cli.me import refusal
from portal.cli.output import plain


class Failed(Exception):
    """What to say, and the status to end with."""

    def __init__(self, words: str, status: int = 2) -> None:
        super().__init__(words)
        self.status = status


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add both subcommands."""
    parser = commands.add_parser(
        "login", help="get a token for twelve hours, kept in memory of this node alone",
        description="Get a token for an agent of yours, bound to this host, for twelve hours: by this node's MUNGE.",
    )  # fmt: skip
    parser.add_argument(
        "--agent", default=os.environ.get("GATEHOUSE_AGENT", ""),
        help="for which agent; without it GATEHOUSE_AGENT, or the only one of yours",
    )  # fmt: skip
    parser.add_argument(
        "--cluster", default="", help="the cluster, where your login name is somebody else's on another"
    )
    parser.add_argument("--scope", action="append", default=[], help="what it may do; without it the default scopes")
    parser.add_argument("--print", action="store_true", help="print the token, and keep it nowhere")
    parser.set_defaults(run=run_login)
    out = commands.add_parser("logout", help="give the token of a login back: it ends at once")
    out.set_defaults(run=run_logout)


def run_login(options: argparse.Namespace) -> int:
    """Log in, keep the token, say for whom it is."""
    from portal.cli import session_file

    try:
        url = _safe_url()
        said = _by_munge(url, options)
        if options.print:
            print(said["token"])
            return 0
        place = session_file.write(url, said["token"])
    except session_file.NoPlace as error:
        print(f"{error} [no_place]\nRun gatehouse login --print, and put it where it is needed.", file=sys.stderr)
        return 2
    except client.PortalUnreachable as error:
        print(error, file=sys.stderr)
        return 2
    except Failed as failed:
        print(failed, file=sys.stderr)
        return failed.status
    print(f"{plain(said['agent'])} acts for {plain(said['acts_for'])} until {plain(said['expires'])}.")
    print(f"The token is in memory of this node: {place}")
    return 0


def run_logout(options: argparse.Namespace) -> int:
    """Give the token back and forget it."""
    from portal.cli import session_file

    try:
        url = _safe_url()
        file = session_file.find(url)
        if file is None:
            print("Nobody is logged in here.", file=sys.stderr)
            return 1
        answer = client.post(url, "/token/revoke", token=client.read_token(file), body=b"", headers={})
    except client.PortalUnreachable as error:
        print(error, file=sys.stderr)
        return 2
    except Failed as failed:
        print(failed, file=sys.stderr)
        return failed.status
    if answer.status in (401, 200):  # it may have ended before
        file.unlink(missing_ok=True)
    if answer.status != 200:
        print(refusal(answer.said), file=sys.stderr)
        return 1
    print("The token ended.")
    return 0


def _safe_url() -> str:
    """Return the portal's address, where a credential may be sent to it. Errors: `Failed`."""
    from portal.cli.settings import is_safe_address

    url = client.portal_url()
    if not is_safe_address(url):
        raise Failed(f"{url} is no address to send a credential to [portal_address]\nGive it as https://… .")
    return url


def _by_munge(url: str, options: argparse.Namespace) -> dict[str, Any]:
    """Ask for a number, put it into a credential, and exchange that for a token."""
    import socket

    from principals.engine.munge import Statement

    asked = _answered(client.ask(url, "/api/v1/login/munge"))
    said = Statement(
        portal=url, nonce=asked["nonce"], host=socket.gethostname(), agent=options.agent, cluster=options.cluster,
        scopes=tuple(options.scope),
    )  # fmt: skip
    credential = _make_credential(said.encode(), int(asked["restrict_uid"]), int(asked["ttl_s"]))
    body = json.dumps({"credential": credential}).encode()
    return _answered(client.post(url, "/login/munge", token="", body=body, headers={}))


def _answered(answer: client.Answer) -> dict[str, Any]:
    if answer.status != 200:
        raise Failed(refusal(answer.said), 1)
    return answer.said


def _make_credential(payload: bytes, reader: int, ttl_s: int) -> str:
    """Let this node's munged make a credential that only the portal's user can read. Errors: `Failed`."""
    import shutil
    import subprocess

    program = shutil.which("munge")
    remedy = "Run gatehouse login --device, or use a token from the agent's page."
    if program is None:
        raise Failed(f"munge is not in PATH [no_munge]\n{remedy}")
    where = os.environ.get("GATEHOUSE_MUNGE_SOCKET", "")
    options = [f"--ttl={ttl_s}", f"--restrict-uid={reader}", *([f"--socket={where}"] if where else [])]
    try:
        ran = subprocess.run([program, *options], input=payload, capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed(f"munge cannot be run: {error} [no_munge]\n{remedy}") from None
    if ran.returncode:
        told = plain(ran.stderr.decode(errors="replace").strip())
        raise Failed(f"munge made no credential: {told} [no_munge]\n{remedy}")
    return ran.stdout.decode("ascii", errors="replace").strip()
