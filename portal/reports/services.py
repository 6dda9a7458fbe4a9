"""Drafting, publishing and superseding monthly reports."""

from typing import Any

from django.db import transaction
from django.db.models import Max

from portal.core import audit, clock, live
from portal.core.errors import Conflict
from portal.reports import monthly
from portal.reports.models import Report, digest_of
from principals import permissions
from principals.actors import Actor
from principals.models import Cluster
from telemetry import services as telemetry_services
from telemetry.models import DataGeneration
from telemetry.selectors import Period, Scope


def current_content(*, actor: Actor, cluster: Cluster, period: Period, fresh: bool = False) -> dict[str, Any]:
    """Return a month's report as JSON: what was published, else (or if `fresh`) as the data are now. Stores nothing."""
    permissions.require(actor, "facility.look")
    published = Report.objects.filter(cluster=cluster, month=period.first, state=Report.State.PUBLISHED).first()
    if published is not None and not fresh:
        content: dict[str, Any] = published.content
        return content
    return _measure(actor, cluster, period)[0]


def build_draft(*, actor: Actor, cluster: Cluster, period: Period) -> Report:
    """Draft a month's report, or bring its draft up to date."""
    permissions.require(actor, "facility.run")
    content, generation = _measure(actor, cluster, period)
    built = {
        "content": content, "digest": digest_of(content), "generation": generation, "built": clock.now(),
        "built_by": actor.ref.label,
    }  # fmt: skip
    versions = Report.objects.filter(cluster=cluster, month=period.first)
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)  # one draft a month
        if not versions.filter(state=Report.State.DRAFT).update(**built):
            version = (versions.aggregate(newest=Max("version"))["newest"] or 0) + 1
            Report.objects.create(cluster=cluster, month=period.first, version=version, **built)
        report = versions.select_related("cluster").get(state=Report.State.DRAFT)
        _record(actor, report, "report.draft")
    return report


def publish(*, actor: Actor, report: Report, digest: str) -> Report:
    """Publish the draft whose content has that digest; a version published before is superseded.

    Errors: Conflict `not_a_draft`, `report_changed` (the draft was rebuilt since it was read), `month_not_over`.
    """
    permissions.require(actor, "facility.run")
    if not report.is_over:
        raise Conflict("The month is not over.", code="month_not_over", remedy="Publish it when the month has ended.")
    now = clock.now()
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=report.cluster_id)
        _require_draft(report, digest)
        same_month = Report.objects.filter(cluster=report.cluster_id, month=report.month)
        same_month.filter(state=Report.State.PUBLISHED).update(state=Report.State.SUPERSEDED)
        same_month.filter(pk=report.pk, state=Report.State.DRAFT).update(
            state=Report.State.PUBLISHED, published=now, published_by=actor.ref.label
        )
        report.refresh_from_db()
        _record(actor, report, "report.publish")
    return report


def supersede(*, actor: Actor, report: Report, reason: str) -> Report:
    """Withdraw a published report, with a reason; its content stays. Errors: Conflict `not_published`."""
    permissions.require(actor, "facility.run")
    with transaction.atomic():
        published = Report.objects.filter(pk=report.pk, state=Report.State.PUBLISHED)
        if not published.update(state=Report.State.SUPERSEDED):
            raise Conflict("This version is not published.", code="not_published")
        report.refresh_from_db()
        _record(actor, report, "report.supersede", reason)
    return report


def _measure(actor: Actor, cluster: Cluster, period: Period) -> tuple[dict[str, Any], int]:
    if not telemetry_services.catch_up(cluster=cluster):
        raise Conflict("The rollups are being recomputed.", code="rollups_busy", retry_after_s=60,
                       remedy="Try again in a minute.")  # fmt: skip
    generation = DataGeneration.objects.of(cluster)  # before measuring: what changes meanwhile makes it old
    return monthly.build(Scope(actor=actor, cluster=cluster, period=period)).as_json(), generation


def _require_draft(report: Report, digest: str) -> None:
    now = Report.objects.get(pk=report.pk)
    if now.state != Report.State.DRAFT:
        raise Conflict("This version is not a draft.", code="not_a_draft", remedy="Open the month again.")
    if now.digest != digest:
        raise Conflict("The draft was rebuilt since you read it.", code="report_changed", remedy="Read it again.")


def _record(actor: Actor, report: Report, verb: str, reason: str = "") -> None:
    audit.record(
        actor=actor.ref, verb=verb, object_kind="report", object_id=report.pk, object_label=str(report),
        after={"state": report.state, "digest": report.digest}, reason=reason,
    )  # fmt: skip
    payload = {"cluster": report.cluster.name, "month": f"{report.month:%Y-%m}", "state": report.state}
    live.announce([live.News(name=verb, topics=("facility:telemetry",), payload=payload)])
