"""`gatehouse checkin`: check a session in for a harness that speaks no HTTP, keep it open, and check it out."""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from portal.cli import client
from portal.cli.me import refusal

if TYPE_CHECKING:
    from portal.cli.keeping import Session

PATIENCE_S = 5.0  # for all requests of a call together: a harness waits for its hook
PARENT = "parent"
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "tcsh", "csh", "fish", "busybox"})
_ID = re.compile(r"\s*s_[0-9a-f]{20}(\s|$)")  # the whole line that was printed is right, too
_MANY_PARENTS = 20


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "checkin", help="check in a session of a harness, keep it open while a process goes on, and check it out",
        description="Check in a session of this agent, and print its id and a receipt for the comment of its jobs. "
        "The same process again is the same session.",
    )  # fmt: skip
    parser.add_argument("--harness", metavar="NAME", help="the harness that the agent is registered for, as codex")
    parser.add_argument("--harness-version", default="", metavar="V", help="its version")
    parser.add_argument("--model", default="", help="the model that it works with")
    parser.add_argument("--label", default="", help="what it works on, in a word or two; no path")
    parser.add_argument(
        "--pid", type=_process, metavar="PID", help="the harness's process; parent, the default: what called this "
        "command, shells that run a script or -c left out",
    )  # fmt: skip
    parser.add_argument("--host", default="", help="this host's name, where the registration has another for it")
    parser.add_argument("--cluster", default="", help="the cluster, where your login name is known on several")
    parser.add_argument("--login", default="", help="your login name, where you have several")
    parser.add_argument(
        "--while", dest="during", type=_process, metavar="PID",
        help="beat until this process ends (parent: as for --pid), then check out; it is the harness's without --pid",
    )  # fmt: skip
    parser.add_argument("--detach", action="store_true", help="with --while: beat in the background and return at once")
    parser.add_argument(
        "--end", nargs="?", const="", metavar="ID", help="check out this session; without an id that of the process"
    )
    parser.add_argument("--json", action="store_true", help="print the portal's answer, with the receipt, as JSON")
    parser.set_defaults(run=run)


def _process(text: str) -> int:
    """Read a process: a number, or what called this command."""
    if text == PARENT:
        return _caller()
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= 4_194_304:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no process: give its number, or {PARENT}")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Check in or out, and print."""
    from portal.cli.keeping import Session, keep

    if fault := _fault_of(options):
        print(fault, file=sys.stderr)
        return 2
    pid = options.pid or options.during or _caller()
    try:
        client.portal_url()
        client.token()
        session = Session(_beginning(options, pid))
        if options.end is not None:
            return _end(session, options.end)
    except client.PortalUnreachable as error:
        return _away(error)
    except client.PortalRefused as refused:
        print(refusal(refused.problem), file=sys.stderr)
        return 1
    if options.detach:
        return _detached(session, options)
    if options.during is not None:
        return keep(session, options.during, lambda: _begin(session, options))
    return _begin(session, options)


def _fault_of(options: argparse.Namespace) -> str:
    """Say what makes no sense of what was given, with its remedy; empty where all does."""
    from portal.cli.keeping import is_running

    if options.end is None and not options.harness:
        return "--harness is missing. [usage]\nName the one that the agent is registered for: --harness codex."
    if options.end and not _ID.match(options.end):
        return "--end was given no id of a session. [usage]\nGive the s_… that checkin printed, or none."
    if options.detach and options.during is None:
        return "--detach needs --while. [usage]\nSay of which process: --while parent --detach."
    if options.during is not None and not is_running(options.during):
        return f"No process {options.during} runs here. [usage]\nName the process of the harness."
    return ""


def _away(error: Exception) -> int:
    print(error, file=sys.stderr)
    return 2


