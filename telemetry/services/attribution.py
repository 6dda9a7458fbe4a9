"""Who submitted each job, from the sessions that are known: the same answer whichever arrives first."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import Q

from portal.core import audit, clock, leases
from portal.core.actors import SYSTEM
from principals.models import AgentSession, Cluster
from telemetry.engine.attribution import (
    CLOCK_SLACK_S,
    OBSERVED_S,
    Attribution,
    Kind,
    Matcher,
    Session,
    Submission,
    labelled,
    receipted,
)
from telemetry.engine.labels import labelled_harness
from telemetry.engine.receipts import receipts_of
from telemetry.engine.touched import Footprint, as_date, touched_days
from telemetry.models import ActivitySubmission, Job, PendingAttribution
from telemetry.services import rollups
from telemetry.services.receipts import find_receipts

OWN_CAMPAIGN = "campaign"  # the key in `Job.extra` under which a job keeps the label it came with
_CHUNK = 1500  # jobs a transaction: some 150 ms of SQLite's write lock
_WINDOWS = 100
_USERS_NAMED = 100  # a query that names a thousand takes three times as long as one for the sessions of all


@dataclass(frozen=True, slots=True)
class Window:
    """Submit times of one user's jobs, both ends inclusive, UTC epoch seconds; `last_s` None: without end."""

    user_id: int
    first_s: int
    last_s: int | None


class Attributor:
    """Attributes jobs of some users, submitted within some time, from what is loaded in two queries.

    `receipts`: those that the jobs name; two queries more where there are any.
    """

    def __init__(
        self, cluster: Cluster, user_ids: Collection[int], first_s: int, last_s: int | None,
        receipts: Collection[str] = (),
    ) -> None:  # fmt: skip
        found = AgentSession.objects.filter(cluster=cluster)
        seen = ActivitySubmission.objects.filter(session__cluster=cluster, at__gte=first_s - OBSERVED_S)
        if len(user_ids) <= _USERS_NAMED:
            found = found.filter(cluster_user_id__in=user_ids)
            seen = seen.filter(session__cluster_user_id__in=user_ids)
        found = found.filter(Q(ended=None) | Q(ended__gte=first_s - CLOCK_SLACK_S))
        if last_s is not None:
            found = found.filter(started__lte=last_s + CLOCK_SLACK_S)
            seen = seen.filter(at__lte=last_s + CLOCK_SLACK_S)
        rows = list(found.order_by("id").values_list(*_SESSION))
        submissions = list(seen.values_list("at", *(f"session__{name}" for name in _SESSION)))
        with_campaign = (*rows, *(row for _, *row in submissions))
        self._campaigns: dict[int, str] = {row[0]: row[-1] for row in with_campaign if row[-1]}
        self._matcher = Matcher(
            (_session_of(*row[:-1]) for row in rows),
            (Submission(_session_of(*row[:-1]), int(at.timestamp())) for at, *row in submissions),
        )
        self._receipts = find_receipts(cluster, receipts)

    def attribute(
        self, user_id: int, submit_s: int, *, campaign: str, comment: str, extra: Mapping[str, str]
    ) -> tuple[Attribution, str]:
        """Return who submitted a job, and its campaign: its own label, else that of the session it came from.

        `comment` may name receipts; `extra`: its columns without a place, of which one may do so too, or hold the
        controller's label.
        """
        found = self._matcher.attribute(user=str(user_id), submit_s=submit_s)
        if harness := labelled_harness(extra):
            found = labelled(found, harness)
        if self._receipts:
            known = [self._receipts[name] for name in receipts_of(comment, extra) if name in self._receipts]
            found = receipted(found, known, user=str(user_id), submit_s=submit_s) if known else found
        return found, campaign or self._campaigns.get(found.session_id or 0, "")

    def spans(self) -> Iterator[tuple[int, int, Attribution, str]]:
        """Yield (user id, first second, who submitted from then on, the session's campaign): see `Matcher`."""
        for user, first_s, found in self._matcher.spans():
            yield int(user), first_s, found, self._campaigns.get(found.session_id or 0, "")


_SESSION = ("id", "cluster_user_id", "kind", "harness", "host", "started", "ended", "agent_id", "campaign")


def _session_of(
    pk: int, user_id: int, kind: str, harness: str, host: str, started: datetime, ended: datetime | None,
    agent_id: int | None,
) -> Session:  # fmt: skip
    known: Kind = "agent" if kind == AgentSession.Kind.AGENT else "interactive"
    end_s = int(ended.timestamp()) if ended else None
    return Session(pk, str(user_id), known, harness, host, int(started.timestamp()), end_s, agent_id)


_READ = (
    "id", "submit", "start", "usage_end", "elapsed_s", "array_tasks", "lab_id", "partition", "qos", "nodes", "cpus",
    "gpus", "actor", "harness", "actor_method", "actor_confidence", "session_id", "agent_id", "campaign",
    "extra",
)  # fmt: skip
_WRITTEN = ("actor", "harness", "actor_method", "actor_confidence", "session_id", "agent_id", "campaign")
_UPDATE = (
    "UPDATE telemetry_job SET actor = %s, harness = %s, actor_method = %s, actor_confidence = %s, session_id = %s, "
    "agent_id = %s, campaign = %s, changed = %s WHERE id = %s"
)


def reattribute(*, cluster: Cluster, windows: Sequence[Window]) -> int:
    """Attribute anew the jobs that sessions touched; return how many changed. Call it inside a transaction.

    Marks the days of each changed job for recomputation. Looks at `_CHUNK` jobs at most, to keep the transaction
    short; what is left stands in rows, for `attribute_pending`.
    """
    pending = [
        PendingAttribution(cluster=cluster, cluster_user_id=each.user_id, first=each.first_s, last=each.last_s)
        for each in _merged(windows)
    ]
    changed, left = _work_off(cluster, pending)
    PendingAttribution.objects.bulk_create(left)
    return changed


