"""Writing what was taken of a batch: rows that are there already stay as they are."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Final, TypeAlias

from portal.core import clock
from telemetry.engine.activity_batches import LoopPart, MinutePart, PollingPart, SshPart, SubmissionPart
from telemetry.models import ActivityMinute, ActivitySubmission, ExperimentLoop, PollingLoop, SshDay
from telemetry.services.activity.judging import Judgement

Touched: TypeAlias = set[tuple[date, int | None]]
_Key: TypeAlias = tuple[int | None, str, datetime, str]
_READ: Final = 500  # a query names no more sessions


def store_minutes(judged: Judgement, minutes: Sequence[MinutePart]) -> tuple[int, Touched]:
    """Store minutes in the caller's transaction, with the cluster locked; return how many changed, and whose days.

    A minute that is known is replaced where it says something else, which a collector's own never does.
    """
    batch, sent = judged.batch, {_key(judged, part): part for part in minutes}
    stored = _stored(judged, sent)
    new, changed, touched = [], [], Touched()
    users = {known.pk: known.cluster_user_id for known in judged.known.values()}
    for key, part in sent.items():
        session, driver, minute, place = key
        row = stored.get(key)
        if row is not None and row.counts == part.counts:
            continue
        if row is None:
            row = ActivityMinute(
                cluster=judged.cluster, host=batch.host, run=batch.run, session_id=session, driver=driver,
                minute=minute, place=place, study=judged.study if session and driver == "human" else None,
            )  # fmt: skip
            new.append(row)
        else:
            changed.append(row)
        row.counts = dict(part.counts)
        touched.add((minute.date(), users[session] if session else None))
    ActivityMinute.objects.bulk_create(new, batch_size=_READ)
    ActivityMinute.objects.bulk_update(changed, ["counts"], batch_size=_READ)
    return len(new) + len(changed), touched


def _key(judged: Judgement, part: MinutePart) -> _Key:
    known = judged.session_of(part) if part.session else None
    place = "" if known else part.place
    return known.pk if known else None, part.driver, part.minute.astimezone(UTC), place


def _stored(judged: Judgement, sent: dict[_Key, MinutePart]) -> dict[_Key, ActivityMinute]:
    """Return the rows that are there of some minutes: of sessions, and of the node."""
    minutes = [minute for _, _, minute, _ in sent]
    if not minutes:
        return {}
    span = {"run": judged.batch.run, "minute__gte": min(minutes), "minute__lte": max(minutes)}
    node = ActivityMinute.objects.filter(
        session=None, cluster=judged.cluster, host=judged.batch.host, **span
    )  # fmt: skip
    rows = list(node)
    sessions = sorted({session for session, *_ in sent if session is not None})
    for at in range(0, len(sessions), _READ):
        rows += ActivityMinute.objects.filter(session__in=sessions[at : at + _READ], **span)
    return {(row.session_id, row.driver, row.minute, "" if row.session_id else row.place): row for row in rows}


def store_submissions(judged: Judgement, submissions: Sequence[SubmissionPart]) -> list[tuple[int, int]]:
    """Store submissions in the caller's transaction; return (login name's id, second) of those that are news.

    Those of a session in one second are one row with their number. A second lies in one batch, but for the last of one
    run and the first of the next: the greater number stays.
    """
    counted, users = Counter[tuple[int, datetime]](), dict[int, int]()
    for part in submissions:
        if known := judged.actor_of(part.session):
            counted[known.pk, part.at.astimezone(UTC).replace(microsecond=0)] += 1
            users[known.pk] = known.cluster_user_id
    if not counted:
        return []
    seconds = [at for _, at in counted]
    rows = ActivitySubmission.objects.filter(session__in=users, at__gte=min(seconds), at__lte=max(seconds))
    stored = {(row.session_id, row.at): row for row in rows}
    new = [
        ActivitySubmission(session_id=key[0], at=key[1], number=number)
        for key, number in counted.items()
        if key not in stored
    ]
    more = [row for key, row in stored.items() if counted[key] > row.number]
    for row in more:
        row.number = counted[row.session_id, row.at]
    ActivitySubmission.objects.bulk_create(new, batch_size=_READ)
    ActivitySubmission.objects.bulk_update(more, ["number"], batch_size=_READ)
    return [(users[row.session_id], int(row.at.timestamp())) for row in new]


def store_loops(judged: Judgement, polling: Sequence[PollingPart], loops: Sequence[LoopPart]) -> None:
    """Store loops in the caller's transaction; those that are there already are passed over."""
    queries = [
        PollingLoop(session_id=known.pk, first=part.first, last=part.last, queries=part.queries, period_s=part.period_s)
        for part in polling
        if (known := judged.actor_of(part.session))
    ]
    experiments = [
        ExperimentLoop(session_id=known.pk, submitted=part.submitted, again=part.again)
        for part in loops
        if (known := judged.actor_of(part.session))
    ]
    PollingLoop.objects.bulk_create(queries, ignore_conflicts=True, batch_size=_READ)
    ExperimentLoop.objects.bulk_create(experiments, ignore_conflicts=True, batch_size=_READ)


def store_ssh(judged: Judgement, days: Sequence[SshPart]) -> None:
    """Store what a start of a collector counted of days, in the caller's transaction, with the cluster locked.

    Its sums only grow: what was told before and arrives later changes nothing.
    """
    batch, names = judged.batch, SshPart._fields[1:]
    for part in days:
        told = part._asdict()
        row, is_new = SshDay.objects.get_or_create(
            cluster=judged.cluster, host=batch.host, run=batch.run, day=told.pop("day"), defaults=told
        )
        if not is_new and row.connections < part.connections:
            for name in names:
                setattr(row, name, told[name])
            row.save(update_fields=names)


def as_of(moment: datetime) -> datetime:
    """Return an instant that is not later than now."""
    return min(moment, clock.now())
