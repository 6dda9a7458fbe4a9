"""A draft is approved by a person who read it; what is rebuilt has to be approved again."""

from typing import Any

import pytest
import time_machine

from portal.core import leases
from portal.core.errors import Conflict, NotAllowed
from portal.core.models import AuditEvent
from portal.reports import services
from portal.reports.models import Report
from principals.actors import SYSTEM_ACTOR
from telemetry.selectors import Period
from tests import factories
from tests.conftest import Cast, sign_in
from tests.telemetry.job_rows import DAY_0, make_job

pytestmark = pytest.mark.django_db
JULY = Period.month(2026, 7)
AUGUST_1 = DAY_0 + 31 * 86_400 + 4 * 3600


@pytest.fixture(autouse=True)
def _august() -> Any:
    with time_machine.travel(AUGUST_1, tick=False):
        yield


@pytest.fixture
def staff(cast: Cast) -> Any:
    return factories.actor_of(cast.staff)


def build(actor: Any, cast: Cast, period: Period = JULY) -> Report:
    return services.build_draft(actor=actor, cluster=cast.cluster, period=period)


def approve(actor: Any, report: Report) -> Report:
    return services.approve(actor=actor, report=report, digest=report.digest)


def publish(actor: Any, report: Report) -> Report:
    return services.publish(actor=actor, report=report, digest=report.digest)


def test_who_drafted_it_may_approve_it_and_is_named(cast: Cast, staff: Any) -> None:
    report = approve(staff, build(staff, cast))
    assert (report.state, report.approved_by) == ("approved", cast.staff.username)
    assert report.approved is not None and report.approved.timestamp() == AUGUST_1
    event = AuditEvent.objects.get(verb="report.approve")
    assert event.payload["after"] == {"state": "approved", "digest": report.digest}


def test_nothing_is_published_that_nobody_approved(cast: Cast, staff: Any) -> None:
    with pytest.raises(Conflict) as refused:
        publish(staff, build(staff, cast))
    assert refused.value.code == "not_approved"


def test_rebuilding_takes_the_approval_back(cast: Cast, staff: Any) -> None:
    approved = approve(staff, build(staff, cast))
    again = build(staff, cast)
    assert (again.pk, again.state, again.approved, again.approved_by) == (approved.pk, "draft", None, "")
    event = AuditEvent.objects.filter(verb="report.draft").latest("pk")
    assert event.payload["before"] == {
        "state": "approved", "digest": approved.digest, "approved_by": cast.staff.username
    }  # fmt: skip
    with pytest.raises(Conflict) as refused:
        publish(staff, approved)
    assert refused.value.code == "not_approved"


def test_only_what_was_read_is_approved(cast: Cast, staff: Any) -> None:
    read = build(staff, cast)
    make_job(cast.cluster.cluster_users.first(), cast.lab, submit=DAY_0)
    build(staff, cast)
    with pytest.raises(Conflict) as refused:
        approve(staff, read)
    assert refused.value.code == "report_changed"


def test_a_draft_is_approved_once(cast: Cast, staff: Any) -> None:
    report = approve(staff, build(staff, cast))
    with pytest.raises(Conflict) as refused:
        approve(staff, report)
    assert refused.value.code == "not_a_draft"


def test_what_was_measured_before_the_end_is_measured_again_first(cast: Cast, staff: Any) -> None:
    with time_machine.travel(AUGUST_1 - 86_400, tick=False):
        early = build(staff, cast)
    with pytest.raises(Conflict) as refused:
        approve(staff, early)
    assert refused.value.code == "drafted_early"
    assert approve(staff, build(staff, cast)).state == "approved"


@pytest.mark.parametrize("role", ["pi", "infosec", "auditor"])
def test_others_may_not_approve(cast: Cast, staff: Any, role: str) -> None:
    report = build(staff, cast)
    with pytest.raises(NotAllowed):
        approve(factories.actor_of(getattr(cast, role)), report)


def test_the_calendar_approves_nothing(cast: Cast) -> None:
    with pytest.raises(NotAllowed) as refused:
        approve(SYSTEM_ACTOR, build(SYSTEM_ACTOR, cast))
    assert refused.value.code == "person_needed"


def test_members_read_no_approved_version(cast: Cast, staff: Any) -> None:
    report = approve(staff, build(staff, cast))
    assert sign_in(cast.pi).get(report.get_absolute_url()).status_code == 404


