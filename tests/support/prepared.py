"""Data folders that are made once a run, by whichever worker asks first, and copied: nobody writes to the first."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path


def copy_of(name: str, make: Callable[[Path], object], to: Path) -> Path:
    """Copy the prepared folder of that name to `to`, once `make` has made it; return `to`."""
    return Path(shutil.copytree(_prepared(name, make), to))


def _prepared(name: str, make: Callable[[Path], object]) -> Path:
    # Workers inherit this folder from the process that started them (tests.support.environment).
    root = Path(os.environ["GATEHOUSE_TEST_RUN"]) / "prepared"
    root.mkdir(exist_ok=True)
    ready, aside = root / name, root / f"{name}.making"
    with (root / f"{name}.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the others wait here until it is there
        if not ready.exists():
            shutil.rmtree(aside, ignore_errors=True)  # of somebody who was stopped in the middle
            make(aside)
            aside.rename(ready)
    return ready
