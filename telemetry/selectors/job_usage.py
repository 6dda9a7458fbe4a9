"""What jobs used within a span, as conditions and aggregates of a query.

Spans are half-open [lo, hi) in UTC epoch seconds. Of a job that ran from `start` to `usage_end`, the elapsed time due
at an instant t is `elapsed_s * (t - start) // (usage_end - start)`; a span's part is the difference of two such dues,
so that the parts of any cut sum to the elapsed time exactly.
"""

from __future__ import annotations

from typing import Any, Final

from django.db.models import BigIntegerField, Expression, ExpressionWrapper, F, Q, Sum, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Greatest, Least

from telemetry.models.jobs import LONG_S, JobQuerySet

HELD: Final = {"core_s": "cpus", "node_s": "nodes", "gpu_s": "gpus"}  # what a job holds, by the sum it makes


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
