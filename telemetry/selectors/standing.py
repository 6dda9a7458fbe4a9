"""How some jobs stand now, by the ids people write: what a wait begins with, and goes by after a gap."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, Final

from django.db.models import Q

from portal.core import clock
from portal.core.errors import Conflict
from principals.actors import Actor
from principals.models import Cluster
from telemetry.engine.slurm.job_ids import JobId
from telemetry.engine.waiting import SAME_JOB_S, Record, Standing, is_whole, pick, stand
from telemetry.models import Job

MOST_PARTS: Final = 128  # of a heterogeneous job (slurm.h, MAX_HET_JOB_COMPS): their numbers follow each other
_SHOWN: Final = ("cluster", "cluster_user", "account", "lab")
_COLUMNS: Final = ("pk", "job_id", "state", "submit", "end", "exit_code", "exit_signal", "array_tasks", "changed")


@dataclass(frozen=True, slots=True)
class JobStanding:
    """What was asked for, where it is, and how it stands; `job` is the record itself, of several the worst that is
    over. None, None, None: nobody knows of it, or not this actor."""

    asked: JobId
    cluster: Cluster | None
    standing: Standing | None
    job: Job | None


def find_standing(actor: Actor, asked: Sequence[JobId], *, cluster: str = "") -> list[JobStanding]:
    """Return how jobs stand, in the order asked, among those that this actor may hear of: an agent its owner's alone.

    Errors: `Conflict` where a number is known on several clusters and none was named.
    """
    visible = Job.objects.visible_to(actor)
    if actor.agent is not None:
        visible = visible.filter(cluster_user__user=actor.user)
    if cluster:
        visible = visible.filter(cluster__in=Cluster.objects.named(cluster))
    numbers = {each.job for each in asked if each.job < 2**63}
    known: dict[int, list[Job]] = defaultdict(list)
    # Of an array the record of its waiting tasks, which becomes that of the last one, has the array's own number.
    for job in visible.filter(raw_id__in=numbers).select_related(*_SHOWN).order_by("submit"):
        before = known[job.raw_id][:1]
        if before and before[0].cluster_id != job.cluster_id:
            raise Conflict(
                f"Job {job.raw_id} is known on {before[0].cluster.name} and on {job.cluster.name}.",
                code="cluster_ambiguous", remedy="Name the cluster.",
            )  # fmt: skip
        known[job.raw_id].append(job)
    arrays: dict[int, Parts] = {}
    return [_standing(each, known[each.job], arrays) for each in asked]


@dataclass(frozen=True, slots=True)
class Parts:
    """The records of one number with their keys, and when the last of them changed."""

    keys: dict[Record, int]
    last: datetime


def _standing(asked: JobId, known: Sequence[Job], arrays: dict[int, Parts]) -> JobStanding:
    """Return how one stands, given the records of its number, the newest last.

    `arrays`: whole ones that were read already, by their newest records: many may ask for parts of one.
    """
    if not known:
        return JobStanding(asked, None, None, None)
    first, is_task = known[-1], asked.array_task is not None
    parts = arrays.get(first.pk) if not is_task else None
    if parts is None:
        parts = _read_parts(asked, known)
        if first.array_job_id and not is_task:
            arrays[first.pk] = parts
    records = pick(asked, parts.keys)
    standing = stand(records, now_s=clock.now_s())
    if standing and standing.is_over and first.array_job_id and not is_task:
        quiet_s = int((clock.now() - parts.last).total_seconds())
        tasks = sum(standing.counts.values())
        if not is_whole(asked, tasks, submit_line=first.submit_line, quiet_s=quiet_s):
            standing = standing._replace(is_over=False, status=None)
    shown = records[0] if len(records) == 1 else standing.worst if standing else None
    job = _load(parts.keys[shown], known) if shown else None
    return JobStanding(asked, first.cluster if standing else None, standing, job)


def _read_parts(asked: JobId, known: Sequence[Job]) -> Parts:
    keys: dict[Record, int] = {}
    last = known[-1].changed
    for pk, job_id, state, submit, end, code, signal, tasks, changed in _rows(asked, known):
        end_s = int(end.timestamp()) if end else None
        keys[Record(job_id, state, int(submit.timestamp()), end_s, code or 0, signal or 0, tasks)] = pk
        last = max(last, changed)
    return Parts(keys, last)


def _rows(asked: JobId, known: Sequence[Job]) -> Iterable[tuple[Any, ...]]:
    """Return `_COLUMNS` of all records that may be part of what was asked for: a query for arrays and parts alone."""
    first = known[-1]
    since = first.submit - timedelta(seconds=SAME_JOB_S)
    if first.array_job_id and asked.array_task is not None:
        # A task that has not begun stands in the record that has the array's own number.
        own = Q(job_id=f"{asked.job}_{asked.array_task}") | Q(raw_id=asked.job)
        parts = own & Q(array_job_id=first.array_job_id)
    elif first.array_job_id:
        parts = Q(array_job_id=first.array_job_id)
    elif "+" in first.job_id:
        numbers = (asked.job, asked.job + MOST_PARTS)
        parts = Q(raw_id__range=numbers, job_id__startswith=f"{asked.job}+")
    else:
        whose = (job for job in known if job.cluster_user_id == first.cluster_user_id and job.submit >= since)
        return map(attrgetter(*_COLUMNS), whose)
    same = Job.objects.filter(cluster=first.cluster_id, cluster_user=first.cluster_user_id, submit__gte=since)
    return same.filter(parts).values_list(*_COLUMNS)


def _load(pk: int, known: Sequence[Job]) -> Job | None:
    job = next((job for job in known if job.pk == pk), None)
    return job or Job.objects.select_related(*_SHOWN).filter(pk=pk).first()
