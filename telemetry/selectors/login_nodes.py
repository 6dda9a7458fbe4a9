"""Login nodes: how their collectors do, which sessions are open on them, and who drives what runs there."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from django.db.models import Count, Max, Min, Q, Sum

from portal.core import clock
from principals.actors import Actor as Principal
from principals.models import AgentSession
from telemetry.engine.activity import ALL, CATEGORY, CONNECTION
from telemetry.models import ActivityDay, Actor, CollectorReport, IngestBatch, IngestSource, SshDay
from telemetry.selectors.activity import CATEGORIES, counts_of, sums_of
from telemetry.selectors.scope import Period
from telemetry.selectors.sources import SourceState, state_of
from telemetry.selectors.totals import ratio

RECENT: Final = timedelta(days=1)
CLOCK_OFF_S: Final = 60  # a clock that is off by less is right
_Node: TypeAlias = tuple[int, str]
_MOST_CLASSES: Final = 3
_DIFFERENT: Final = ("keys", "clients", "pairs")
_COMPOSED: Final = (ALL, *(CATEGORY + slug for slug in CATEGORIES))


@dataclass(frozen=True, slots=True)
class Drivers:
    """Commands by who drives them."""

    by_driver: Mapping[str, int] = field(default_factory=dict)

    def of(self, driver: str) -> int:
        """Return the commands of `agent`, `human` or `unknown`."""
        return self.by_driver.get(driver, 0)

    @property
    def total(self) -> int:
        return sum(self.by_driver.values())

    @property
    def unknown_share(self) -> float | None:
        return ratio(self.of(Actor.UNKNOWN), self.total)


@dataclass(frozen=True, slots=True)
class LoginNode:
    """One node. What a collector lost is of the last day; sessions are those open now; commands are of the period."""

    cluster: str
    host: str
    state: SourceState
    heard: datetime | None
    mode: str = ""
    version: str = ""
    study: str = ""
    lag_s: int | None = None
    clock_ahead_s: int = 0
    processes: int | None = None
    memory_bytes: int | None = None
    batches: int = 0
    events: int = 0
    lost: int = 0
    argv_missed: int = 0
    vanished: int = 0
    rejected: int = 0
    cpu_share: float | None = None  # of one core
    sampled_share: float | None = None  # the least of the day
    registered: int = 0
    unregistered: int = 0
    commands: Drivers = field(default_factory=Drivers)

    @property
    def clock_fault(self) -> str:
        """Say which way the node's clock is off, where it is by a minute or more."""
        return "" if abs(self.clock_ahead_s) < CLOCK_OFF_S else "ahead" if self.clock_ahead_s > 0 else "behind"

    @property
    def clock_off_s(self) -> int:
        """Return by how much it is off, whichever way."""
        return abs(self.clock_ahead_s)

    @property
    def argv_missed_share(self) -> float | None:
        """Commands whose words were gone, of the events that told of any."""
        return ratio(self.argv_missed, self.events)


def login_nodes(actor: Principal, period: Period) -> list[LoginNode]:
    """Return the nodes whose collectors were ever heard, by cluster and name: five queries, however many they are."""
    if not actor.sees_facility:
        return []
    recent, newest = _recent(actor)
    sessions, commands, now = _sessions(actor), _commands(actor, period), clock.now()
    sources = IngestSource.objects.filter(kind=IngestBatch.Kind.ACTIVITY).select_related("cluster")
    nodes = []
    for source in sources.order_by("cluster__name", "name"):
        key = source.cluster_id, source.name
        registered, unregistered = sessions.get(key, (0, 0))
        age_s = int((now - source.last_received).total_seconds()) if source.last_received else None
        more = recent.get(key, {}) | _as_last_told(newest.get(key))
        node = LoginNode(
            source.cluster.name, source.name, state_of(age_s, source.expected_every_s), source.last_received,
            registered=registered, unregistered=unregistered, commands=Drivers(commands.get(key, {})), **more,
        )  # fmt: skip
        nodes.append(node)
    return nodes


def _recent(actor: Principal) -> tuple[dict[_Node, dict[str, Any]], dict[_Node, CollectorReport]]:
    """Return what each collector of the last day lost and cost, and its newest report: two queries."""
    reports = CollectorReport.objects.visible_to(actor)
    groups = reports.filter(until__gte=clock.now() - RECENT).order_by().values("cluster_id", "host").annotate(
        newest=Max("pk"), batches=Count("pk"), since_s=Min("since"), until_s=Max("until"), cpu=Sum("cpu_s"),
        sampled=Min("sampled_share"),
        **{f"all_{name}": Sum(name) for name in ("events", "lost", "argv_missed", "vanished", "rejected")},
    )  # fmt: skip
    found = {(row["cluster_id"], row["host"]): row for row in groups}
    rows = reports.in_bulk([row["newest"] for row in found.values()])
    return (
        {key: _sums(row) for key, row in found.items()},
        {key: rows[row["newest"]] for key, row in found.items() if row["newest"] in rows},
    )