def note_adopted(*, session_ids: Collection[int], **_: object) -> None:
    """Note that the jobs of sessions which an agent was given are that agent's: for the sweep, in the caller's
    transaction, for it locks no cluster.
    """
    adopted = AgentSession.objects.filter(pk__in=session_ids)
    PendingAttribution.objects.bulk_create(
        PendingAttribution(
            cluster_id=each.cluster_id, cluster_user_id=each.cluster_user_id, last=each.ended,
            first=each.started - timedelta(seconds=CLOCK_SLACK_S),
        )
        for each in adopted
    )  # fmt: skip


def attribute_pending(*, cluster: Cluster, within_s: float = 5.0) -> int:
    """Attribute anew what `reattribute` left, a chunk a transaction; return how many jobs changed.

    Leaves what takes longer than `within_s` to the sweep.
    """
    changed, deadline = 0, time.monotonic() + within_s
    while PendingAttribution.objects.filter(cluster=cluster).exists() and time.monotonic() < deadline:
        with transaction.atomic():
            # Jobs and sessions of a cluster are written one after the other, and so are these.
            Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
            pending = list(PendingAttribution.objects.filter(cluster=cluster).order_by("pk")[:_WINDOWS])
            more, left = _work_off(cluster, pending)
            changed += more
            done = {each.pk for each in pending} - {each.pk for each in left}
            PendingAttribution.objects.filter(pk__in=done).delete()
            PendingAttribution.objects.bulk_update(left, ["after_id"])
            if more:
                _record(cluster, more)
    return changed


def _record(cluster: Cluster, changed: int) -> None:
    audit.record(
        actor=SYSTEM, verb="ingest.attribute", object_kind="cluster", object_id=cluster.pk, object_label=cluster.name,
        after={"jobs_attributed": changed},
    )  # fmt: skip


def sweep_attributions() -> int:
    """Attribute anew what is left of long sessions, of all clusters; return how many jobs changed.

    Whoever comes while another sweeps leaves it to them.
    """
    waiting = Cluster.objects.filter(pk__in=PendingAttribution.objects.values("cluster_id"))
    with leases.held("attributions", seconds=60) as holder:
        return sum(attribute_pending(cluster=cluster) for cluster in waiting) if holder else 0


def _work_off(cluster: Cluster, pending: Sequence[PendingAttribution]) -> tuple[int, list[PendingAttribution]]:
    """Attribute anew `_CHUNK` jobs at most; return how many changed, and what is left with its place moved on."""
    changed, budget, left = 0, _CHUNK, []
    for each in pending:
        jobs = Job.objects.filter(cluster=cluster, cluster_user_id=each.cluster_user_id, submit__gte=each.first)
        if each.last is not None:
            jobs = jobs.filter(submit__lte=each.last)
        rows = list(jobs.filter(id__gt=each.after_id).order_by("id").only(*_READ)[:budget]) if budget else []
        if rows:
            changed += _reattribute_rows(cluster, each.cluster_user_id, rows)
            each.after_id = rows[-1].pk
        if len(rows) == budget:
            left.append(each)
        budget -= len(rows)
    return changed, left


def _merged(windows: Sequence[Window]) -> list[Window]:
    """Join overlapping windows of a user, so that each job is looked at once."""
    merged: list[Window] = []
    for window in sorted(windows, key=lambda each: (each.user_id, each.first_s)):
        last = merged[-1] if merged else None
        if last is None or last.user_id != window.user_id or (last.last_s is not None and last.last_s < window.first_s):
            merged.append(window)
            continue
        ends = (last.last_s, window.last_s)
        end = None if None in ends else max(end for end in ends if end is not None)
        merged[-1] = Window(last.user_id, last.first_s, end)
    return merged


def _reattribute_rows(cluster: Cluster, user_id: int, rows: Sequence[Job]) -> int:
    submits = [int(job.submit.timestamp()) for job in rows]
    named = {name for job in rows for name in receipts_of(job.comment, job.extra)}
    attributor = Attributor(cluster, [user_id], min(submits), max(submits), named)
    updates, pairs, now_s = [], set[tuple[int, int]](), clock.now_s()
    for job, submit_s in zip(rows, submits, strict=True):
        found, campaign = attributor.attribute(
            user_id, submit_s, campaign=str(job.extra.get(OWN_CAMPAIGN, "")), comment=job.comment, extra=job.extra
        )
        new = (*_written(found), campaign)
        old = tuple(getattr(job, name) for name in _WRITTEN)
        if new == old:
            continue
        updates.append((*new, now_s, job.pk))
        if new[:2] != old[:2]:
            footprint = footprint_of(job, user_id)
            pairs |= touched_days(None, footprint)
    if updates:
        with connection.cursor() as cursor:
            cursor.executemany(_UPDATE, updates)
        rollups.mark_dirty(cluster, {(as_date(day), user) for day, user in pairs})
    return len(updates)


def _written(found: Attribution) -> tuple[str | float | None, ...]:
    return found.actor, found.harness, found.method, found.confidence, found.session_id, found.agent_id


def footprint_of(job: Job, user_id: int) -> Footprint:
    """Return where a stored job counts."""
    start = int(job.start.timestamp()) if job.start else None
    end = int(job.usage_end.timestamp()) if job.usage_end else None
    return Footprint(user_id, int(job.submit.timestamp()), start, end, job.elapsed_s, ())
