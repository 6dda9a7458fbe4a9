"""Drafting, approving, publishing and withdrawing reports."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.template.loader import render_to_string

from portal.core import audit, clock, live
from portal.core.errors import Conflict, NotAllowed
from portal.reports import brief, changes, contents
from portal.reports.models import OPEN, Report, ReportQuerySet, digest_of
from principals import permissions
from principals import services as principal_services
from principals.actors import Actor
from principals.models import Cluster
from telemetry import services as telemetry_services
from telemetry.models import DataGeneration
from telemetry.selectors import Period, Scope
from telemetry.selectors.stamps import stamp


def current_content(*, actor: Actor, cluster: Cluster, period: Period, fresh: bool = False) -> dict[str, Any]:
    """Return a period's report: what was published, else (or if `fresh`) as the data are now. Stores nothing."""
    permissions.require(actor, "facility.look")
    published = _versions(cluster, period).filter(state=Report.State.PUBLISHED).first()
    if published is not None and not fresh:
        require_intact(published)
        content: dict[str, Any] = published.content
        return content
    return _measure(actor, cluster, period)[0]


def build_draft(*, actor: Actor, cluster: Cluster, period: Period) -> Report:
    """Draft a period's report, or bring its draft up to date, which takes back its approval."""
    permissions.require(actor, "facility.run")
    content, measured_on = _measure(actor, cluster, period)
    built = measured_on | {
        "content": content, "digest": digest_of(content), "built": clock.now(), "built_by": actor.ref.label,
    }  # fmt: skip
    versions = _versions(cluster, period)
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)  # one draft a period
        open_one = versions.filter(state__in=OPEN)
        before = open_one.values("state", "digest", "approved_by").first()
        if not open_one.update(**built, state=Report.State.DRAFT, approved=None, approved_by=""):
            version = (versions.aggregate(newest=Max("version"))["newest"] or 0) + 1
            Report.objects.create(cluster=cluster, first=period.first, last=period.last, version=version, **built)
        report = versions.select_related("cluster").get(state=Report.State.DRAFT)
        _record(actor, report, "report.draft", before=before)
    return report


def approve(*, actor: Actor, report: Report, digest: str) -> Report:
    """Approve the draft whose content has that digest. A person does: who drafted it may.

    Errors: `NotAllowed`, Conflict `not_a_draft`, `report_changed`, `period_not_over`, `drafted_early`,
    `compared_with_draft`.
    """
    permissions.require(actor, "facility.run")
    if not actor.is_person:
        raise NotAllowed("A report is approved by a person.", code="person_needed", remedy="Approve it on Reports.")
    with transaction.atomic():
        now = _open_version(report, digest)
        if now.state != Report.State.DRAFT:
            raise Conflict("This version is not a draft.", code="not_a_draft", remedy="Open the period again.")
        _require_whole(now)
        _require_published_before(now)
        draft = Report.objects.filter(pk=report.pk, state=Report.State.DRAFT, digest=digest)
        draft.update(state=Report.State.APPROVED, approved=clock.now(), approved_by=actor.ref.label)
        report.refresh_from_db()
        _record(actor, report, "report.approve")
    return report


def publish(*, actor: Actor, report: Report, digest: str) -> Report:
    """Publish the approved version whose content has that digest; a version published before is superseded.

    Errors: Conflict `not_approved`, `not_a_draft`, `report_changed` (it was rebuilt since it was read),
    `report_altered`, `compared_with_draft`, `periods_overlap`: from two sums that differ by a day, what fewer than five
    people did that day could be had.
    """
    permissions.require(actor, "facility.run")
    with transaction.atomic():
        now = _open_version(report, digest)
        if now.state != Report.State.APPROVED:
            raise Conflict("This version is not approved.", code="not_approved", remedy="Approve it first.")
        _require_published_before(now)
        _require_alone(now)
        versions = _versions(now.cluster, now.period)
        versions.filter(state=Report.State.PUBLISHED).update(state=Report.State.SUPERSEDED)
        approved = versions.filter(pk=report.pk, state=Report.State.APPROVED, digest=digest)
        approved.update(state=Report.State.PUBLISHED, published=clock.now(), published_by=actor.ref.label)
        report.refresh_from_db()
        _record(actor, report, "report.publish")
        _tell_subscribers(report)
    return report


def _tell_subscribers(report: Report) -> None:
    """Send the short form to those who asked for it; it says no more than the report that they may read."""
    people = principal_services.subscribers("report_published")
    if not people:
        return
    short = brief.of(report.content)
    title = f"{short['title']}: the report of {short['cluster']} is published"
    text = render_to_string("reports/brief.txt", {"brief": short})
    principal_services.notify(
        people=people, kind="report_published", title=title, text=text, url=report.get_absolute_url(),
        key=f"report_published:{report.pk}",
    )  # fmt: skip


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


def is_behind(actor: Actor, report: Report) -> bool:
    """Say whether data of a version's own days changed since it was measured.

    Where the whole cluster's did not, that is one query. Of a version that was measured without a stamp, any data of
    the cluster count.
    """
    if DataGeneration.objects.of(report.cluster) == report.generation:
        return False
    return not report.stamp or stamp(Scope(actor, report.cluster, report.period)) != report.stamp


