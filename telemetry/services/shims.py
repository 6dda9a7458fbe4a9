"""What stands behind `gatehouse squeue` and `gatehouse sacct`: calls that many share, and how often each was used."""

import threading
import time
import zoneinfo
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import F

from portal.core import clock
from portal.core.connections import free_connections
from portal.core.errors import DomainError
from principals.actors import Actor
from principals.models import Cluster
from telemetry.engine.slurm.printing import PassedOn
from telemetry.engine.slurm.printing.errors import OTHER, REASONS
from telemetry.engine.slurm.shared_calls import SharedCall, read_shared_call
from telemetry.models import ShimUse
from telemetry.selectors.queue_sheets import is_own, require_own_cluster
from telemetry.services.reader.asking import Asker, SlurmUnavailable

Outcome = ShimUse.Outcome
KEPT_S: Final = 3.0  # so long everybody who asks the same gets the same bytes
TIMEOUT_S: Final = 15.0
MOST_BYTES: Final = 2 * 1024 * 1024  # a hundred may wait for it, and each gets its own copy in JSON
AT_ONCE: Final = 4  # calls of one process
FLUSH_S: Final = 10.0


class NotShared(DomainError):
    """The portal does not run this command: the caller runs it itself, under its own name."""

    status, title, code = 409, "Not for a shared call", "not_shared"


@dataclass(frozen=True)
class SharedAnswer:
    """What a command printed, when it was started (UTC, seconds since 1970), and whether for this caller."""

    out: bytes
    complaint: str
    status: int
    asked_s: float
    is_first: bool = True


def answer_shared(
    *, actor: Actor, cluster_name: str, program: str, arguments: Sequence[str], login: str, reason: str, zone: str
) -> tuple[Cluster, SharedAnswer]:  # fmt: skip
    """Run a command of Slurm for the actor's own jobs, once for all who ask the same within seconds.

    `login` is who asks on the login node, `zone` its time zone, `reason` why the command was not answered otherwise.
    Errors: `NotAllowed`, `Invalid`, `NotShared` for what the caller must run itself.
    """
    cluster, logins = require_own_cluster(actor, cluster_name)
    reason = reason if reason in REASONS else OTHER
    try:
        if reason == "environment" or zone not in _zones():
            raise PassedOn("environment")
        if not any(cluster.is_named(name) for name in settings.SHARED_CALLS):
            raise PassedOn("not_here")
        call = read_shared_call(program, arguments, login=login, logins=logins.keys())
        if call.jobs and not is_own(logins.values(), call.jobs):
            raise PassedOn("unknown_job")
        free_connections()
        answer = CALLS.run((cluster.pk, zone, *call.command), call, zone)
    except PassedOn as error:
        note_use(cluster, program, Outcome.PASSED, reason if error.reason == "not_here" else error.reason)
        raise _refusal(error.reason) from None
    except SlurmUnavailable:
        note_use(cluster, program, Outcome.PASSED, "slurm")
        raise _refusal("slurm") from None
    note_use(cluster, program, Outcome.CALLED if answer.is_first else Outcome.SHARED)
    return cluster, answer


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


_WHY: Final = {
    "not_here": "this site has it run no commands of Slurm for others",
    "slurm": "Slurm does not answer it",
    "busy": "too many ask at once",
    "unknown_job": "it knows no such job of yours",
    "other_user": "it is not of your own jobs alone",
    "all_users": "it is not of your own jobs alone",
    "environment": "a variable or the time zone of this node changes what is printed",
    "option": "it does not know an option",
}


def _refusal(reason: str) -> NotShared:
    words = _WHY.get(reason, reason.replace("_", " "))
    return NotShared(
        f"The portal does not run this for you: {words}.", remedy="Run Slurm’s own command; `gatehouse` does.",
        extra={"reason": reason},
    )  # fmt: skip


class _Calls:
    """The calls of this process: one at a time of each, and what each printed for a few seconds. Kept in memory alone:
    names and comments may hold what is never stored."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[tuple[object, ...], Future[SharedAnswer]] = {}
        self._done: dict[tuple[object, ...], tuple[float, SharedAnswer]] = {}

    def run(self, key: tuple[object, ...], call: SharedCall, zone: str) -> SharedAnswer:
        with self._lock:
            now = time.monotonic()
            self._done = {each: kept for each, kept in self._done.items() if now - kept[0] < KEPT_S}
            if key in self._done:
                return _for_another(self._done[key][1])
            mine = key not in self._running
            if mine:
                if len(self._running) >= AT_ONCE:
                    raise PassedOn("busy")
                self._running[key] = Future()
            future = self._running[key]
        if not mine:
            try:
                return _for_another(future.result(timeout=2 * TIMEOUT_S))
            except TimeoutError:
                raise PassedOn("busy") from None
        try:
            answer = _call(call, zone)
        except BaseException as error:
            with self._lock:
                del self._running[key]
            future.set_exception(error)
            raise
        with self._lock:
            del self._running[key]
            self._done[key] = (time.monotonic(), answer)
        future.set_result(answer)
        return answer

    def forget(self) -> None:
        """Let go of what was printed: the next one who asks asks Slurm."""
        with self._lock:
            self._done.clear()


CALLS: Final = _Calls()


def _call(call: SharedCall, zone: str) -> SharedAnswer:
    asked_s = clock.now().timestamp()
    ran = Asker(timeout_s=TIMEOUT_S, most_bytes=MOST_BYTES, zone=zone).run(*call.command, name=call.command[0])
    if ran.status < 0:  # it was killed: what it printed is no answer
        raise PassedOn("slurm")
    if not call.may_show(ran.out):
        raise PassedOn("all_users")
    return SharedAnswer(ran.out, ran.complaint.decode(errors="replace")[:2000], ran.status, asked_s)


def _for_another(answer: SharedAnswer) -> SharedAnswer:
    return SharedAnswer(answer.out, answer.complaint, answer.status, answer.asked_s, is_first=False)


class _Uses:
    """Counts of this process that are not written yet: one write in ten seconds, however often somebody asks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[int, str, str, str]] = Counter()
        self._written = 0.0

    def add(self, key: tuple[int, str, str, str]) -> None:
        with self._lock:
            self._counts[key] += 1
            if time.monotonic() - self._written < FLUSH_S:
                return
            counts, self._counts, self._written = self._counts, Counter(), time.monotonic()
        _write(counts)

    def flush(self) -> None:
        with self._lock:
            counts, self._counts = self._counts, Counter()
        _write(counts)


USES: Final = _Uses()


def note_use(cluster: Cluster, program: str, outcome: ShimUse.Outcome, reason: str = "") -> None:
    """Count one use, on this UTC day."""
    USES.add((cluster.pk, program, outcome.value, reason[:24]))


def _write(counts: Counter[tuple[int, str, str, str]]) -> None:
    day = clock.now().date()
    with transaction.atomic():
        known = set(Cluster.objects.filter(pk__in={key[0] for key in counts}).values_list("pk", flat=True))
        for (cluster, program, outcome, reason), times in counts.items():
            if cluster not in known:  # it was withdrawn
                continue
            row, _ = ShimUse.objects.get_or_create(
                cluster_id=cluster, day=day, program=program, outcome=outcome, reason=reason
            )
            ShimUse.objects.filter(pk=row.pk).update(times=F("times") + times)
