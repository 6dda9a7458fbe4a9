"""Which Slurm it is that answers: the name of its cluster and its release.

Source: scontrol(1), `show config`, whose `--json` prints text up to 25.11.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from telemetry.engine.slurm.documents import at, plain_text
from telemetry.engine.slurm.errors import FieldError, FormatError

COMMAND: Final = ("scontrol", "show", "config")
_NAME: Final = re.compile(r"^ClusterName\s*=\s*(\S+)\s*$", re.MULTILINE)
_RELEASE: Final = re.compile(r"^SLURM_VERSION\s*=\s*(\S+)\s*$", re.MULTILINE)


class Identity(NamedTuple):
    """A cluster's name as its Slurm writes it, and the release of its controller (`25.11.7`)."""

    cluster: str
    release: str


def read_identity(text: str) -> Identity:
    """Read what `scontrol show config` printed. Errors: `FormatError` `not_a_configuration`."""
    name, release = _NAME.search(text), _RELEASE.search(text)
    if name is None or release is None:
        raise FormatError("not_a_configuration", "scontrol show config does not say ClusterName and SLURM_VERSION.")
    return Identity(name[1], release[1])


def read_identity_dump(dump: Mapping[str, Any]) -> Identity:
    """Read `cluster_name` and `version` of a `pyslurm.slurmctld.Config`. Errors: as `read_identity`."""
    try:
        name, release = plain_text(at(dump, "cluster_name")), plain_text(at(dump, "version"))
    except FieldError as error:
        raise FormatError("not_a_configuration", f"{error.detail}.") from error
    if not name or not release:
        raise FormatError("not_a_configuration", "PySlurm does not say the cluster's name and release.")
    return Identity(name, release)


def series_of(release: str) -> str:
    """Return the series of a release, within which Slurm's library and its daemons understand each other: `25.11`."""
    return ".".join(release.split(".")[:2])
