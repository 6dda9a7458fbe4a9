"""T2: can this process hear of its jobs, and does the site spare its controller the questions."""

import os
import socket
from collections.abc import Iterator
from contextlib import suppress

from portal.cli import client
from portal.cli.doctor import delivery, paths
from portal.cli.doctor.findings import Finding
from portal.cli.doctor.node import Node
from telemetry.engine.slurm.configuration import Configuration

MUNGE_SOCKET = "/run/munge/munge.socket.2"
CONNECT_TIMEOUT_S = 3
RATE_LIMIT_SINCE = (23, 2)
# Variables by which harnesses tell that they shut a command in (Codex: codex-rs/core, Claude Code: sandbox-runtime).
SHUT_IN = ("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "SANDBOX_RUNTIME")
HOOKS_OFF = "/etc/slurm/gatehouse-hooks.off"
_HOOKS = (
    ("JobCompType", "jobcomp/script", "every end, also of jobs that never started"),
    ("EpilogSlurmctld", "gatehouse", "the ends of jobs that started"),
    ("MailProg", "gatehouse", "starts, of jobs that ask for mail"),
)


def look(node: Node) -> Iterator[Finding]:
    """Look at events, then at the way to Slurm, then at what its controller is told to do."""
    yield _events()
    yield from paths.look(node)
    yield from _ways_to_slurm(node)
    config = node.configuration
    if config is None:
        yield Finding(2, "controller", "wrong", node.asked.trouble, node.asked.fix)
        return
    yield Finding(2, "controller", "ok", f"The controller answers (Slurm {config.get('SLURM_VERSION')}).")
    yield _rate_limit(config)
    has_hooks = False
    for finding in _hooks(node, config):
        has_hooks |= finding.state == "ok"
        yield finding
    yield from delivery.look(node, config.get("ClusterName"), has_hooks=has_hooks)


def _events() -> Finding:
    try:
        answer = client.get("/events")
    except client.PortalUnreachable as error:
        return Finding(2, "events", "wrong", f"No events: {str(error).splitlines()[0]}", "Mend T1 first.")
    except client.PortalRefused as refused:
        said = refused.problem
        return Finding(
            2, "events", "wrong", f"No events: {said.get('detail') or said.get('title')}", said.get("remedy", "")
        )
    return Finding(2, "events", "ok", f"Events can be heard; the stream stands at {answer.get('next')}.")


def _ways_to_slurm(node: Node) -> Iterator[Finding]:
    """Try the two things that a sandbox takes from Slurm's commands: munged's socket and the controller's port."""
    config = node.configuration
    munge = (config.munge_socket if config else "") or MUNGE_SOCKET
    shut = [name for name in SHUT_IN if node.environ.get(name)]
    within = f" A harness shut this command in ({', '.join(shut)})." if shut else ""
    trouble = _try_unix(str(node.path(munge)))
    if trouble:
        yield Finding(
            2, "munge", "wrong", f"munged cannot be asked at {munge}: {trouble}.{within}", _way_out(munge, shut)
        )
    else:
        yield Finding(2, "munge", "ok", f"munged can be asked at {munge}.")
    host, port = config.controller if config else ("", 0)
    if not host:
        return
    trouble = _try_tcp(host, port)
    if trouble:
        yield Finding(
            2,
            "controller_port",
            "wrong",
            f"{host}:{port} cannot be reached: {trouble}.{within}",
            _way_out(f"{host}:{port}", shut),
        )
    else:
        yield Finding(2, "controller_port", "ok", f"The controller's port {host}:{port} can be reached.")


def _way_out(what: str, shut: list[str]) -> str:
    if shut:
        return f"Allow {what} in the harness's sandbox settings, for Slurm's commands alone."
    return "See that it runs, and that neither a firewall nor a sandbox of a harness stands between."


def _try_unix(path: str) -> str:
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as attempt:
        attempt.settimeout(CONNECT_TIMEOUT_S)
        error = attempt.connect_ex(path)
        return os.strerror(error) if error else ""
    return "sockets are not allowed here"


def _try_tcp(host: str, port: int) -> str:
    try:
        with socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_S):
            return ""
    except OSError as error:
        return error.strerror or str(error) or type(error).__name__


def _rate_limit(config: Configuration) -> Finding:
    if "rl_enable" in config.words("SlurmctldParameters"):
        return Finding(2, "rate_limit", "ok", "The controller limits how fast one user may ask it (rl_enable).")
    if config.version < RATE_LIMIT_SINCE:
        return Finding(
            2,
            "rate_limit",
            "missing",
            "The controller has no limit on how fast one user may ask it.",
            "There is one from Slurm 23.02 on: SlurmctldParameters=rl_enable.",
        )
    return Finding(
        2,
        "rate_limit",
        "missing",
        "The controller does not limit how fast one user may ask it.",
        "SlurmctldParameters=rl_enable in slurm.conf, then scontrol reconfigure.",
    )


def _hooks(node: Node, config: Configuration) -> Iterator[Finding]:
    if node.is_there(HOOKS_OFF):
        yield Finding(
            2,
            "hooks_off",
            "missing",
            f"{HOOKS_OFF} is there: no hook tells anything.",
            f"rm {HOOKS_OFF}, on the controller.",
        )
    told = []
    for name, sign, what in _HOOKS:
        value = ", ".join(config.each(name))
        place = config.get("JobCompLoc") if name == "JobCompType" else value
        if sign in value and "gatehouse" in place.lower():
            told.append(name)
            yield Finding(2, f"hook_{name.lower()}", "ok", f"{name} tells the portal of {what}.")
        elif value and value != "jobcomp/none" and not (name == "MailProg" and value.endswith("/mail")):
            yield Finding(
                2,
                f"hook_{name.lower()}",
                "missing",
                f"{name} is {value}: not ours.",
                "It holds one thing alone; the reader tells of changes within its period.",
            )
    if not told:
        yield Finding(
            2,
            "hooks",
            "missing",
            "No hook of the controller tells the portal: changes are told within the reader's period.",
            "docs/operators.md, “Hooks of the controller”.",
        )
