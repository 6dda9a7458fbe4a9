"""One reader a cluster, for as long as it is wanted: a lease, a pace, patience with a Slurm that does not answer."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from portal.core import leases
from portal.core.errors import DomainError, NotFound
from principals.actors import Actor
from principals.models import Cluster
from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.source import SlurmSource
from telemetry.models import InventoryReading
from telemetry.services import ingest, rollups
from telemetry.services.reader.asking import TIMEOUT_S, describe, describe_with_remedy
from telemetry.services.reader.naming import WrongCluster
from telemetry.services.reader.reader import Reader, ReaderStopped
from telemetry.services.sources import reader_lease

LEASE_S: Final = 3 * TIMEOUT_S  # renewed before each call, which takes no longer than a third of it
CLOSED_AFTER_S: Final = 30.0  # a batch that nobody writes to for a minute counts as left behind
STANDBY_S: Final = 10.0
BACK_OFF_S: Final = 60.0
# Of the time at most: a controller that takes a second to answer is asked every ten.
SHARE: Final = 0.1
# What a sweep or an inventory took is made good in several pauses, by so much in each: nobody waits long for the queue.
LONGEST_DEBT_S: Final = 10.0
# How often it is looked whether a hook told of a job: a query of our own, and Slurm is asked only where one did.
HOOKS_EVERY_S: Final = 0.4
HOOKS_SHARE: Final = 0.25  # of the time at most, as above
HASTY_TRIES: Final = 5  # so often between two looks; accounting may hear of an end a little later than we do
MOST_PATIENT: Final = 8  # times as long between two tries of what is in vain
Kind = InventoryReading.Kind


@dataclass(frozen=True, slots=True)
class Pace:
    """How often, in seconds, the reader looks at the queue, sweeps accounting, and takes each kind of inventory."""

    look_s: float = 5.0
    sweep_s: float = 300.0
    nodes_s: float = 60.0
    rest_s: float = 600.0


class Round:
    """When which kind of inventory is due: one at a time, less often where it was in vain."""

    def __init__(self, pace: Pace) -> None:
        self._every_s = {kind: pace.nodes_s if kind == Kind.NODES else pace.rest_s for kind in Kind}
        self._due_s = dict.fromkeys(Kind, float("-inf"))
        self._failures = dict.fromkeys(Kind, 0)

    def next_due(self, now_s: float) -> InventoryReading.Kind | None:
        """Return the kind that is due longest, on a monotonic clock; None where none is."""
        kind = min(self._due_s, key=lambda kind: self._due_s[kind])
        return kind if self._due_s[kind] <= now_s else None

    def settle(self, kind: InventoryReading.Kind, now_s: float, *, worked: bool) -> None:
        """Say when a kind is due again."""
        self._failures[kind] = 0 if worked else self._failures[kind] + 1
        self._due_s[kind] = now_s + self._every_s[kind] * min(MOST_PATIENT, 2 ** self._failures[kind])


@contextmanager
def hold_reader(
    *, actor: Actor, cluster: Cluster, source: SlurmSource, slurm_name: str = "",
    is_wanted: Callable[[], bool] = lambda: True,
) -> Iterator[Reader | None]:  # fmt: skip
    """Give the one reader of a cluster, under its lease; None where another process has it.

    Errors: `NotAllowed`, `NotFound` where the cluster was withdrawn while another reader had it. The lease is renewed
    before each call to Slurm, which is not made once it is lost or the reader no longer wanted.
    """
    name = reader_lease(cluster)
    with leases.held(name, seconds=LEASE_S) as holder:

        def goes_on() -> bool:
            return is_wanted() and leases.take(name, holder, seconds=LEASE_S)

        if holder:
            _require_kept(cluster)
            yield Reader(actor=actor, cluster=cluster, source=source, slurm_name=slurm_name, goes_on=goes_on)
        else:
            yield None


def _require_kept(cluster: Cluster) -> None:
    """Refuse a cluster that is gone: nobody withdraws one whose reader's lease is held, so that this holds."""
    if not Cluster.objects.filter(pk=cluster.pk).exists():
        raise NotFound(
            f"The cluster {cluster.name} is gone: nothing of it was stored.", code="cluster_withdrawn",
            remedy="See what the other reader said, and start this one again.",
        )  # fmt: skip