def _sums(row: Mapping[str, Any]) -> dict[str, Any]:
    lasted = (row["until_s"] - row["since_s"]).total_seconds()
    names = ("events", "lost", "argv_missed", "vanished", "rejected")
    return {name: row[f"all_{name}"] for name in names} | {
        "batches": row["batches"], "cpu_share": ratio(row["cpu"], lasted), "sampled_share": row["sampled"],
    }  # fmt: skip


def _as_last_told(report: CollectorReport | None) -> dict[str, Any]:
    if report is None:
        return {}
    return {
        "mode": report.get_mode_display(), "version": report.version, "study": report.study, "lag_s": report.lag_s,
        "processes": report.processes, "memory_bytes": report.memory_bytes, "clock_ahead_s": report.clock_ahead_s,
    }  # fmt: skip


def _sessions(actor: Principal) -> dict[_Node, tuple[int, int]]:
    """Count the open sessions of harnesses by node: of registered agents, and of none."""
    live = AgentSession.objects.visible_to(actor).filter(ended=None, kind=AgentSession.Kind.AGENT).exclude(process="")
    counted = live.order_by().values_list("cluster_id", "host").annotate(
        registered=Count("pk", filter=Q(agent__isnull=False)), unregistered=Count("pk", filter=Q(agent=None))
    )  # fmt: skip
    return {(cluster, host): (registered, others) for cluster, host, registered, others in counted}


def _commands(actor: Principal, period: Period) -> dict[_Node, dict[str, int]]:
    """Add up the commands of each node by driver."""
    found: dict[_Node, dict[str, int]] = defaultdict(dict)
    for row in _days(actor, period).values("cluster_id", "host", "driver").annotate(**sums_of((ALL,))):
        found[row["cluster_id"], row["host"]][row["driver"]] = counts_of(row, (ALL,))[ALL]
    return found


def composition(actor: Principal, period: Period) -> dict[str, dict[str, int]]:
    """Add up the commands of all nodes, by driver and then by category: one query."""
    rows = _days(actor, period).values("driver").annotate(**sums_of(_COMPOSED))
    return {row["driver"]: counts_of(row, _COMPOSED) for row in rows}


def _days(actor: Principal, period: Period) -> Any:
    days = ActivityDay.objects.visible_to(actor).order_by()
    return days.filter(period.holds_day)


@dataclass(frozen=True, slots=True)
class Between:
    """A number of which a collector that was started anew leaves two bounds."""

    low: int = 0
    high: int = 0


@dataclass(frozen=True, slots=True)
class SshNode:
    """What came to a node by SSH without a terminal and is no agent's: programs of unknown kind.

    Keys, clients and pairs of both are different ones of the day that had most; None where sshd's log is not read.
    """

    cluster: str
    host: str
    connections: int
    counts: Mapping[str, int]
    untold: int = 0
    keys: Between | None = None
    clients: Between | None = None
    pairs: Between | None = None

    @property
    def commands(self) -> int:
        return self.counts.get(ALL, 0)

    @property
    def classes(self) -> list[tuple[str, float | None]]:
        """The kinds of most of its commands, with their shares."""
        found = [(title, self.counts.get(CATEGORY + slug, 0)) for slug, title in CATEGORIES.items()]
        most = sorted((each for each in found if each[1]), key=lambda each: -each[1])[:_MOST_CLASSES]
        return [(title, ratio(number, self.commands)) for title, number in most]


def ssh_nodes(actor: Principal, period: Period) -> list[SshNode]:
    """Return the nodes to which anything came by SSH that is nobody's, most connections first: two queries."""
    if not actor.sees_facility:
        return []
    measures = (CONNECTION, *_COMPOSED)
    days = _days(actor, period).filter(driver=Actor.UNKNOWN, place=AgentSession.Place.SSH)
    told = _ssh_days(actor, period)
    found = []
    for row in days.values("cluster__name", "host").annotate(**sums_of(measures)):
        counts = counts_of(row, measures)
        key = row["cluster__name"], row["host"]
        found.append(SshNode(*key, counts[CONNECTION], counts, **told.get(key, {})))
    return sorted(found, key=lambda node: (-node.connections, node.cluster, node.host))


def _ssh_days(actor: Principal, period: Period) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what was logged of connections, by node. Each start of a collector counts anew: two leave bounds."""
    sums = {f"most_{name}": Max(name) for name in _DIFFERENT} | {f"all_{name}": Sum(name) for name in _DIFFERENT}
    rows = SshDay.objects.visible_to(actor).filter(period.holds_day).order_by()
    found: dict[tuple[str, str], dict[str, Any]] = defaultdict(lambda: {"untold": 0})
    for row in rows.values("cluster__name", "host", "day").annotate(nothing=Sum("untold"), **sums):
        node = found[row["cluster__name"], row["host"]]
        node["untold"] += row["nothing"]
        for name in _DIFFERENT:
            before = node.get(name, Between())
            node[name] = Between(max(before.low, row[f"most_{name}"]), max(before.high, row[f"all_{name}"]))
    return found
