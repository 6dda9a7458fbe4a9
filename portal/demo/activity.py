"""What collectors on the demo's login nodes counted in the last two days: agents by session, people by node alone."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final, TypeAlias
from uuid import NAMESPACE_DNS, UUID, uuid5
from zlib import crc32

from portal.demo import cast
from portal.demo.drafts import SessionPlan
from portal.demo.facility import Facility
from portal.demo.history import Stage
from principals.actors import SYSTEM_ACTOR
from telemetry import services as telemetry_services
from telemetry.engine.activity_batches import (
    Batch,
    Driver,
    Health,
    LoopPart,
    MinutePart,
    Place,
    PollingPart,
    SessionPart,
)

_DAYS: Final = 2
_MINUTE: Final = timedelta(minutes=1)
_AGENT_MINUTES: Final = 45  # of a day, in which a session does something
_Kind: TypeAlias = tuple[float, str, Sequence[str]]  # share, category, what else it counts for
_PEOPLE_EVERY: Final = 20  # minutes, on each node
# Shares of an agent's commands and of a person's, and what one of a kind may be besides (paper, Figure 3, Table I).
_FEWEST_IN_A_ROW: Final = 3
_AGENT: Final = (
    (0.33, "text", ("tool:head",)), (0.13, "text", ("tool:sed",)), (0.1, "text", ("tool:tail",)),
    (0.06, "text", ("tool:cat",)), (0.08, "text", ("tool:grep", "recursive_search")), (0.03, "text", ("tree_walk",)),
    (0.02, "text", ("rm_force",)), (0.05, "build", ()), (0.03, "packages", ("fetch:code",)), (0.05, "versions", ()),
    (0.06, "slurm", ("scheduler_query",)), (0.02, "slurm", ("submission",)), (0.03, "interpreters", ()),
    (0.01, "network", ("fetch:web",)),
)  # fmt: skip
_PERSON: Final = (
    (0.45, "slurm", ("scheduler_query",)), (0.12, "slurm", ("submission",)), (0.12, "text", ()),
    (0.12, "editors", ("tool:vim",)), (0.08, "versions", ()), (0.06, "other", ()), (0.05, "build", ()),
)  # fmt: skip


def boot_of(host: str) -> str:
    """Return the id of the one boot that a node of the demo ever had."""
    return str(uuid5(NAMESPACE_DNS, host))


def session_id_of(plan: SessionPlan) -> str:
    """Return a session's root process as its collector names it: process id and start in ticks."""
    return f"{1000 + crc32(f'{plan.login} {plan.started_s}'.encode()) % 4_000_000}-{plan.started_s % 10**8 * 100}"


def tell_all(stage: Stage, facility: Facility, rng: Random) -> None:
    """Record a day's batch of each node after the other, through the service that collectors send to."""
    for host in cast.LOGIN_NODES:
        run = UUID(int=rng.getrandbits(128), version=4)
        for day in range(_DAYS, 0, -1):
            until = stage.now - timedelta(days=day - 1)
            batch = _batch(rng, facility.sessions, host, run, until.replace(second=0))
            telemetry_services.record_activity(actor=SYSTEM_ACTOR, cluster=stage.cluster, batch=batch)
    telemetry_services.refresh_activity(stage.cluster)


