"""Whether the `squeue` and `sacct` that this process finds first are those that spare the controller."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from portal.cli.doctor.findings import Finding
from portal.cli.doctor.node import Node
from portal.cli.shims.real import find_real, is_ours

PROGRAMS: Final = ("squeue", "sacct")
_FIX: Final = (
    "In what starts agents, and for nobody else: export PATH=/opt/gatehouse/share/agent-path:$PATH (a copy of "
    "deploy/agent-path)."
)


def look(node: Node) -> Iterator[Finding]:
    """Say who answers to the name of each command, and whether Slurm's own stands behind ours."""
    for program in PROGRAMS:
        yield _program(node, program)


def _program(node: Node, program: str) -> Finding:
    code, found, real = f"path_{program}", _all(node, program), find_real(program, node.environ)
    ours = [path for path in found if is_ours(path, program)]
    if not ours:
        return Finding(2, code, "missing", f"{program} in PATH is not the portal's: each asks the controller.", _FIX)
    if found[0] != ours[0]:
        said = f"{ours[0]} spares the controller, and {found[0]} stands before it in PATH."
        return Finding(2, code, "missing", said, _FIX)
    if real is None:
        said = f"{ours[0]} is first in PATH, and no {program} of Slurm's stands behind it for what it cannot answer."
        return Finding(2, code, "wrong", said, f"Add the folder of Slurm's own {program} to PATH.")
    return Finding(2, code, "ok", f"{program} is answered by the portal first ({ours[0]}), then by {real}.")


def _all(node: Node, program: str) -> list[Path]:
    folders = node.environ.get("PATH", os.defpath).split(os.pathsep)
    paths = [Path(folder or ".", program) for folder in folders]
    return [path for path in paths if os.access(path, os.X_OK) and not path.is_dir()]