def serve(
    *, actor: Actor, cluster: Cluster, source: SlurmSource, pace: Pace, stop: threading.Event,
    say: Callable[[str], None], slurm_name: str = "",
) -> None:  # fmt: skip
    """Read a cluster until `stop` is set, or stand by while another process reads it.

    Errors: `NotAllowed`, `NotFound`, `WrongCluster`.
    """
    said = False
    while not stop.is_set():
        with hold_reader(
            actor=actor, cluster=cluster, source=source, slurm_name=slurm_name, is_wanted=lambda: not stop.is_set()
        ) as reader:
            if reader is not None:
                _read(reader, pace, stop, say)
            elif not said:
                say(f"Another reader reads {cluster.name}; standing by.")
            said = reader is None
        stop.wait(STANDBY_S)


def _read(reader: Reader, pace: Pace, stop: threading.Event, say: Callable[[str], None]) -> None:
    """Look and sweep while the lease is held."""
    swept, failures, round_, debt_s = float("-inf"), 0, Round(pace), 0.0
    say(f"Reading {reader.cluster.name}.")
    try:
        while reader.goes_on():
            began, asked_s, look_s = time.monotonic(), reader.asked_s, 0.0
            try:
                if not reader.is_met:
                    reader.meet()
                before_s = reader.asked_s
                reader.look()
                reader.answer_hooks()
                ingest.tell_owed(reader.cluster)
                look_s = reader.asked_s - before_s
                if began - swept >= pace.sweep_s:
                    reader.sweep()
                    swept = began
                    reader.count()
                failures = 0
                _take_inventory(reader, round_, say)
            except WrongCluster as error:
                reader.fail(describe_with_remedy(error))
                raise
            except (DomainError, FormatError) as error:
                failures += 1
                problem = describe_with_remedy(error)
                reader.fail(problem)
                say(f"{problem} Trying again.")
            rollups.refresh(cluster=reader.cluster)
            # What we ourselves take to write and add up is no burden of Slurm's.
            debt_s += (reader.asked_s - asked_s - look_s) * (1 / SHARE - 1)
            pays_s = debt_s if failures else min(debt_s, LONGEST_DEBT_S)
            debt_s -= pays_s
            pause_s = _pause_s(pace, took_s=look_s, owed_s=pays_s, failures=failures)
            if pause_s > CLOSED_AFTER_S:
                reader.close()
            _pause(reader, pause_s, stop, asks=not failures)
    except ReaderStopped:
        pass
    reader.close()


def _pause(reader: Reader, pause_s: float, stop: threading.Event, *, asks: bool) -> None:
    """Leave the queue in peace for so long; `asks`: but accounting is asked at once about jobs that hooks tell of.

    Where that is in vain, the next look will say so.
    """
    if not asks:
        stop.wait(pause_s)
        return
    until_s, wait_s = time.monotonic() + pause_s, HOOKS_EVERY_S
    while (left_s := until_s - time.monotonic()) > 0 and not stop.wait(min(wait_s, left_s)):
        began_s = time.monotonic()
        try:
            asked = reader.answer_hooks(tries=HASTY_TRIES)
            ingest.tell_owed(reader.cluster)
        except (DomainError, FormatError):
            stop.wait(max(0.0, until_s - time.monotonic()))
            return
        took_s = time.monotonic() - began_s
        wait_s = max(HOOKS_EVERY_S, took_s * (1 / HOOKS_SHARE - 1)) if asked else HOOKS_EVERY_S


def _take_inventory(reader: Reader, round_: Round, say: Callable[[str], None]) -> None:
    """Take the kind that is due, if any. In vain it does not keep anybody from looking at the queue."""
    kind = round_.next_due(time.monotonic())
    if kind is None:
        return
    try:
        reader.take_inventory(kind)
        worked = True
    except (DomainError, FormatError) as error:
        worked = False
        say(f"{kind.label}: {describe(error)} Trying again later.")
    round_.settle(kind, time.monotonic(), worked=worked)


def _pause_s(pace: Pace, *, took_s: float, failures: int, owed_s: float = 0.0) -> float:
    """Return how long to leave Slurm in peace: longer where it was slow, much longer where it did not answer.

    `took_s` is what the look took, `owed_s` what else is to be made good now.
    """
    patience_s = min(BACK_OFF_S, pace.look_s * 2**failures) if failures else 0
    return max(pace.look_s, took_s * (1 / SHARE - 1) + owed_s, patience_s)