def _batch(rng: Random, plans: Sequence[SessionPlan], host: str, run: UUID, until: datetime) -> Batch:
    since = until - timedelta(days=1)
    open_now = [
        plan for plan in plans
        if (plan.host, plan.kind) == (host, "agent") and plan.started_s < since.timestamp() and plan.ended_s is None
    ]  # fmt: skip
    minutes = [minute for plan in open_now for minute in _minutes_of(rng, session_id_of(plan), since)]
    asked = Counter[str]()
    for each in minutes:
        asked[each.session] += each.counts.get("scheduler_query", 0)
    minutes += _node_minutes(rng, since)
    commands = sum(each.counts["commands"] for each in minutes)
    health = Health(
        commands * 3, 0, commands // 60, commands // 90, 1.0, commands * 0.004, rng.randrange(38, 44) * 2**20,
        rng.randrange(300, 700),
    )  # fmt: skip
    return Batch(
        host=host, boot=boot_of(host), run=str(run), batch=str(UUID(int=rng.getrandbits(128), version=4)),
        collector="0.1.0", mode="events", study="", since=since, until=until, health=health,
        sessions=[_session(plan, until) for plan in open_now], minutes=minutes,
        polling=[loop for plan in open_now for loop in _polling(rng, plan, since, asked[session_id_of(plan)])],
        loops=[loop for plan in open_now for loop in _loops(rng, plan, since)],
    )  # fmt: skip


def _session(plan: SessionPlan, until: datetime) -> SessionPart:
    started = datetime.fromtimestamp(plan.started_s, UTC)
    return SessionPart(session_id_of(plan), "agent", plan.harness, plan.login, started, until, None)


def _minutes_of(rng: Random, session: str, since: datetime) -> Iterator[MinutePart]:
    for minute in sorted(rng.sample(range(24 * 60), _AGENT_MINUTES)):
        yield agent_minute(rng, session, since + minute * _MINUTE)


def _node_minutes(rng: Random, since: datetime) -> Iterator[MinutePart]:
    """Count what people typed, more of it by day, and what nobody is known to have started."""
    for minute in range(0, 24 * 60, _PEOPLE_EVERY):
        at = since + (minute + rng.randrange(_PEOPLE_EVERY)) * _MINUTE
        yield _minute(rng, "", "human", at, rng.randrange(3, 16) if 8 <= at.hour < 20 else rng.randrange(1, 4), _PERSON)
        if minute % (3 * _PEOPLE_EVERY) == 0:
            yield _minute(rng, "", "unknown", at, rng.randrange(1, 6), _PERSON[2:])


def agent_minute(rng: Random, session: str, at: datetime) -> MinutePart:
    """Count a minute of an agent's session."""
    return _minute(rng, session, "agent", at, rng.randrange(2, 14), _AGENT)


def node_minute(rng: Random, at: datetime, place: Place) -> MinutePart:
    """Count what nobody is known to have started in a minute at a place of a node."""
    return _minute(rng, "", "unknown", at, rng.randrange(1, 6), _PERSON[2:])._replace(place=place)


def _minute(
    rng: Random, session: str, driver: Driver, at: datetime, commands: int, kinds: Sequence[_Kind]
) -> MinutePart:  # fmt: skip
    counts = Counter({"commands": commands})
    weights = [weight for weight, *_ in kinds]
    for _, category, others in rng.choices(kinds, weights, k=commands):
        counts[f"category:{category}"] += 1
        counts.update(others)
    return MinutePart(session, driver, at, dict(counts))


def _polling(rng: Random, plan: SessionPlan, since: datetime, asked: int) -> Iterator[PollingPart]:
    """Let some of what a session asked of the scheduler be asked in a row, every other second."""
    first = since + rng.randrange(60, 1200) * _MINUTE
    queries = min(rng.randrange(12, 90), asked * 2 // 3)
    if queries >= _FEWEST_IN_A_ROW:
        yield PollingPart(session_id_of(plan), first, first + timedelta(seconds=queries * 2), queries, 2.0)


def _loops(rng: Random, plan: SessionPlan, since: datetime) -> Iterator[LoopPart]:
    at = since + rng.randrange(30, 300) * _MINUTE
    for _ in range(4):
        again = at + timedelta(seconds=int(rng.lognormvariate(6.9, 1.1)))  # half of them within 16 minutes
        if again < since + timedelta(hours=23):
            yield LoopPart(session_id_of(plan), at, again)
        at = again + rng.randrange(10, 90) * _MINUTE