def with_draft_before(report: Report) -> dict[str, Any]:
    """Return an open version's content beside the draft of the period before, where nothing is published of that.

    For those who work on both: a draft's numbers are not published by what is counted from them, so neither what is
    stored nor its digest knows of this.
    """
    content: dict[str, Any] = report.content
    if not report.is_open or "period" in content.get("before", {}):
        return content
    previous = report.period.previous()
    draft = _versions(report.cluster, previous).filter(state__in=OPEN).first()
    if draft is None:
        return content
    return changes.compare(
        content, draft, report.period, sharing=_find_sharing(report.cluster, previous, of=report.period)
    )


def require_intact(report: Report) -> None:
    """Refuse a version whose content was changed past this service. Errors: Conflict `report_altered`."""
    if not report.is_intact:
        raise Conflict(
            "The content of this version is not what was stored: its digest differs.", code="report_altered",
            remedy="Bring a draft up to date; withdraw what is published." if not report.is_open
            else "Bring the draft up to date and read it again.",
        )  # fmt: skip


def _versions(cluster: Cluster, period: Period) -> ReportQuerySet:
    return Report.objects.filter(cluster=cluster, first=period.first, last=period.last)


def _measure(actor: Actor, cluster: Cluster, period: Period) -> tuple[dict[str, Any], dict[str, Any]]:
    if not telemetry_services.catch_up(cluster=cluster):
        raise Conflict("The rollups are being recomputed.", code="rollups_busy", retry_after_s=60,
                       remedy="Try again in a minute.")  # fmt: skip
    scope = Scope(actor=actor, cluster=cluster, period=period)
    # Before measuring: what changes meanwhile makes it old.
    measured_on = {"generation": DataGeneration.objects.of(cluster), "stamp": stamp(scope)}
    content = contents.build(scope).as_json()
    sharing = _find_sharing(cluster, period.previous(), of=period)
    before = _versions(cluster, period.previous()).filter(state=Report.State.PUBLISHED).first()
    return changes.compare(content, before, period, sharing=sharing), measured_on


def _open_version(report: Report, digest: str) -> Report:
    """Return a version as it is now, locked, that is still being made and is what was read."""
    Cluster.objects.select_for_update(no_key=True).get(pk=report.cluster_id)
    now = Report.objects.select_related("cluster").get(pk=report.pk)
    if not now.is_open:
        raise Conflict("This version is not a draft.", code="not_a_draft", remedy="Open the period again.")
    if now.digest != digest:
        raise Conflict("The draft was rebuilt since you read it.", code="report_changed", remedy="Read it again.")
    require_intact(now)
    return now


def _require_whole(report: Report) -> None:
    if not report.is_over:
        remedy = "Approve it when the period has ended."
        raise Conflict("The period is not over.", code="period_not_over", remedy=remedy)
    if report.built < report.ends:
        remedy = "Bring it up to date and read it again."
        raise Conflict("It was measured before the period was over.", code="drafted_early", remedy=remedy)


def _require_published_before(report: Report) -> None:
    """Refuse what counts its changes from a draft: nobody approved of that one's numbers."""
    if report.content.get("before", {}).get("state", Report.State.PUBLISHED) != Report.State.PUBLISHED:
        raise Conflict(
            "Its changes are counted from a draft.", code="compared_with_draft",
            remedy="Bring it up to date and read it again: it is held against what is published alone.",
        )  # fmt: skip


def _require_alone(report: Report) -> None:
    """Refuse what shares days with another published report, in itself or in what either is held against."""
    if other := _find_sharing(report.cluster, report.period, of=report.period):
        raise _sharing("It", other, "Keep it as a draft, or choose days that nothing was published of.")
    before = _compared_with(report.content)
    if before and (other := _find_sharing(report.cluster, before, of=report.period)):
        words = f"{_capital(before.title)}, which it is held against,"
        raise _sharing(words, other, "Bring the draft up to date: it is held against nothing then.")


def _sharing(what: str, other: Period, remedy: str) -> Conflict:
    return Conflict(
        f"{what} shares days with what the report of {other.title} shows, which was published: from sums of both, what "
        "fewer than five people did could be had.", code="periods_overlap", remedy=remedy,
    )  # fmt: skip


def _find_sharing(cluster: Cluster, shown: Period, *, of: Period) -> Period | None:
    """Return the period of a report that was ever published and shows some of these days, and not just them.

    But that of `of`. A withdrawn one counts: who read it has its numbers still.
    """
    published = Report.objects.filter(cluster=cluster, published__isnull=False)
    others = published.exclude(first=of.first, last=of.last).order_by("first")
    for first, last, before in others.values_list("first", "last", "content__before__period"):
        theirs = [Period(first, last)] + ([Period.parse(before)] if before else [])
        if any(each != shown and each.first <= shown.last and shown.first <= each.last for each in theirs):
            return theirs[0]
    return None


def _compared_with(content: Mapping[str, Any]) -> Period | None:
    name = content.get("before", {}).get("period", "")
    return Period.parse(name) if name else None


def _capital(title: str) -> str:
    return title[0].upper() + title[1:]


def _record(
    actor: Actor, report: Report, verb: str, reason: str = "", before: Mapping[str, Any] | None = None
) -> None:  # fmt: skip
    audit.record(
        actor=actor.ref, verb=verb, object_kind="report", object_id=report.pk, object_label=str(report), before=before,
        after={"state": report.state, "digest": report.digest}, reason=reason,
    )  # fmt: skip
    payload = {"cluster": report.cluster.name, "period": report.period.name, "state": report.state}
    live.announce([live.News(name=verb, topics=("facility:telemetry",), payload=payload)])
