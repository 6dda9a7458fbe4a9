"""A draft follows the data; what is published stays as it was read."""

from typing import Any

import pytest
import time_machine

from portal.core.errors import Conflict, NotAllowed
from portal.core.models import AuditEvent
from portal.reports import services
from portal.reports.models import Report
from principals.models import Notice
from principals.services.notices import writing as notices
from telemetry.selectors import Period
from tests import factories
from tests.conftest import Cast, sign_in
from tests.telemetry.job_rows import DAY_0, make_job

pytestmark = pytest.mark.django_db
JULY = Period.month(2026, 7)
AUGUST_1 = DAY_0 + 31 * 86_400 + 4 * 3600


@pytest.fixture
def staff(cast: Cast) -> Any:
    return factories.actor_of(cast.staff)


@pytest.fixture
def draft(cast: Cast, staff: Any) -> Report:
    make_job(cast.cluster.cluster_users.first(), cast.lab, submit=DAY_0, start=DAY_0, end=DAY_0 + 60)
    with time_machine.travel(AUGUST_1, tick=False):
        return services.build_draft(actor=staff, cluster=cast.cluster, period=JULY)


def publish(actor: Any, report: Report, digest: str = "") -> Report:
    """Approve it and publish it."""
    with time_machine.travel(AUGUST_1, tick=False):
        services.approve(actor=actor, report=report, digest=digest or report.digest)
        return services.publish(actor=actor, report=report, digest=digest or report.digest)


def submissions(report: Report) -> int:
    figures = report.content["sections"][0]["figures"]
    return next(figure["value"] for figure in figures if figure["key"] == "total-submissions")


def test_a_draft_follows_the_data(cast: Cast, staff: Any, draft: Report) -> None:
    make_job(cast.cluster.cluster_users.first(), cast.lab, submit=DAY_0)
    again = services.build_draft(actor=staff, cluster=cast.cluster, period=JULY)
    assert (again.pk, again.version, submissions(again)) == (draft.pk, 1, 2)
    assert again.digest != draft.digest
    assert again.is_intact


def test_what_is_published_stays_and_the_next_version_supersedes_it(cast: Cast, staff: Any, draft: Report) -> None:
    first = publish(staff, draft)
    make_job(cast.cluster.cluster_users.first(), cast.lab, submit=DAY_0)
    second = services.build_draft(actor=staff, cluster=cast.cluster, period=JULY)
    assert (second.version, second.pk != first.pk) == (2, True)
    assert services.current_content(actor=staff, cluster=cast.cluster, period=JULY) == first.content
    fresh = services.current_content(actor=staff, cluster=cast.cluster, period=JULY, fresh=True)
    assert fresh == second.content
    publish(staff, second)
    first.refresh_from_db()
    assert (first.state, submissions(first), first.is_intact) == ("superseded", 1, True)
    assert Report.objects.get(state="published") == second
    assert list(AuditEvent.objects.filter(object_kind="report").values_list("verb", flat=True).order_by("id")) == [
        "report.draft", "report.approve", "report.publish", "report.draft", "report.approve", "report.publish",
    ]  # fmt: skip


def test_a_draft_rebuilt_since_it_was_read_is_not_published(cast: Cast, staff: Any, draft: Report) -> None:
    read = draft.digest
    make_job(cast.cluster.cluster_users.first(), cast.lab, submit=DAY_0)
    services.build_draft(actor=staff, cluster=cast.cluster, period=JULY)
    with pytest.raises(Conflict) as refused:
        publish(staff, draft, read)
    assert refused.value.code == "report_changed"
    assert not Report.objects.filter(state="published").exists()


def test_a_version_is_published_once(staff: Any, draft: Report) -> None:
    publish(staff, draft)
    with pytest.raises(Conflict) as refused:
        publish(staff, draft)
    assert refused.value.code == "not_a_draft"


def test_a_month_that_goes_on_is_not_approved(staff: Any, draft: Report) -> None:
    with time_machine.travel(DAY_0 + 86_400, tick=False), pytest.raises(Conflict) as refused:
        services.approve(actor=staff, report=draft, digest=draft.digest)
    assert refused.value.code == "period_not_over"


