"""Sessions behind a gateway: chains of requests, joined with those that earlier logs told of."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from principals.models import AgentSession
from principals.services import DeclaredSession
from telemetry.engine.attribution import CLOCK_SLACK_S, OBSERVED_S
from telemetry.engine.gateways.chains import GAP_S, Chain, chain
from telemetry.models import ActivitySubmission
from telemetry.services import sessions as session_services
from telemetry.services.attribution import Window, reattribute
from telemetry.services.gateways.storing import Log, Unit

SOURCE: Final = "gateway"
Place = AgentSession.Place


@dataclass(frozen=True, slots=True)
class Recorded:
    """The login name's id of a unit, and how many sessions are new and jobs attributed anew."""

    user_id: int
    sessions: int
    jobs: int


def record_chains(log: Log, unit: Unit) -> Recorded:
    """Record the sessions of a unit of an agent in the caller's transaction, with the cluster locked.

    A log that comes late may lengthen a session at either end, or join two: the older one goes on then.
    """
    chains = _chains(log, unit)
    jobs = sum(_settle(log, each) for each in chains)
    user_ids, created = set[int](), 0
    pairs: list[tuple[Chain, int]] = []
    for at in range(0, len(chains), session_services.SLICE):
        some = chains[at : at + session_services.SLICE]
        outcomes, changed = session_services.take_sessions(log.cluster, [_declared(log, unit, each) for each in some])
        jobs += changed
        for each, outcome in zip(some, outcomes, strict=True):
            if outcome.session_id is not None and outcome.cluster_user_id is not None:
                pairs.append((each, outcome.session_id))
                user_ids.add(outcome.cluster_user_id)
                created += outcome.outcome == "created"
    (user_id,) = user_ids
    return Recorded(user_id, created, jobs + _submit(log, unit, pairs, user_id))


def _chains(log: Log, unit: Unit) -> list[Chain]:
    first, last = (datetime.fromtimestamp(pick(unit.seconds), UTC) for pick in (min, max))
    gap = timedelta(seconds=GAP_S)
    known = AgentSession.objects.filter(
        cluster=log.cluster, cluster_user__login=unit.key.login, host=log.host, harness=unit.key.harness,
        place=Place.GATEWAY, kind=AgentSession.Kind.AGENT, source=SOURCE, ended__gte=first - gap,
        started__lte=last + gap,
    ).order_by("started")  # fmt: skip
    spans = [(row.pk, int(row.started.timestamp()), int((row.ended or row.started).timestamp())) for row in known]
    return chain(unit.seconds, spans)


def _settle(log: Log, found: Chain) -> int:
    """Let the oldest of the sessions that a chain takes in begin where it does, and stand for all; return jobs changed.

    It is found by its start then, as any that is told again.
    """
    if not found.known:
        return 0
    start = datetime.fromtimestamp(found.start_s, UTC)
    row, others = AgentSession.objects.get(pk=found.known[0]), found.known[1:]
    if row.started == start and not others:
        return 0
    _give_submissions(others, row)
    AgentSession.objects.filter(pk__in=others).delete()
    row.started = start
    row.save(update_fields=["started"])
    window = Window(row.cluster_user_id, found.start_s - CLOCK_SLACK_S, found.end_s + CLOCK_SLACK_S)
    return reattribute(cluster=log.cluster, windows=[window])


def _give_submissions(others: Sequence[int], row: AgentSession) -> None:
    seconds = ActivitySubmission.objects.filter(session=row).values("at")
    ActivitySubmission.objects.filter(session__in=others).exclude(
        at__in=list(seconds.values_list("at", flat=True))
    ).update(session=row)


def _declared(log: Log, unit: Unit, found: Chain) -> DeclaredSession:
    start, end = (datetime.fromtimestamp(at_s, UTC) for at_s in (found.start_s, found.end_s))
    return DeclaredSession(
        login=unit.key.login, host=log.host, kind=AgentSession.Kind.AGENT, harness=unit.key.harness, started=start,
        ended=end, source=SOURCE, last_seen=end, place=Place.GATEWAY,
    )  # fmt: skip


def _submit(log: Log, unit: Unit, pairs: Iterable[tuple[Chain, int]], user_id: int) -> int:
    """Note the jobs that requests submitted, so that they are known by the second; return how many changed."""
    told = {at_s: counts[1] for at_s, counts in unit.seconds.items() if counts[1]}
    windows: list[Window] = []
    for each, session in pairs:
        mine = {at_s: number for at_s, number in told.items() if each.start_s <= at_s <= each.end_s}
        at = {at_s: datetime.fromtimestamp(at_s, UTC) for at_s in mine}
        rows = ActivitySubmission.objects.filter(session=session, at__in=list(at.values())) if mine else ()
        stored = {int(row.at.timestamp()): row for row in rows}
        new = [ActivitySubmission(session_id=session, at=at[at_s], number=mine[at_s]) for at_s in mine.keys() - stored]
        more = [row for at_s, row in stored.items() if mine[at_s] > row.number]
        for row in more:
            row.number = mine[int(row.at.timestamp())]
        ActivitySubmission.objects.bulk_create(new)
        ActivitySubmission.objects.bulk_update(more, ["number"])
        windows += [Window(user_id, int(row.at.timestamp()) - CLOCK_SLACK_S, int(row.at.timestamp()) + OBSERVED_S)
                    for row in new]  # fmt: skip
    return reattribute(cluster=log.cluster, windows=windows)


def is_login(name: str) -> bool:
    """Say whether a login name may be recorded: names alone, as `session_services.find_fault` has them."""
    probe = DeclaredSession(
        login=name, host="gateway", kind=AgentSession.Kind.INTERACTIVE, harness="", started=session_services.EARLIEST
    )
    return not session_services.find_fault(probe)
