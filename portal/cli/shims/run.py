"""One call of `gatehouse squeue` or `gatehouse sacct`: printed, shared, or left to Slurm's own command."""

import base64
import binascii
import json
import os
import pwd
import random
import sys
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from portal.cli import client
from portal.cli.shims.real import run_real
from telemetry.engine.slurm.printing import (
    FACTS,
    KEYS,
    Accounts,
    PassedOn,
    Printed,
    Queue,
    print_accounts,
    print_queue,
    read_sacct_arguments,
    read_squeue_arguments,
)

TIMEOUT_S: Final = 5  # whoever waits longer asks Slurm
SHARED_TIMEOUT_S: Final = 20
TOO_MANY: Final = 429
LONGEST_WAIT_S: Final = 600.0
OLDEST_S: Final = 30.0
# So long may the portal take to see a job that was just submitted: one look of its reader answers everybody who waits.
NEW_S: Final = 8.0
_LEAST_S: Final = 1.0  # between two questions to the portal
_UNKNOWN: Final = frozenset({"queue_unknown", "queue_not_kept"})
_ZONES: Final = "zoneinfo/"
Attempt = Callable[[Sequence[str], str], Printed]
Told = tuple[dict[str, Any], float]


def run(program: str, arguments: Sequence[str]) -> int:
    """Print what `program` would print and return its exit code, or become that program."""
    try:
        printed = _within_budget(program, arguments)
    except (client.PortalUnreachable, client.PortalRefused) as error:
        _say(f"{_why(error)} Asking Slurm.")
        run_real(program, arguments)
    sys.stdout.flush()
    sys.stdout.buffer.write(printed.out)
    sys.stdout.buffer.flush()
    sys.stderr.write(printed.complaint)
    return printed.status


def _within_budget(program: str, arguments: Sequence[str]) -> Printed:
    """Answer, later where the token's budget of questions is used up: as Slurm's own clients wait under `rl_enable`.

    Slurm is not asked instead: that is what the budget is there to spare. A loop goes on, slower, and is told why.
    """
    waited_s = 0.0
    while True:
        try:
            return _printed_or_shared(program, arguments)
        except client.PortalRefused as refused:
            if refused.status != TOO_MANY or waited_s >= LONGEST_WAIT_S:
                raise
            wait_s = min(max(_number(refused.problem.get("retry_after_s", 1)), 1.0), 60.0) * random.uniform(1, 1.2)  # noqa: S311 - no secret
            if not waited_s:
                _say(f"{_why(refused)} {refused.problem.get('remedy', '')}".rstrip())
            time.sleep(wait_s)
            waited_s += wait_s


def _printed_or_shared(program: str, arguments: Sequence[str]) -> Printed:
    login = pwd.getpwuid(os.geteuid()).pw_name
    try:
        return _ATTEMPTS[program](arguments, login)
    except PassedOn as passed:
        return _shared(program, arguments, login, passed.reason)


def _print_squeue(arguments: Sequence[str], login: str) -> Printed:
    asked = read_squeue_arguments(arguments, os.environ)

    def ask() -> Told:
        return _ask("squeue", {each.job for each in asked.jobs}, KEYS)

    def answer(told: dict[str, Any]) -> Printed:
        queue = Queue(rows=told["rows"], logins=told["logins"], ended=told["ended"], open=told["open"])
        return print_queue(asked, queue, login=login, now_s=int(time.time()))

    return _answer_soon(ask, answer)


def _print_sacct(arguments: Sequence[str], login: str) -> Printed:
    asked = read_sacct_arguments(arguments, os.environ, now_s=int(time.time()))

    def ask() -> Told:
        span = "" if asked.jobs else f"&since={asked.since_s}"
        return _ask("sacct", {each.job for each in asked.jobs}, FACTS, f"&login={quote(login)}{span}")

    def answer(told: dict[str, Any]) -> Printed:
        accounts = Accounts(
            rows=told["rows"], login=told["login"], known=told["known"], behind=told["behind"], since_s=told["since"]
        )
        return print_accounts(asked, accounts, login=login, now_s=int(time.time()))

    return _answer_soon(ask, answer)