def test_a_month_that_goes_on_says_from_when_it_can_be_approved(cast: Cast, draft: Report) -> None:
    browser = sign_in(cast.staff)
    with time_machine.travel(DAY_0 + 86_400, tick=False):
        page = browser.get(draft.get_absolute_url()).content.decode()
    assert "can be approved from 1 August on" in page and "Approve version" not in page
    with time_machine.travel(AUGUST_1, tick=False):
        assert "Approve version 1" in browser.get(draft.get_absolute_url()).content.decode()


def test_a_published_version_can_be_withdrawn_with_a_reason(staff: Any, draft: Report) -> None:
    report = services.supersede(actor=staff, report=publish(staff, draft), reason="Two days of the log were missing.")
    assert report.state == "superseded"
    with pytest.raises(Conflict):
        services.supersede(actor=staff, report=report, reason="again")
    event = AuditEvent.objects.get(verb="report.supersede")
    assert event.payload["reason"] == "Two days of the log were missing."


@pytest.mark.parametrize("role", ["pi", "colleague", "infosec", "auditor"])
def test_only_staff_draft_and_publish(cast: Cast, draft: Report, role: str) -> None:
    actor = factories.actor_of(getattr(cast, role))
    with pytest.raises(NotAllowed):
        services.build_draft(actor=actor, cluster=cast.cluster, period=JULY)
    with pytest.raises(NotAllowed):
        publish(actor, draft)
    with pytest.raises(NotAllowed):
        services.supersede(actor=actor, report=draft, reason="")


def test_people_read_what_is_published_and_no_drafts(cast: Cast, staff: Any, draft: Report) -> None:
    actor = factories.actor_of(cast.colleague)
    assert not Report.objects.visible_to(actor).exists()
    assert Report.objects.visible_to(factories.actor_of(cast.auditor)).exists()
    publish(staff, draft)
    assert Report.objects.visible_to(actor).exists()


def test_staff_read_and_publish_in_the_browser(cast: Cast, draft: Report) -> None:
    with time_machine.travel(AUGUST_1, tick=False):
        browser = sign_in(cast.staff)
        assert draft.digest in browser.get(draft.get_absolute_url()).content.decode()
        page = browser.post("/reports/aster/2026-07/approve/", {"digest": draft.digest}, follow=True)
        assert b"Publish version 1" in page.content
        page = browser.post("/reports/aster/2026-07/publish/", {"digest": draft.digest}, follow=True)
        assert page.status_code == 200
        assert b"Published" in page.content
        assert b'name="digest"' not in page.content
        assert b"July 2026" in sign_in(cast.colleague).get("/reports/").content


def test_page_and_exports_come_from_the_stored_version(cast: Cast, staff: Any, draft: Report) -> None:
    publish(staff, draft)
    make_job(cast.cluster.cluster_users.first(), cast.lab, submit=DAY_0)
    browser = sign_in(cast.pi)
    assert browser.get("/reports/aster/2026-07/?format=json").json() == draft.content
    lines = browser.get("/reports/aster/2026-07/?format=csv").content.decode().splitlines()
    assert any(",submissions,1," in line for line in lines)
    assert browser.get("/reports/aster/2026-07/?format=xlsx").status_code == 422


@pytest.mark.parametrize(
    "path", ["/reports/aster/2026-06/", "/reports/borage/2026-07/", "/reports/aster/2026-07/?version=9"]
)
def test_a_report_that_is_not_there_is_a_page_that_says_so(cast: Cast, draft: Report, path: str) -> None:
    assert sign_in(cast.staff).get(path).status_code == 404


def test_a_draft_is_not_there_for_others(cast: Cast, draft: Report) -> None:
    assert sign_in(cast.pi).get("/reports/aster/2026-07/").status_code == 404


def test_who_subscribed_is_sent_the_short_form(cast: Cast, staff: Any, draft: Report) -> None:
    notices.choose(actor=factories.actor_of(cast.outsider), choices={"report_published": ("at_once", True)})
    publish(staff, draft)
    notice = Notice.objects.get()
    assert (notice.person, notice.url) == (cast.outsider, draft.get_absolute_url())
    assert "Headlines" in notice.text and "July 2026" in notice.title
