"""Change since the period before: of equal figures alone, and nothing of what either report withholds."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine

from portal.core.errors import Conflict
from portal.reports import brief, changes, contents, services
from portal.reports.models import Report, digest_of
from principals.actors import SYSTEM_ACTOR
from telemetry.selectors import Period
from tests import factories
from tests.conftest import sign_in
from tests.telemetry.facility import Facility, make_facility
from tests.telemetry.job_rows import DAY_0, make_job

JUNE, JULY = Period.month(2026, 6), Period.month(2026, 7)
AUGUST_1 = DAY_0 + 31 * 86_400 + 4 * 3600


def figure(value: Any, *rows: tuple[str, list[Any]], **more: Any) -> dict[str, Any]:
    return {
        "key": "harnesses", "title": "By harness", "definition": "d", "population": "p", "unit": "jobs", "value": value,
        "unknown_share": None, "note": "", "needs": "", "url": "",
        "columns": [{"key": "jobs", "title": "Jobs", "unit": "jobs"}],
        "rows": [{"key": key, "label": key, "values": values, "url": ""} for key, values in rows],
    } | more  # fmt: skip


def compared(now: dict[str, Any], then: dict[str, Any]) -> dict[str, Any]:
    content = {"sections": [{"title": "s", "figures": [then]}]}
    with time_machine.travel(AUGUST_1, tick=False):
        before = Report(first=JUNE.first, last=JUNE.last, version=2, state="published", content=content)
        before.digest = digest_of(content)
        found = changes.compare({"sections": [{"title": "s", "figures": [now]}]}, before, JULY)
    assert found["before"] == {"period": "2026-06", "title": "June 2026", "state": "published", "version": 2}
    return dict(found["sections"][0]["figures"][0])


def test_a_change_is_absolute_and_relative() -> None:
    assert changes.written(200, 160, "jobs") == "+40 (+25.0\u202f%)"
    assert changes.written(120, 160, "jobs") == "−40 (−25.0\u202f%)"
    assert changes.written(0.5, 0.4, "share") == "+10.0\u202fpt (+25.0\u202f%)"
    assert changes.written(90.0, 60.0, "s").startswith("+30")
    assert (changes.written(3, 3, "jobs"), changes.written(3, 0, "jobs")) == ("no change", "+3")
    assert (changes.written(None, 3, "jobs"), changes.written(3, None, "jobs")) == ("", "")


@pytest.mark.parametrize(("now", "then"), [(None, 17), (17, None), (None, None)])
def test_what_either_report_withholds_has_no_change(now: Any, then: Any) -> None:
    found = compared(figure(now, ("codex", [now])), figure(then, ("codex", [then])))
    assert (found["before"], found["rows"][0]["before"]) == (None, [None])
    content = {"sections": [{"title": "s", "figures": [found]}]}
    cells = [line for line in contents.flat_rows(content) if "before" in line]
    assert [(line["before"], line["change"], line["relative_change"]) for line in cells] == [(None, None, None)] * 2


def test_a_rest_and_a_row_that_was_in_it_have_no_change() -> None:
    now = figure(9, ("codex", [9]), ("", [4]), ("harness-others", [4]))
    then = figure(9, ("", [7]), ("harness-others", [7]))
    assert all("before" not in row for row in compared(now, then)["rows"])


@pytest.mark.parametrize("more", [{"definition": "another"}, {"unit": "share"}, {"population": "others"}, {"key": "x"}])
def test_a_figure_that_means_something_else_now_has_no_change(more: dict[str, str]) -> None:
    found = compared(figure(9, ("codex", [9])), figure(4, ("codex", [4]), **more))
    assert "before" not in found and "before" not in found["rows"][0]


def test_a_column_that_moved_is_found_and_a_new_one_has_none() -> None:
    columns = [{"key": key, "title": key, "unit": "jobs"} for key in ("people", "jobs")]
    found = compared(figure(9, ("codex", [5, 9]), columns=columns), figure(4, ("codex", [4])))
    assert found["rows"][0]["before"] == [None, 4]


@pytest.fixture
def facility(db: None) -> Facility:
    return make_facility()


def drafted(facility: Facility, period: Period, at: int = AUGUST_1) -> dict[str, Any]:
    with time_machine.travel(at, tick=False):
        return dict(services.build_draft(actor=SYSTEM_ACTOR, cluster=facility.cluster, period=period).content)


def seen(facility: Facility, period: Period, at: int = AUGUST_1) -> dict[str, Any]:
    """Draft it, and return what those who draft are shown."""
    drafted(facility, period, at)
    with time_machine.travel(at, tick=False):
        return services.with_draft_before(Report.objects.get(first=period.first))


def headline(content: dict[str, Any], key: str) -> dict[str, Any]:
    return next(one for section in content["sections"] for one in section["figures"] if one["key"] == key)


def publish(facility: Facility, period: Period) -> Report:
    """Publish what is drafted of it."""
    report = Report.objects.get(cluster=facility.cluster, first=period.first, state="draft")
    somebody = factories.actor_of(factories.make_user(is_research_computing=True))
    with time_machine.travel(AUGUST_1, tick=False):
        services.approve(actor=somebody, report=report, digest=report.digest)
        return services.publish(actor=somebody, report=report, digest=report.digest)


def test_a_draft_says_what_changed_since_the_published_report_before(facility: Facility) -> None:
    for _ in range(6):
        make_job(facility.users[0], facility.big, submit=DAY_0 - 86_400)
    nothing = {"why": "No report of June 2026 is published to compare with."}
    assert drafted(facility, JULY)["before"] == nothing
    drafted(facility, JUNE)
    assert drafted(facility, JULY)["before"] == nothing
    publish(facility, JUNE)
    july = drafted(facility, JULY)
    assert july["before"] == {"period": "2026-06", "title": "June 2026", "state": "published", "version": 1}
    found = headline(july, "total-submissions")
    assert (found["value"], found["before"]) == (24, 6)
    lines = {line["title"]: line for line in brief.of(july)["lines"]}
    assert lines["Submissions"]["change"] == "+18 (+300.0\u202f%)"
    assert any(sentence.startswith("Submissions moved: +18") for sentence in brief.of(july)["attention"])


def test_changes_against_a_draft_are_shown_to_those_who_draft_and_never_published(facility: Facility) -> None:
    for _ in range(6):
        make_job(facility.users[0], facility.big, submit=DAY_0 - 86_400)
    drafted(facility, JUNE)
    drafted(facility, JULY)
    browser, address = sign_in(factories.make_user(is_research_computing=True)), "/reports/aster/2026-07/"
    marked = "Changes are against June 2026, version 1 (draft). That one is not published"
    for form in ("", "?form=short"):
        page = browser.get(address + form).content.decode()
        assert marked in page and "+18" in page
    assert all(line["change"] is None for line in browser.get(f"{address}?format=json").json() if "change" in line)
    report = publish(facility, JULY)
    assert report.is_intact and report.content["before"] == {
        "why": "No report of June 2026 is published to compare with."
    }
    page = browser.get(address).content.decode()
    assert marked not in page and "+18" not in page


def test_what_was_held_against_a_draft_is_not_approved_or_published(facility: Facility) -> None:
    drafted(facility, JULY)
    report = Report.objects.get()
    report.content["before"] = {"period": "2026-06", "title": "June 2026", "state": "approved", "version": 1}
    report.digest = digest_of(report.content)
    report.save()
    with pytest.raises(Conflict) as refused:
        publish(facility, JULY)
    assert refused.value.code == "compared_with_draft"
    Report.objects.update(state="approved")
    with pytest.raises(Conflict) as refused:
        services.publish(actor=SYSTEM_ACTOR, report=report, digest=report.digest)
    assert refused.value.code == "compared_with_draft"


def test_what_is_not_over_or_was_not_is_compared_with_nothing(facility: Facility) -> None:
    drafted(facility, JUNE, at=DAY_0 - 86_400)
    assert seen(facility, JULY)["before"] == {"why": "The report of June 2026 was made before that was over."}
    drafted(facility, JUNE)
    running = seen(facility, JULY, at=DAY_0 + 86_400)
    assert running["before"] == {"why": "The period goes on: a part of it is not compared with the whole one before."}
    assert "before" not in headline(running, "total-submissions")


def test_what_was_altered_is_no_report_to_compare_with(facility: Facility) -> None:
    drafted(facility, JUNE)
    publish(facility, JUNE)
    Report.objects.update(content={"sections": []})
    assert drafted(facility, JULY)["before"] == {"why": "The report of June 2026 is not what was stored."}


def test_days_that_a_published_report_shares_are_compared_with_nothing(facility: Facility) -> None:
    drafted(facility, JUNE)
    other = publish(facility, JUNE)
    other.pk, other.first = None, JUNE.first - timedelta(days=1)
    other.save()
    why = "The report of 31 May to 30 June 2026 is published and shares days with June 2026."
    assert drafted(facility, JULY)["before"] == {"why": why}
    Report.objects.filter(first=JUNE.first).update(state="draft")
    assert seen(facility, JULY)["before"] == {"why": why}
