"""One reader a cluster, for as long as it is wanted: a lease, a pace, patience with a Slurm that does not answer."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from portal.core import leases
from portal.core.errors import DomainError
from principals.actors import Actor
from principals.models import Cluster
from telemetry.engine.slurm.errors import FormatError
from telemetry.services import rollups
from telemetry.services.reader.commands import TIMEOUT_S, Commands
from telemetry.services.reader.reader import Reader, ReaderStopped

LEASE_S: Final = 3 * TIMEOUT_S  # renewed before each call, which takes no longer than a third of it
CLOSED_AFTER_S: Final = 30.0  # a batch that nobody writes to for a minute counts as left behind
STANDBY_S: Final = 10.0
BACK_OFF_S: Final = 60.0
# Of the time at most: a controller that takes a second to answer is asked every ten.
SHARE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Pace:
    """How often, in seconds, the reader looks at the queue and sweeps accounting."""

    look_s: float = 5.0
    sweep_s: float = 300.0


def serve(
    *, actor: Actor, cluster: Cluster, commands: Commands, pace: Pace, stop: threading.Event,
    say: Callable[[str], None],
) -> None:  # fmt: skip
    """Read a cluster until `stop` is set, or stand by while another process reads it. Errors: `NotAllowed`."""
    name, holder, said = f"slurm-reader:{cluster.name}", leases.holder_name(), False
    while not stop.is_set():
        if leases.take(name, holder, seconds=LEASE_S):
            said = False
            try:
                reader = Reader(
                    actor=actor, cluster=cluster, commands=commands,
                    goes_on=lambda: not stop.is_set() and leases.take(name, holder, seconds=LEASE_S),
                )  # fmt: skip
                _read(reader, pace, stop, say)
            finally:
                leases.release(name, holder)
        elif not said:
            say(f"Another reader reads {cluster.name}; standing by.")
            said = True
        stop.wait(STANDBY_S)


def _read(reader: Reader, pace: Pace, stop: threading.Event, say: Callable[[str], None]) -> None:
    """Look and sweep while the lease is held."""
    swept, failures = float("-inf"), 0
    say(f"Reading {reader.cluster.name}.")
    try:
        while reader.goes_on():
            began = time.monotonic()
            try:
                reader.look()
                if began - swept >= pace.sweep_s:
                    reader.sweep()
                    swept = began
                    reader.count()
                failures = 0
            except (DomainError, FormatError) as error:
                failures += 1
                problem = f"{error.detail} {error.remedy}".strip()
                reader.fail(problem)
                say(f"{problem} Trying again.")
            rollups.refresh(cluster=reader.cluster)
            pause_s = _pause_s(pace, took_s=time.monotonic() - began, failures=failures)
            if pause_s > CLOSED_AFTER_S:
                reader.close()
            stop.wait(pause_s)
    except ReaderStopped:
        pass
    reader.close()


def _pause_s(pace: Pace, *, took_s: float, failures: int) -> float:
    """Return how long to leave Slurm in peace: longer where it was slow, much longer where it did not answer."""
    patience_s = min(BACK_OFF_S, pace.look_s * 2**failures) if failures else 0
    return max(pace.look_s, took_s * (1 / SHARE - 1), patience_s)
