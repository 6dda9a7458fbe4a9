"""The node that is looked at, and never changed: its files below a root, its commands, this process's variables."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from portal.cli.slurm import Ran, run
from telemetry.engine.slurm.configuration import COMMAND, Configuration, read_configuration

COMMAND_TIMEOUT_S = 20


@dataclass(frozen=True)
class Node:
    """A node as its files, commands and this process's variables show it."""

    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def path(self, name: str) -> Path:
        """Return where a file of the node is."""
        return self.root / name.lstrip("/")

    def read(self, name: str) -> str:
        """Return the text of a file; "" where there is none, or it is not for us."""
        try:
            return self.path(name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def is_there(self, name: str) -> bool:
        """Say whether a file or folder is there, as far as we may look."""
        try:
            self.path(name).lstat()
        except OSError:
            return False
        return True

    def find(self, program: str) -> str:
        """Return the path of a program, or ""."""
        return shutil.which(program, path=self.environ.get("PATH")) or ""

    def run(self, *command: str) -> Ran:
        """Run a command that reads, in plain words and UTC, for twenty seconds at most."""
        return run(command, self.environ, timeout_s=COMMAND_TIMEOUT_S)

    @cached_property
    def asked(self) -> Ran:
        """What the controller says of its configuration: asked once, whatever looks at it."""
        return self.run(*COMMAND)

    @cached_property
    def configuration(self) -> Configuration | None:
        """The controller's configuration; None where it does not tell."""
        return read_configuration(self.asked.out) if self.asked.out else None
