"""What each tier left on a node, found by its names, and how it is taken away. Nothing is removed here."""

import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from portal.cli.doctor.node import Node

ACCOUNT: Final = "gatehouse"


class Leftover(NamedTuple):
    """A thing that is there, the tier that brought it, and the command (or the change) that takes it away."""

    tier: int
    what: str
    remove: str


# Patterns (glob) of what docs/operators.md has one install, by tier. Units are stopped before their files go.
UNITS: Final = (
    (2, "gatehouse-eventd.service"),
    (3, "gatehouse-collect.service"),
    (3, "gatehouse-tetra.service"),
)
FILES: Final = (
    (1, "~/.config/gatehouse"),
    (2, "/etc/profile.d/gatehouse*"),
    (2, "/opt/gatehouse"),
    (2, "/etc/gatehouse/eventd*"),
    (2, "/etc/systemd/system/gatehouse-eventd.service.d"),
    (2, "/etc/slurm/gatehouse-hook*"),
    (2, "/etc/slurm/gatehouse-jobcomp*"),
    (2, "/etc/slurm/gatehouse-epilog-slurmctld*"),
    (2, "/etc/slurm/gatehouse-mail*"),
    (2, "/var/spool/gatehouse*"),
    (3, "/etc/gatehouse/collect*"),
    (3, "/etc/gatehouse/harnesses.toml"),
    (3, "/etc/systemd/system/gatehouse-collect.service.d"),
    (3, "/etc/tmpfiles.d/gatehouse*"),
    (3, "/run/gatehouse"),
    (3, "/var/lib/gatehouse-collect"),
    (3, "/usr/local/libexec/gatehouse*"),
    (3, "/etc/audit/rules.d/*gatehouse*"),
    (3, "/etc/audit/plugins.d/*gatehouse*"),
    (3, "/etc/falco/rules.d/*gatehouse*"),
    (3, "/etc/falco/config.d/*gatehouse*"),
    (3, "/etc/slurm/prolog.d/*gatehouse*"),
    (3, "/etc/slurm/epilog.d/*gatehouse*"),
    (3, "/etc/slurm/gatehouse-collect-job"),
    (4, "/etc/slurm/gatehouse_label*"),
)
UNIT_FOLDER: Final = "/etc/systemd/system"
JOB_SUBMIT: Final = "/etc/slurm/job_submit.lua"
SETTINGS_TIERS: Final = {"jobcomploc": 2, "epilogslurmctld": 2, "prologslurmctld": 2, "mailprog": 2}
_RECONFIGURE: Final = "take it out of slurm.conf; scontrol reconfigure"
_RESTART: Final = {"jobcomploc": "take it and JobCompType=jobcomp/script out of slurm.conf; restart slurmctld"}
_OF_NODES: Final = frozenset({"prolog", "epilog", "taskprolog", "taskepilog"})


def find(node: Node) -> list[Leftover]:
    """Return what is left on a node, in the order in which it goes.

    What a later tier brought goes first, for it may run what an earlier one did; Slurm's settings before the files that
    they name.
    """
    found = [*_settings(node), *_units(node), *_files(node), *_account()]
    return sorted(found, key=lambda each: each.tier, reverse=True)


def _settings(node: Node) -> Iterator[Leftover]:
    config = node.configuration
    for name, value in (config.naming("gatehouse") if config else {}).items():
        key = name.partition("[")[0]
        tier = SETTINGS_TIERS.get(key, 3 if key in _OF_NODES else None)
        if tier is not None:
            yield Leftover(tier, f"slurm.conf: {name} = {value}", _RESTART.get(key, _RECONFIGURE))
    if "gatehouse" in node.read(JOB_SUBMIT):
        yield Leftover(4, f"{JOB_SUBMIT} calls gatehouse_label.lua", f"take those lines out of {JOB_SUBMIT}")


def _units(node: Node) -> Iterator[Leftover]:
    for tier, unit in UNITS:
        path = f"{UNIT_FOLDER}/{unit}"
        if node.is_there(path):
            yield Leftover(tier, path, f"systemctl disable --now {unit} && rm {path} && systemctl daemon-reload")


def _files(node: Node) -> Iterator[Leftover]:
    for tier, pattern in FILES:
        wanted = (
            pattern.replace("~", node.environ.get("HOME", "/nonexistent"), 1) if pattern.startswith("~") else pattern
        )
        for path in sorted(node.root.glob(wanted.lstrip("/"))):
            name = f"/{path.relative_to(node.root)}"
            yield Leftover(tier, name, f"rm {'-r ' if _is_folder(path) else ''}{name}")


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _account() -> Iterator[Leftover]:
    try:
        pwd.getpwnam(ACCOUNT)
    except KeyError:
        return
    yield Leftover(
        3, f"the account {ACCOUNT}", f"userdel {ACCOUNT}" if os.geteuid() == 0 else f"userdel {ACCOUNT}, as root"
    )
