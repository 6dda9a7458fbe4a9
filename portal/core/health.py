"""Whether this process lives (`/healthz`), whether it can serve (`/readyz`), and its figures (`/metrics`)."""

import hmac
from collections.abc import Callable, Iterable

from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily

from portal.core import audit, disk, live
from portal.core.models import AuditEvent, LiveEvent

# Each app adds its own figures; labels stay bounded (no user, job or agent names).
MetricSource = Callable[[], Iterable[GaugeMetricFamily]]
_sources: list[MetricSource] = []


def register_metrics(source: MetricSource) -> None:
    """Add a source of figures to `/metrics`."""
    if source not in _sources:
        _sources.append(source)


def healthz(request: HttpRequest) -> HttpResponse:
    """Answer at all."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> HttpResponse:
    """Answer 200 where the database answers, is migrated and has room to grow, else 503 with what is missing.

    In the services profile the database's disk is another host's, which this process cannot see.
    """
    from django.db.migrations.executor import MigrationExecutor

    checks = {"database": "ok", "migrations": "ok"}
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            checks["migrations"] = "pending: run manage.py migrate"
    except DatabaseError as error:
        checks["database"] = "no room left" if disk.is_full(error) else "no answer"
    if settings.EMBEDDED:
        checks["disk"] = disk.want_of_room() or "ok"
    ready = all(state == "ok" for state in checks.values())
    return JsonResponse({"status": "ok" if ready else "not ready", "checks": checks}, status=200 if ready else 503)


def _kernel_metrics() -> Iterable[GaugeMetricFamily]:
    yield GaugeMetricFamily(
        "gatehouse_audit_unsealed", "Audit rows not chained yet", AuditEvent.objects.filter(seq=None).count()
    )
    yield GaugeMetricFamily("gatehouse_audit_seq", "Newest link of the audit chain", audit.head()[0])
    yield GaugeMetricFamily("gatehouse_live_seq", "Newest position of the live stream", live.newest_seq())
    yield GaugeMetricFamily(
        "gatehouse_live_unnumbered", "Live events not numbered yet", LiveEvent.objects.filter(seq=None).count()
    )


class _Collector:
    def collect(self) -> Iterable[GaugeMetricFamily]:
        for source in (_kernel_metrics, *_sources):
            yield from source()


def metrics(request: HttpRequest) -> HttpResponse:
    """Give the figures to whoever knows METRICS_TOKEN, or to staff who are signed in."""
    token = settings.METRICS_TOKEN
    sent = request.META.get("HTTP_AUTHORIZATION", "").removeprefix("Bearer ")
    user = getattr(request, "user", None)
    allowed = bool(getattr(user, "is_research_computing", False)) or (
        bool(token) and hmac.compare_digest(sent.encode(), token.encode())
    )
    if not allowed:
        return HttpResponse("Send METRICS_TOKEN as a bearer token, or sign in as staff.\n", status=403)
    registry = CollectorRegistry()
    registry.register(_Collector())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