def _begin(session: "Session", options: argparse.Namespace) -> int:
    """Check in and print; what the portal warns of goes to stderr."""
    from portal.cli.keeping import Budget
    from telemetry.engine.plain import plain

    budget = Budget(PATIENCE_S)
    try:
        answer = session.check_in(budget)
    except client.PortalUnreachable as error:
        return _away(error)
    if answer.status >= 300:
        print(refusal(answer.said), file=sys.stderr)
        return 2 if options.during is not None and session.may_pass(answer) else 1
    for warning in answer.said.get("warnings", ()):
        print(plain(str(warning)), file=sys.stderr)
    said = {**answer.said, "receipt": _receipt(options, session, budget)}
    print(json.dumps(said, indent=2) if options.json else f"{said['id']} {said['receipt'] or ''}".rstrip())
    sys.stdout.flush()
    return 0


def _receipt(options: argparse.Namespace, session: "Session", budget: Any) -> str | None:
    """Ask for a receipt for its jobs; without one, for a reason on stderr, the session is checked in all the same."""
    from urllib.parse import urlencode

    try:
        answer = session.ask(f"/jobs/receipts?{urlencode({'cluster': options.cluster})}", budget)
    except client.PortalUnreachable as error:
        print(f"No receipt: {error}", file=sys.stderr)
        return None
    if answer.status >= 300:
        print(f"No receipt: {refusal(answer.said)}", file=sys.stderr)
        return None
    return str(answer.said["receipt"])


def _end(session: "Session", public_id: str) -> int:
    """Check out the session that is named, or that of the process; one that is not open any more is no fault."""
    from portal.cli.keeping import Budget

    budget = Budget(PATIENCE_S)
    if public_id:
        session.id = public_id.split()[0]
    elif not session.find(budget):
        print("No session of this process is open.", file=sys.stderr)
        return 0
    answer = session.check_out(budget)
    if answer.status >= 300:
        print(refusal(answer.said), file=sys.stderr)
        return 1
    return 0


def _detached(session: "Session", options: argparse.Namespace) -> int:
    """Do it in a process of its own that lets go of all that was open here, once it has checked in."""
    import os

    from portal.cli.keeping import keep

    out, into = os.pipe()
    if os.fork():
        os.close(into)
        with os.fdopen(out, "rb") as told:
            said = told.read()  # nothing, where that process was ended
        return said[0] if said else 2
    os.close(out)

    def begin() -> int:
        status = _begin(session, options)
        sys.stderr.flush()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        os.chdir("/")
        os.write(into, bytes([status]))
        os.close(into)
        return status

    try:
        os.setsid()
        keep(session, options.during, begin)
    finally:
        os._exit(0)  # what it was is told, and nothing of the process that was copied is to be run twice


def _beginning(options: argparse.Namespace, pid: int) -> dict[str, Any]:
    """Return what the portal is told of a session. A job counts where Slurm started us in it, not beside an salloc."""
    import os
    import socket

    said: dict[str, Any] = {
        "harness": options.harness or "", "harness_version": options.harness_version, "model": options.model,
        "directory": options.label, "host": options.host or socket.gethostname(), "pid": pid,
        "cluster": options.cluster, "login": options.login,
    }  # fmt: skip
    job = os.environ.get("SLURM_JOB_ID", "")
    if os.environ.get("SLURMD_NODENAME") and job.isascii() and job.isdecimal():
        said["job_id"] = int(job)
    return said


def _caller() -> int:
    """Return the process that called this command, over shells that run `-c` or a script and end before it."""
    import os

    pid = os.getppid()
    for _ in range(_MANY_PARENTS):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
            above = int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return pid
        if not _is_passing_shell([os.fsdecode(word) for word in words]) or above <= 1:
            return pid
        pid = above
    return pid


def _is_passing_shell(words: list[str]) -> bool:
    """Say whether a command line is that of a shell that runs a script or `-c`: one without either is a person's."""
    if not words or Path(words[0]).name not in _SHELLS:
        return False
    return any(not word.startswith("-") or (not word.startswith("--") and "c" in word) for word in words[1:])
