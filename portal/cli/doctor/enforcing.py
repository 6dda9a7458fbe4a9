"""T4: what the site's Slurm and kernel can hold an agent to."""

from collections.abc import Iterator

from portal.cli.doctor.findings import Finding
from portal.cli.doctor.node import Node
from telemetry.engine.slurm.configuration import Configuration

LABEL_OFF = "/etc/slurm/gatehouse_label.off"
NAMESPACES = "/proc/sys/user/max_user_namespaces"
_ENFORCED = ("associations", "limits", "qos")


def look(node: Node) -> Iterator[Finding]:
    """Look at the controller's limits and labels, then at what a sandbox needs of the kernel."""
    config = node.configuration
    if config is None:
        yield Finding(4, "limits", "unknown", f"What Slurm enforces is not known: {node.asked.trouble}", node.asked.fix)
    else:
        yield _limits(config)
        yield _labels(node, config)
    yield _namespaces(node)


def _limits(config: Configuration) -> Finding:
    enforced = config.words("AccountingStorageEnforce")
    lacking = [name for name in _ENFORCED if name not in enforced and "all" not in enforced]
    if lacking:
        return Finding(
            4,
            "limits",
            "missing",
            f"Slurm does not enforce {', '.join(lacking)}: budgets of a QoS bind nobody.",
            "AccountingStorageEnforce=associations,limits,qos,safe in slurm.conf.",
        )
    return Finding(4, "limits", "ok", "Slurm enforces associations, limits and QoS.")


def _labels(node: Node, config: Configuration) -> Finding:
    if node.is_there(LABEL_OFF):
        return Finding(
            4,
            "labels",
            "missing",
            f"{LABEL_OFF} is there: jobs are not labelled.",
            f"rm {LABEL_OFF}, on the controller.",
        )
    if "lua" in config.words("JobSubmitPlugins"):
        return Finding(
            4,
            "labels",
            "ok",
            "The controller asks a Lua script of each submission; gatehouse_label.lua can be called in it.",
        )
    return Finding(
        4,
        "labels",
        "missing",
        "The controller asks no Lua script of submissions: jobs are not labelled.",
        "JobSubmitPlugins=lua in slurm.conf; docs/operators.md, “Labels from the controller”.",
    )


def _namespaces(node: Node) -> Finding:
    text = node.read(NAMESPACES).strip()
    if not text.isdecimal():
        return Finding(4, "namespaces", "unknown", "It is not known whether users may make namespaces.")
    if int(text) == 0:
        return Finding(
            4,
            "namespaces",
            "missing",
            "Users may make no namespaces: harnesses cannot shut their commands in here.",
            "user.max_user_namespaces (sysctl), where the site wants harnesses' own sandboxes.",
        )
    return Finding(4, "namespaces", "ok", "Users may make namespaces: harnesses' own sandboxes can work here.")
