"""T3: what the collector may see on this node, and whether it runs."""

from collections.abc import Iterator
from contextlib import closing

from portal.cli.doctor.findings import Finding
from portal.cli.doctor.node import Node
from telemetry.engine.collector.connector import open_connector

CONFIG = "/etc/gatehouse/collect.toml"
UNIT = "gatehouse-collect.service"
UNIT_FOLDERS = ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
KILL_FILE = "/etc/gatehouse/collect.off"


def look(node: Node) -> Iterator[Finding]:
    """Look at the kernel first, then at the collector."""
    yield _processes(node)
    yield _connector()
    yield _control_groups(node)
    yield from _collector(node)


def _processes(node: Node) -> Finding:
    """Read how /proc is mounted (proc(5)): with hidepid a user sees its own processes alone."""
    for line in node.read("/proc/mounts").splitlines():
        words = line.split(" ")
        if len(words) > 3 and words[1] == "/proc":
            hidden = next((word for word in words[3].split(",") if word.startswith("hidepid=")), "hidepid=0")
            if hidden.partition("=")[2] in ("0", "off"):
                return Finding(3, "hidepid", "ok", "Processes of others can be seen (no hidepid).")
            return Finding(
                3,
                "hidepid",
                "missing",
                f"/proc is mounted with {hidden}: users see their own processes alone.",
                "The collector's unit sees all by CAP_SYS_PTRACE; gatehouse collect --dry-run by hand does not.",
            )
    return Finding(3, "hidepid", "unknown", "It is not known how /proc is mounted.")


def _connector() -> Finding:
    try:
        with closing(open_connector()):
            return Finding(3, "process_events", "ok", "The kernel tells this process of programs that start.")
    except PermissionError:
        return Finding(
            3,
            "process_events",
            "unknown",
            "The kernel tells only a process with CAP_NET_ADMIN of programs that start.",
            "The unit lends it; run this as root to see.",
        )
    except OSError as error:
        return Finding(
            3,
            "process_events",
            "missing",
            f"The kernel has no process events here: {error.strerror}.",
            "The collector walks /proc 5 times a second instead and misses most short commands.",
        )


def _control_groups(node: Node) -> Finding:
    if node.is_there("/sys/fs/cgroup/cgroup.controllers"):
        return Finding(3, "cgroups", "ok", "Control groups are of version 2.")
    if node.read("/proc/self/cgroup"):
        return Finding(3, "cgroups", "ok", "Control groups are of version 1.")
    return Finding(
        3,
        "cgroups",
        "missing",
        "There are no control groups: jobs on this node are not told from logins.",
        "ProctrackType=proctrack/cgroup in slurm.conf.",
    )


def _collector(node: Node) -> Iterator[Finding]:
    if node.is_there(KILL_FILE):
        yield Finding(3, "kill_file", "missing", f"{KILL_FILE} is there: nothing is collected.", f"rm {KILL_FILE}")
    if not any(node.is_there(f"{folder}/{UNIT}") for folder in UNIT_FOLDERS):
        yield Finding(
            3,
            "collector",
            "missing",
            "No collector is installed on this node.",
            "docs/operators.md, “The collector on login nodes”.",
        )
        return
    if not node.is_there(CONFIG):
        yield Finding(
            3,
            "collector",
            "wrong",
            f"The collector has no settings: {CONFIG}.",
            "Copy deploy/collect.toml there and fill it in.",
        )
        return
    yield _unit(node)


def _unit(node: Node) -> Finding:
    asked = node.run("systemctl", "is-active", UNIT) if node.find("systemctl") else None
    state = asked.out.strip() if asked else ""
    if state == "active":
        return Finding(3, "collector", "ok", "The collector runs.")
    if asked is None or "systemd" in asked.trouble.lower():
        return Finding(3, "collector", "unknown", "The collector is installed; whether it runs only systemd knows.")
    return Finding(
        3,
        "collector",
        "wrong",
        "The collector is installed and does not run.",
        f"systemctl status {UNIT}; journalctl -u {UNIT}",
    )
