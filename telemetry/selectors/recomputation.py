"""What the rollups of a day should say, computed from its jobs by grouped queries.

All spans are half-open [lo, hi) in UTC epoch seconds. Of a job that ran from `start` to `usage_end`, the elapsed time
due at an instant t is `elapsed_s * (t - start) // (usage_end - start)`; a span's part is the difference of two such
dues, so that the parts of any cut sum to the elapsed time exactly (as `telemetry.engine.usage.prorate` does it).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from typing import Any

from django.db.models import (
    Aggregate,
    BigIntegerField,
    Case,
    Expression,
    ExpressionWrapper,
    F,
    Max,
    Q,
    Sum,
    Value,
    When,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Greatest, Least

from telemetry.engine import usage
from telemetry.engine.slurm.values import FAILED_STATES
from telemetry.models import Job, JobState
from telemetry.models.jobs import LONG_S, JobQuerySet

DAY_KEY = ("cluster_user_id", "lab_id", "partition", "qos", "actor", "harness")
HOUR_KEY = ("partition", "actor", "harness")
HELD = {"core_s": "cpus", "node_s": "nodes", "gpu_s": "gpus"}  # what a job holds, by the sum it makes
LOST = (*FAILED_STATES, JobState.TIMEOUT, JobState.CANCELLED)

ENDED = (
    "ended", "ended_never_started", "ended_cancelled", "ended_failed", "ended_timeout", "ended_wall_s", "ended_node_s",
    "ended_wait_node_s", "ended_core_s", "ended_lost_core_s", "wait_s", "waits", "max_cores",
)  # fmt: skip
DAY_SUMS = ("wall_s", "core_s", "node_s", "gpu_s", "submissions", *ENDED)
DAY_COLUMNS = ("cluster", "day", *DAY_KEY, *DAY_SUMS)
HOUR_SUMS = ("submissions", *HELD)
HOUR_COLUMNS = ("cluster", *HOUR_KEY, "hour", *HOUR_SUMS)

Line = tuple[Any, ...]
Buckets = list[tuple[int, int]]


def _whole(expression: Combinable | Expression) -> ExpressionWrapper[Any]:
    return ExpressionWrapper(expression, output_field=BigIntegerField())


def _later(field: str, instant: int) -> Greatest:
    return Greatest(_whole(F(field)), _whole(Value(instant)), output_field=BigIntegerField())


def _earlier(field: str, instant: int) -> Least:
    return Least(_whole(F(field)), _whole(Value(instant)), output_field=BigIntegerField())


def elapsed_within(lo: int, hi: int) -> ExpressionWrapper[Any]:
    """Build the seconds that a job ran within [lo, hi). Only for jobs that `ran_within(lo, hi)`."""
    span = _whole(F("usage_end")) - _whole(F("start"))

    def due(instant: Expression) -> Combinable:
        return F("elapsed_s") * (instant - _whole(F("start"))) / span

    return _whole(_whole(due(_earlier("usage_end", hi))) - _whole(due(_later("start", lo))))


def ran_within(jobs: JobQuerySet, lo: int, hi: int) -> JobQuerySet:
    """Restrict to jobs that held their resources at some instant of [lo, hi).

    What ended long after was long itself: without that condition every job since would have to be looked at. Each of
    the two alternatives is whole in itself, so that each finds its index.
    """
    soon, long_after = Q(usage_end__gt=lo, usage_end__lt=hi + LONG_S), Q(is_long=True, usage_end__gt=lo)
    return jobs.filter(soon | long_after, usage_end__gt=F("start"), start__lt=hi)


def usage_sums(lo: int, hi: int) -> dict[str, Sum]:
    """Build the aggregates of wall, core, node and GPU seconds within [lo, hi)."""
    piece = elapsed_within(lo, hi)
    return {"wall_s": Sum(piece)} | {name: Sum(_whole(piece * F(what))) for name, what in HELD.items()}


def _ended_sums() -> dict[str, Aggregate]:
    started, ran = Q(start__isnull=False), Q(start__isnull=False, elapsed_s__gt=0)
    wait = Greatest(_whole(_whole(F("start")) - _whole(F("submit"))), _whole(Value(0)), output_field=BigIntegerField())
    core = _whole(F("elapsed_s") * F("cpus"))
    tasks = "array_tasks"
    sums: dict[str, Aggregate] = {
        "ended": Sum(tasks, filter=started, default=0),
        "ended_never_started": Sum(tasks, filter=~started, default=0),
        "ended_cancelled": Sum(tasks, filter=Q(state=JobState.CANCELLED), default=0),
        "ended_failed": Sum(tasks, filter=Q(state__in=FAILED_STATES), default=0),
        "ended_timeout": Sum(tasks, filter=Q(state=JobState.TIMEOUT), default=0),
        "ended_wall_s": Sum("elapsed_s", filter=started, default=0),
        "ended_node_s": Sum(_whole(F("elapsed_s") * F("nodes")), filter=ran, default=0),
        "ended_wait_node_s": Sum(_whole(wait * F("nodes")), filter=ran, default=0),
        "ended_core_s": Sum(core, filter=started, default=0),
        "ended_lost_core_s": Sum(core, filter=started & Q(state__in=LOST), default=0),
        "wait_s": Sum(_whole(wait * F(tasks)), filter=started, default=0),
        "waits": Sum(tasks, filter=started, default=0),
        "max_cores": Max("cpus", filter=started, default=0),
    }
    return {name: sums[name] for name in ENDED}


def _runtime_bucket() -> Case:
    edges = (When(elapsed_s__lte=edge, then=Value(bucket)) for bucket, edge in enumerate(usage.RUNTIME_EDGES_S))
    return Case(*edges, default=Value(len(usage.RUNTIME_EDGES_S)))


def day_rows(cluster_id: int, day: date, user_ids: Sequence[int]) -> tuple[list[Line], dict[Line, Buckets]]:
    """Compute the rollups of some users on one UTC day as lines of `DAY_COLUMNS`, and their runtimes; four queries.

    The histograms are by the lines' key (`DAY_KEY`): (bucket, jobs) each.
    """
    lo = epoch_of(day)
    hi = lo + usage.DAY_S
    jobs = Job.objects.filter(cluster_id=cluster_id, cluster_user_id__in=user_ids)
    # `usage_end` of a job that has ended is its end: the condition on both lets the index find the day.
    ended = jobs.filter(end__gte=lo, end__lt=hi, usage_end__gte=lo, usage_end__lt=hi)
    ran = ran_within(jobs, lo, hi).values_list(*DAY_KEY).annotate(**usage_sums(lo, hi))
    submitted = jobs.filter(submit__gte=lo, submit__lt=hi).values_list(*DAY_KEY).annotate(n=Sum("array_tasks"))
    sums: dict[Line, list[int]] = defaultdict(lambda: [0] * len(DAY_SUMS))
    place = 0
    for part, width in ((ran, 4), (submitted, 1), (ended.values_list(*DAY_KEY).annotate(**_ended_sums()), len(ENDED))):
        for row in part:
            sums[row[: len(DAY_KEY)]][place : place + width] = row[len(DAY_KEY) :]
        place += width
    return [(cluster_id, day, *key, *values) for key, values in sums.items()], _histograms(ended)


def _histograms(ended: JobQuerySet) -> dict[Line, Buckets]:
    buckets = (
        ended.filter(start__isnull=False)
        .annotate(bucket=_runtime_bucket())
        .values_list(*DAY_KEY, "bucket")
        .annotate(jobs=Sum("array_tasks"))
    )
    found: dict[Line, Buckets] = defaultdict(list)
    for row in buckets:
        found[row[: len(DAY_KEY)]].append((row[-2], row[-1]))
    return found


def hour_rows(cluster_id: int, day: date) -> list[Line]:
    """Compute the hourly rollups of a cluster on one UTC day as lines of `HOUR_COLUMNS`; three queries."""
    lo = epoch_of(day)
    hi = lo + usage.DAY_S
    jobs = Job.objects.filter(cluster_id=cluster_id)
    hours: dict[Line, dict[str, int]] = defaultdict(lambda: dict.fromkeys(HOUR_SUMS, 0))
    submit = _whole(F("submit"))
    submitted = (
        jobs.filter(submit__gte=lo, submit__lt=hi)
        .annotate(hour=_whole(submit - submit % usage.HOUR_S))
        .values_list(*HOUR_KEY, "hour")
        .annotate(submissions=Sum("array_tasks"))
    )
    for *key, hour, submissions in submitted:
        hours[*key, hour]["submissions"] += submissions
    _add_steady(hours, ran_within(jobs, lo, hi), lo, hi)
    _add_suspended(hours, ran_within(jobs, lo, hi), lo, hi)
    return [(cluster_id, *key, *(sums[name] for name in HOUR_SUMS)) for key, sums in hours.items()]


def _add_steady(hours: dict[Line, dict[str, int]], jobs: JobQuerySet, lo: int, hi: int) -> None:
    """Add jobs that were never suspended, grouped by the first and the last hour they touch.

    All jobs of a group hold what they hold throughout the hours between, so one row of sums stands for them all.
    """
    first, last = _later("start", lo), _earlier("usage_end", hi)
    opening, closing = _whole(first - first % usage.HOUR_S), _whole(last - 1 - (last - 1) % usage.HOUR_S)
    groups = (
        jobs.filter(elapsed_s=_whole(_whole(F("usage_end")) - _whole(F("start"))))
        .annotate(opening=opening, closing=closing)
        .values(*HOUR_KEY, "opening", "closing")
        .annotate(**{f"{name}_{part}": Sum(_whole(F(what) * seconds)) for name, what in HELD.items() for part, seconds
                     in {"whole": last - first, "head": opening + usage.HOUR_S - first, "tail": last - closing,
                         "between": _whole(Value(usage.HOUR_S))}.items()})
    )  # fmt: skip
    for group in groups:
        key = tuple(group[name] for name in HOUR_KEY)
        for hour in range(group["opening"], group["closing"] + 1, usage.HOUR_S):
            if group["opening"] == group["closing"]:
                part = "whole"
            else:
                part = {group["opening"]: "head", group["closing"]: "tail"}.get(hour, "between")
            for name in HELD:
                hours[*key, hour][name] += group[f"{name}_{part}"]


def _add_suspended(hours: dict[Line, dict[str, int]], jobs: JobQuerySet, lo: int, hi: int) -> None:
    """Add jobs whose elapsed time is not their span, one by one: there are few."""
    span = _whole(_whole(F("usage_end")) - _whole(F("start")))
    columns = (*HOUR_KEY, "start", "usage_end", "elapsed_s", *HELD.values())
    for *key, start, usage_end, elapsed_s, cpus, nodes, gpus in jobs.exclude(elapsed_s=span).values_list(*columns):
        pieces = list(usage.split_by_hour(int(start.timestamp()), int(usage_end.timestamp())))
        for hour, seconds in usage.prorate(elapsed_s, pieces):
            if lo <= hour < hi and seconds:
                sums = hours[*key, hour]
                sums["core_s"] += seconds * cpus
                sums["node_s"] += seconds * nodes
                sums["gpu_s"] += seconds * gpus


def epoch_of(day: date) -> int:
    """Return the epoch second at which a UTC day begins."""
    return (day.toordinal() - date(1970, 1, 1).toordinal()) * usage.DAY_S
