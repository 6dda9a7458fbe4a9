"""T0: what `gatehouse assess` needs of an ordinary user's node."""

from collections.abc import Iterator
from importlib.util import find_spec

from portal.cli.doctor.findings import Finding
from portal.cli.doctor.node import Node


def look(node: Node) -> Iterator[Finding]:
    """Ask accounting for the last hour, and say how much of it this user may see."""
    version = node.run("sacct", "--version")
    if version.trouble:
        yield Finding(0, "sacct", "wrong", version.trouble, version.fix)
    else:
        yield _accounting(node, version.out.strip())
        yield _sight(node)
    if find_spec("polars") is None:
        yield Finding(
            0,
            "server_extra",
            "missing",
            "gatehouse assess is not installed here.",
            "pip install 'gatehouse[server]', on this node or on any that a dump of sacct can be copied to.",
        )
    else:
        yield Finding(0, "server_extra", "ok", "gatehouse assess can run here.")


def _accounting(node: Node, version: str) -> Finding:
    ran = node.run("sacct", "-X", "-n", "-P", "-S", "now-1hours", "-E", "now", "-o", "JobIDRaw")
    if ran.trouble:
        return Finding(0, "sacct", "wrong", ran.trouble, ran.fix)
    jobs = len(ran.out.split())
    return Finding(0, "sacct", "ok", f"sacct ({version}) answers: {jobs} of your jobs in the last hour.")


def _sight(node: Node) -> Finding:
    config = node.configuration
    if config is None:
        return Finding(
            0, "private_data", "unknown", f"What you may see is not known: {node.asked.trouble}", node.asked.fix
        )
    hidden = {"jobs", "all"} & set(config.words("PrivateData"))
    if hidden:
        return Finding(
            0,
            "private_data",
            "missing",
            "PrivateData hides other people's jobs: sacct tells you of your own.",
            "Ask for a dump by an operator (sacctmgr modify user NAME set AdminLevel=Operator), or assess your own.",
        )
    return Finding(0, "private_data", "ok", "sacct may tell you of everybody's jobs (PrivateData does not hide them).")
