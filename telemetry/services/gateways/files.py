"""Access logs of gateways: read whole, stored a day and login name at a time, and one batch that counts each line."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Final

from django.db import connection, transaction

from portal.core import audit, clock
from portal.core.errors import Invalid
from principals.actors import Actor
from principals.models import Cluster
from telemetry import permissions
from telemetry.engine.activity_batches import CLOCKS_DIFFER, TAKEN_FOR
from telemetry.engine.gateways import KINDS, SET_ASIDE, Passed, Reading, Request, Unread, read_line
from telemetry.engine.gateways.paths import SUBMISSION, TRANSFER
from telemetry.engine.slurm.records import Rejected
from telemetry.models import DataGeneration, IngestBatch
from telemetry.services import sessions as session_services
from telemetry.services.attribution import attribute_pending
from telemetry.services.gateways.sessions import is_login, record_chains
from telemetry.services.gateways.storing import Key, Log, Seconds, Unit, store_unit, units_of
from telemetry.services.ingest import batches
from telemetry.services.ingest.chunks import LEASE, LeaseLost, move_on
from telemetry.services.ingest.feed import Counts, Feed
from telemetry.services.ingest.quarantine import set_aside
from telemetry.services.ingest.running import place_of
from telemetry.services.sources import note_source

_UNITS: Final = 5  # of a transaction: a key's day each, perhaps with dozens of sessions
_ASIDE: Final = 2000
_PAUSE_S: Final = 0.02  # SQLite has no queue: whoever else writes would find it locked until they give up


@dataclass(slots=True)
class GatewaySummary:
    """What became of a log. `passed` counts lines that are no request of anybody, `requests` those that are by driver.

    `sessions` are new ones, `jobs` how often a job's attribution changed.
    """

    batch: IngestBatch
    passed: Counter[str] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)
    sessions: int = 0
    jobs: int = 0
    newest_s: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """How a log is to be read: the zone of moments that tell none, the realm behind logins, FirecREST's system."""

    zone: tzinfo
    realm: str = ""
    system: str = ""


def import_gateway_log(
    *, actor: Actor, cluster: Cluster, lines: Iterable[str], kind: str, host: str, name: str, asked: Asked
) -> GatewaySummary:
    """Record the access log of a gateway and return what became of it; the same lines again change nothing.

    Requests of known agents become sessions at the gateway under their login names, with what they submitted and
    transferred; those of people, and of programs that tell nothing, become totals of the gateway. A line that cannot be
    read is set aside by its number and reason: what it says is not kept. Errors: `NotAllowed`, `Invalid`.
    """
    permissions.require_feed(actor, "gateway", cluster.name)
    if kind not in KINDS:
        raise Invalid(f"{kind[:40]!r} is no gateway.", code="gateway_unknown", remedy=f"One of {', '.join(KINDS)}.")
    if not session_services.is_host(host):
        raise Invalid(
            "No gateway has that name.", code="host_invalid", remedy=session_services.REMEDIES["host_invalid"]
        )
    batch = batches.start_batch(
        actor=actor, cluster=cluster, format=kind, source=host, name=name, kind=IngestBatch.Kind.GATEWAY
    )
    summary, feed = GatewaySummary(batch), Feed(batch, cluster, batches.lease_of(batch), group_is_lab=False)
    try:
        _Import(Log(cluster, host, kind), asked, summary, feed).run(lines)
        _record(actor, summary, cluster, host)
        batches.finish_batch(feed, actor.ref)
    except BaseException as error:
        why = f"{type(error).__name__}: run the same command again."
        batches.fail_batch(batch, feed.lease, actor.ref, why)
        raise
    summary.jobs += attribute_pending(cluster=cluster)
    return summary


