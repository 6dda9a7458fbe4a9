"""A module that has the interface of PySlurm 25.11 as far as it is asked, for tests of the process that asks it.

It is copied to a folder of its own as `pyslurm.py`, beside `dumps.json`, which holds the objects by what loads them.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

_DUMPS: dict[str, Any] = json.loads(Path(__file__).with_name("dumps.json").read_text())
__version__ = _DUMPS.get("version", "25.11.2")
if _DUMPS.get("broken"):
    raise ImportError(_DUMPS["broken"])


class PyslurmError(Exception):
    """As PySlurm's: the base of its errors."""


class Resources:
    """As PySlurm's `TrackableResources`: JSON does not know it, and `to_dict` tells what is in it."""

    def __init__(self, told: dict[str, Any]) -> None:
        self._told = told

    def to_dict(self, recursive: bool = False) -> dict[str, Any]:
        """Tell what is in it."""
        return self._told


class Thing:
    """An object whose attributes are those of a recorded dump."""

    def __init__(self, told: dict[str, Any]) -> None:
        for name, value in told.items():
            setattr(self, name, Resources(value) if name.endswith("_tres") and value else value)


def _behave() -> None:
    how = _DUMPS.get("behaves")
    if how == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "hangs":
        time.sleep(3600)
    if how == "floods":
        while True:
            sys.stdout.write("x" * 65536)
    if how == "refuses":
        raise PyslurmError("Unable to contact slurm controller (connect failure)")
    if how == "complains":
        sys.stderr.write("slurm_load_jobs: warning\n")


def _loads(name: str, kind: str) -> type:
    def load(condition: Any = None) -> Any:
        _behave()
        told = _DUMPS[name]
        if kind == "one":
            return Thing(told)
        rows = list(told.values()) if isinstance(told, dict) else told
        wanted = getattr(condition, "ids", None)
        return {number: Thing(row) for number, row in enumerate(rows) if wanted is None or row["id"] in wanted}

    return type(name, (), {"load": staticmethod(load)})


class JobFilter:
    """As PySlurm's: what it is given is what is asked for."""

    def __init__(self, **given: Any) -> None:
        assert given.keys() <= {"ids", "start_time", "end_time"} and all(value is not None for value in given.values())
        self.__dict__.update(given)


Jobs, Nodes, Partitions = (_loads(name, "many") for name in ("Jobs", "Nodes", "Partitions"))


class slurmctld:
    """As PySlurm's module."""

    Config, Statistics = (_loads(name, "one") for name in ("Config", "Statistics"))


class db:
    """As PySlurm's module."""

    JobFilter = JobFilter
    Jobs = _loads("db.Jobs", "many")
    QualitiesOfService, Associations = (_loads(f"db.{name}", "many") for name in ("QoS", "Associations"))