def _answer_soon(ask: Callable[[], Told], answer: Callable[[dict[str, Any]], Printed]) -> Printed:
    """Answer from what the portal tells; where it does not know a job yet, from what it tells after its next look."""
    began = time.monotonic()
    patience_s = _seconds("GATEHOUSE_NEW_S", NEW_S)
    while True:
        told, age_s = ask()
        try:
            printed = answer(told)
        except PassedOn as passed:
            waited_s = time.monotonic() - began
            if passed.reason != "unknown_job" or age_s < waited_s or waited_s >= patience_s:
                raise
            # The queue was read before we were asked: a loop's first question is answered by the next look at it.
            due_s = max(_LEAST_S, _number(told.get("retry_after_s")) - age_s)
            time.sleep(min(due_s, patience_s - waited_s))
        else:
            _say(f"as of {age_s:.0f} s ago.")
            return printed


def _ask(program: str, jobs: Collection[int], fields: Sequence[str], more: str = "") -> Told:
    """Ask the portal for one's own jobs; return also how old what it tells is."""
    numbers = ",".join(map(str, sorted(jobs)))
    try:
        told = client.get(f"/slurm/{program}?cluster={quote(_cluster())}&jobs={numbers}{more}", timeout_s=TIMEOUT_S)
    except client.PortalRefused as refused:
        if refused.problem.get("code") in _UNKNOWN:
            raise PassedOn(refused.problem["code"]) from None
        raise
    age_s = _number(told.get("age_s"))
    if age_s > _seconds("GATEHOUSE_MAX_AGE_S", OLDEST_S) or told.get("fields") != list(fields):
        raise PassedOn("old")
    return told, age_s


_ATTEMPTS: Final[dict[str, Attempt]] = {"squeue": _print_squeue, "sacct": _print_sacct}


def _shared(program: str, arguments: Sequence[str], login: str, reason: str) -> Printed:
    """Ask the portal to run the command, once for all who ask the same. Errors: as `client.get`."""
    asked = {
        "program": program, "arguments": list(arguments), "login": login, "cluster": _cluster(), "reason": reason,
        "zone": _zone(),
    }  # fmt: skip
    try:
        body = json.dumps(asked).encode()
        _ = [word.encode() for word in arguments]
    except UnicodeEncodeError:
        raise client.PortalUnreachable("What is asked for is no text.") from None
    answer = client.post(
        client.portal_url(), "/slurm/shared-calls", token=client.token(), body=body, headers={},
        timeout_s=SHARED_TIMEOUT_S,
    )  # fmt: skip
    if answer.status != 200:
        raise client.PortalRefused(answer.said, answer.status)
    try:
        out = base64.b64decode(answer.said["out"], validate=True)
        printed = Printed(out, str(answer.said["complaint"]), int(answer.said["status"]))
    except (KeyError, TypeError, ValueError, binascii.Error):
        raise client.PortalUnreachable("What answers is no Gatehouse portal.") from None
    _say(f"as of {_number(answer.said.get('age_s')):.0f} s ago, by a call that others share.")
    return printed


def _cluster() -> str:
    return os.environ.get("GATEHOUSE_CLUSTER", "")


def _seconds(name: str, usual: float) -> float:
    try:
        return float(os.environ.get(name, usual))
    except ValueError:
        return usual


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else float("inf")


def _zone() -> str:
    """Return the name of this node's time zone, "" where it has none that others know."""
    if zone := os.environ.get("TZ", "").removeprefix(":"):
        return zone
    try:
        path = str(Path("/etc/localtime").resolve(strict=True))
    except OSError:
        return "UTC"
    return path.partition(_ZONES)[2]


def _why(error: Exception) -> str:
    if isinstance(error, client.PortalRefused):
        words = str(error.problem.get("detail") or error.problem.get("title") or "The portal refused")
        return words if words.endswith((".", "!", "?")) else f"{words}."
    return str(error)


def _say(text: str) -> None:
    """Say something beside the answer; `GATEHOUSE_QUIET` in the environment keeps it quiet."""
    if not os.environ.get("GATEHOUSE_QUIET"):
        print(f"gatehouse: {text}", file=sys.stderr)