class _Import:
    """One log on its way in."""

    def __init__(self, log: Log, asked: Asked, summary: GatewaySummary, feed: Feed) -> None:
        self._log, self._asked, self._summary, self._feed = log, asked, summary, feed
        self._found: dict[Key, Seconds] = {}
        self._rejected: list[Rejected] = []
        now = clock.now()
        self._oldest_s = int((now - TAKEN_FOR).timestamp())
        self._latest_s = int((now + CLOCKS_DIFFER).timestamp())

    def run(self, lines: Iterable[str]) -> None:
        """Read all of it, then store it: requests of a second may stand far apart, for each is logged as it ends."""
        for number, line in enumerate(self._keep(lines), start=1):
            self._take(number, read_line(self._log.gateway, line, zone=self._asked.zone))
        self._set_aside()
        units = units_of(self._found)
        for at in range(0, len(units), _UNITS):
            self._store(units[at : at + _UNITS])
            if connection.vendor == "sqlite":
                time.sleep(_PAUSE_S)

    def _keep(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield lines and keep the batch ours meanwhile."""
        for line in lines:
            if clock.now() > self._feed.lease - LEASE / 2 and not batches.keep_lease(self._feed):
                raise LeaseLost
            yield line

    def _take(self, number: int, reading: Reading) -> None:
        if isinstance(reading, Request):
            reading = self._judge(reading)
        if isinstance(reading, Passed):
            self._summary.passed[reading.reason] += 1
        elif isinstance(reading, Unread):
            # What the line says is not kept: it may hold a path, a query or an address.
            self._rejected.append(Rejected(number, reading.reason, SET_ASIDE.get(reading.reason, ""), ""))
            if len(self._rejected) >= _ASIDE:
                self._set_aside()
        else:
            self._count(reading)

    def _judge(self, request: Request) -> Reading:
        """Return a request as it is taken, or why it is not."""
        if self._asked.system and request.system and request.system != self._asked.system:
            return Passed("other_system")
        if request.at_s < self._oldest_s:
            return Unread("too_old")
        if request.at_s > self._latest_s:
            return Unread("future_date")
        if not request.client.harness:
            return request  # of nobody by name
        login, _, realm = request.user.partition("@")
        if realm and realm.lower() != self._asked.realm.lower():
            return Unread("other_realm")
        return request._replace(user=login) if is_login(login) else Unread("user_invalid")

    def _count(self, request: Request) -> None:
        client = request.client
        key = Key(client.driver, request.user, client.harness) if client.harness else Key(client.driver)
        counts = self._found.setdefault(key, {}).setdefault(request.at_s, [0, 0, 0])
        counts[0] += 1
        counts[1] += request.act == SUBMISSION
        counts[2] += request.act == TRANSFER
        self._summary.requests[client.driver] += 1
        self._summary.newest_s = max(self._summary.newest_s, request.at_s)

    def _set_aside(self) -> None:
        """Keep the numbers and reasons of lines that could not be read."""
        if not self._rejected:
            return
        counts = Counts(rejected_rows=len(self._rejected))
        with transaction.atomic():
            set_aside(self._feed.batch, self._rejected, before=self._feed.batch.rejected_rows)
            lease = move_on(self._feed, place_of(self._feed.batch), counts)
        self._feed.advance(place_of(self._feed.batch), counts, lease)
        self._rejected.clear()

    def _store(self, units: Iterable[Unit]) -> None:
        """Store some units with what is counted of them, in one transaction."""
        counts, cluster = Counts(), self._log.cluster
        with transaction.atomic():
            cluster.lock()
            for unit in units:
                user_id = None
                if unit.key.harness:
                    recorded = record_chains(self._log, unit)
                    user_id = recorded.user_id
                    self._summary.sessions += recorded.sessions
                    self._summary.jobs += recorded.jobs
                news = store_unit(self._log, unit, user_id)
                counts.created_rows += news
                counts.duplicate_rows += sum(each[0] for each in unit.seconds.values()) - news
            DataGeneration.objects.start(cluster)
            lease = move_on(self._feed, place_of(self._feed.batch), counts)
        self._feed.advance(place_of(self._feed.batch), counts, lease)


def _record(actor: Actor, summary: GatewaySummary, cluster: Cluster, host: str) -> None:
    """Note that the gateway was heard, and leave what became of the lines that are no requests."""
    newest = datetime.fromtimestamp(summary.newest_s, UTC) if summary.newest_s else None
    with transaction.atomic():
        at = min(newest, clock.now()) if newest else None
        note_source(cluster=cluster, name=host, kind=IngestBatch.Kind.GATEWAY, newest=at)
        audit.record(
            actor=actor.ref, verb="ingest.gateway_log", object_kind="cluster", object_id=cluster.pk,
            object_label=cluster.name,
            after={"host": host, "gateway": summary.batch.format, "requests": dict(summary.requests),
                   "passed": dict(summary.passed), "sessions": summary.sessions, "jobs_attributed": summary.jobs},
        )  # fmt: skip