def test_periods_that_share_days_are_not_both_published(cast: Cast, staff: Any) -> None:
    july = publish(staff, approve(staff, build(staff, cast)))
    week = approve(staff, build(staff, cast, Period.parse("2026-W28")))
    with pytest.raises(Conflict) as refused:
        publish(staff, week)
    assert (refused.value.code, "July 2026" in refused.value.detail) == ("periods_overlap", True)
    june = approve(staff, build(staff, cast, Period.month(2026, 6)))
    assert publish(staff, june).state == "published"
    services.supersede(actor=staff, report=july, reason="weeks are asked for")
    with pytest.raises(Conflict):  # who read July has its numbers still
        publish(staff, week)
    assert publish(staff, approve(staff, build(staff, cast))).version == 2


def test_a_draft_is_held_against_no_days_that_another_shares(cast: Cast, staff: Any) -> None:
    """The days before are shown beside the figures: they are published with them."""
    before = Period.between("2026-06-04", "2026-07-02")
    days = Period.between("2026-07-03", "2026-07-31")
    publish(staff, approve(staff, build(staff, cast, before)))
    held = approve(staff, build(staff, cast, days))
    assert held.content["before"]["period"] == before.name
    week = Period.parse("2026-W24")
    Report.objects.create(
        cluster=cast.cluster, first=week.first, last=week.last, version=1, state="superseded", content={}, digest="x",
        published=held.built,
    )  # fmt: skip
    with pytest.raises(Conflict) as refused:
        publish(staff, held)
    assert refused.value.code == "periods_overlap"
    again = approve(staff, build(staff, cast, days))
    assert "why" in again.content["before"]
    assert publish(staff, again).state == "published"


def test_no_days_are_published_that_another_is_held_against(cast: Cast, staff: Any) -> None:
    """Also once the report of the days before is gone, whose numbers stand beside the other's."""
    first = publish(staff, approve(staff, build(staff, cast, Period.between("2026-06-04", "2026-07-02"))))
    publish(staff, approve(staff, build(staff, cast, Period.between("2026-07-03", "2026-07-31"))))
    Report.objects.filter(pk=first.pk).delete()
    june = approve(staff, build(staff, cast, Period.month(2026, 6)))
    with pytest.raises(Conflict) as refused:
        publish(staff, june)
    assert refused.value.code == "periods_overlap"


@pytest.mark.parametrize("act", [approve, publish])
def test_what_was_altered_is_not_approved_published_or_handed_out(cast: Cast, staff: Any, act: Any) -> None:
    report = build(staff, cast)
    if act is publish:
        report = approve(staff, report)
    Report.objects.update(content=report.content | {"facility": "Another"})
    with pytest.raises(Conflict) as refused:
        act(staff, report)
    assert refused.value.code == "report_altered"
    browser = sign_in(cast.staff)
    assert browser.get(f"{report.get_absolute_url()}?format=csv").status_code == 409
    assert b"not what its digest was taken of" in browser.get(report.get_absolute_url()).content


def test_staff_withdraw_with_a_reason_in_the_browser(cast: Cast, staff: Any) -> None:
    publish(staff, approve(staff, build(staff, cast)))
    browser = sign_in(cast.staff)
    assert browser.post("/reports/aster/2026-07/withdraw/", {"reason": " "}).status_code == 422
    page = browser.post("/reports/aster/2026-07/withdraw/", {"reason": "Two days were missing."}, follow=True)
    assert b"is withdrawn" in page.content
    assert AuditEvent.objects.get(verb="report.supersede").payload["reason"] == "Two days were missing."
    assert sign_in(cast.pi).get("/reports/aster/2026-07/").status_code == 404


def test_a_pdf_is_drawn_one_at_a_time(cast: Cast, staff: Any) -> None:
    report = build(staff, cast)
    browser = sign_in(cast.staff)
    with leases.held("report-pdf", seconds=60):
        busy = browser.get(f"{report.get_absolute_url()}?format=pdf", headers={"accept": "application/json"})
    assert busy.status_code == 429 and busy.headers["Retry-After"] == "10"
    drawn = browser.get(f"{report.get_absolute_url()}?format=pdf")
    assert (drawn["Content-Type"], drawn.content[:4]) == ("application/pdf", b"%PDF")
