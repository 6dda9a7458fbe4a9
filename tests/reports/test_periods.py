"""A report of any days: a month, a week, or what the paper measured; one path for all, and an address for each."""

import json
from datetime import date
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.db.migrations.executor import MigrationExecutor

from portal.core.errors import Invalid
from portal.reports import services, tasks
from portal.reports.models import Drafting, Report, digest_of
from principals.actors import SYSTEM_ACTOR
from telemetry.selectors import Period
from tests import factories
from tests.conftest import Cast, sign_in
from tests.telemetry.facility import Facility, make_facility
from tests.telemetry.job_rows import DAY_0, make_job

WINDOW = Period(date(2026, 7, 7), date(2026, 8, 1))
AUGUST_3 = DAY_0 + 33 * 86_400 + 4 * 3600  # a Monday


@pytest.mark.parametrize(
    ("name", "title", "first", "last", "before"),
    [
        ("2026-07", "July 2026", "2026-07-01", "2026-07-31", "2026-06"),
        ("2026-W28", "week 28 of 2026", "2026-07-06", "2026-07-12", "2026-W27"),
        ("2027-W01", "week 1 of 2027", "2027-01-04", "2027-01-10", "2026-W53"),
        ("2026-07-07--2026-08-01", "7 July to 1 August 2026", "2026-07-07", "2026-08-01", "2026-06-11--2026-07-06"),
        ("2025-12-30--2026-01-01", "30 December 2025 to 1 January 2026", "2025-12-30", "2026-01-01",
         "2025-12-27--2025-12-29"),
        ("2026-07-07--2026-07-07", "7 July 2026", "2026-07-07", "2026-07-07", "2026-07-06--2026-07-06"),
    ],
)  # fmt: skip
def test_a_period_is_read_from_its_name(name: str, title: str, first: str, last: str, before: str) -> None:
    period = Period.parse(name)
    assert (period.name, period.title) == (name, title)
    assert (str(period.first), str(period.last), period.previous().name) == (first, last, before)


def test_days_that_are_a_month_or_a_week_are_called_so() -> None:
    assert Period.parse("2026-07-01--2026-07-31").name == "2026-07"
    assert Period.parse("2026-07-06--2026-07-12").name == "2026-W28"


@pytest.mark.parametrize(
    "name", ["", "July", "2026-W54", "0001-W01", "9999-W52", "2026-08-01--2026-07-07", "2026-07-07--", "--",
             "2020-01-01--2026-01-01", "2026-07-07--2026-08-01--2026-08-02"],
)  # fmt: skip
def test_what_is_no_period_is_refused(name: str) -> None:
    with pytest.raises(Invalid):
        Period.parse(name)


@pytest.fixture
def facility(db: None) -> Facility:
    return make_facility()


def written(*options: str) -> str:
    out = StringIO()
    call_command("report", "aster", *options, stdout=out, stderr=StringIO())
    return out.getvalue()


def submissions(text: str) -> int:
    figures = json.loads(text)["sections"][0]["figures"]
    return next(figure["value"] for figure in figures if figure["key"] == "total-submissions")


def test_the_days_of_the_paper_are_written_as_a_month_is(facility: Facility) -> None:
    make_job(facility.users[0], facility.big, submit=DAY_0 + 7 * 86_400)
    days = ("--from", "2026-07-07", "--to", "2026-08-01")
    assert (submissions(written("--month", "2026-07")), submissions(written(*days))) == (25, 1)
    assert submissions(written("--week", "2026-W28")) == 1
    content = json.loads(written(*days))
    assert (content["title"], content["period"]) == (
        "Agent load, 7 July to 1 August 2026", "2026-07-07--2026-08-01"
    )  # fmt: skip
    assert "7 July to 1 August 2026" in written(*days, "--format", "html")


def test_last_week_is_the_one_that_is_over(facility: Facility) -> None:
    with time_machine.travel(AUGUST_3, tick=False):
        assert json.loads(written("--week", "last"))["period"] == "2026-W31"


def test_a_file_is_written_as_its_name_ends(facility: Facility, tmp_path: Path) -> None:
    for name, start in (("a.pdf", b"%PDF"), ("a.html", b"<!doctype html>"), ("a.csv", b"section,"), ("a.json", b"{")):
        written("--week", "2026-W27", "--out", str(tmp_path / name))
        assert (tmp_path / name).read_bytes().startswith(start), name


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "Name one period"),
        (("--month", "2026-07", "--week", "last"), "Name one period"),
        (("--from", "2026-07-07"), "is no day"),
        (("--week", "28"), "is no week"),
        (("--month", "2026-07", "--cluster", "borage"), "Name one cluster"),
        (("--month", "2026-07", "--out", "july.docx"), "written as json, csv, html, pdf"),
        (("--month", "2026-07", "--short", "--format", "csv"), "short form is written as"),
    ],
)
def test_a_wrong_request_is_one_sentence(facility: Facility, options: tuple[str, ...], says: str) -> None:
    with pytest.raises(CommandError, match=says):
        written(*options)


@pytest.mark.django_db
def test_staff_choose_days_by_their_address_and_have_them_drafted(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    told: list[int] = []
    monkeypatch.setattr(tasks.draft, "delay", told.append)
    browser, days = sign_in(cast.staff), "/reports/?cluster=aster&from=2026-07-07&to=2026-08-01"
    page = browser.get(days).content.decode()
    assert "There is no report of 7 July to 1 August 2026" in page and WINDOW.name in page
    with django_capture_on_commit_callbacks(execute=True):
        browser.post("/reports/draft/", {"cluster": "aster", "period": WINDOW.name})
    page = browser.get(days).content.decode()
    assert "7 July to 1 August 2026 of aster is being drafted." in page and "from=2026-07-07" in page
    assert tasks.draft(told[0])
    assert "The report of 7 July to 1 August 2026" in browser.get(days).content.decode()
    assert b"7 July to 1 August 2026" in browser.get(f"/reports/aster/{WINDOW.name}/").content
    assert b"is no day" in browser.get("/reports/?from=July&to=2026-08-01").content
    assert b'name="from"' not in sign_in(cast.pi).get(days).content


@pytest.mark.django_db
def test_mondays_draft_the_last_week(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks.draft, "delay", lambda pk: None)
    with time_machine.travel(AUGUST_3, tick=False):
        assert tasks.draft_last_week() == 1
    assert Drafting.objects.get().period.name == "2026-W31"


@pytest.mark.django_db
def test_a_period_has_one_version_that_is_being_made(cast: Cast) -> None:
    days = {"cluster": cast.cluster, "first": WINDOW.first, "last": WINDOW.last, "content": {}}
    Report.objects.create(**days, version=1, state="approved")
    with pytest.raises(IntegrityError), transaction.atomic():
        Report.objects.create(**days, version=2)


@pytest.mark.django_db(transaction=True)
@pytest.mark.sql
def test_months_from_before_have_their_days(cast: Cast) -> None:
    executor = MigrationExecutor(connection)
    old, new = [("reports", "0002_drafting")], executor.loader.graph.leaf_nodes("reports")
    executor.migrate(old)
    try:
        before = executor.loader.project_state(old).apps.get_model("reports", "Report")
        row = {"cluster_id": cast.cluster.pk, "version": 1, "content": {}, "digest": "", "built_by": "staff"}
        for month in ("2026-02-01", "2026-07-01"):
            before.objects.create(**row, month=month)
    finally:
        executor = MigrationExecutor(connection)
        executor.migrate(new)
    assert [report.period.name for report in Report.objects.order_by("first")] == ["2026-02", "2026-07"]


@pytest.mark.django_db
def test_what_was_published_before_there_were_periods_is_read_as_it_was(cast: Cast) -> None:
    content = services.current_content(actor=SYSTEM_ACTOR, cluster=cast.cluster, period=Period.month(2026, 6))
    old = {name: value for name, value in content.items() if name not in ("period", "before")} | {
        "schema": 1, "month": "2026-06"
    }  # fmt: skip
    Report.objects.create(
        cluster=cast.cluster,
        first="2026-06-01",
        last="2026-06-30",
        version=1,
        state="published",
        content=old,
        digest=digest_of(old),
    )
    browser = sign_in(factories.make_user("reader"))
    for address in ("", "?form=short", "?format=csv", "?format=json", "?format=html"):
        assert browser.get(f"/reports/aster/2026-06/{address}").status_code == 200, address


def test_the_short_form_is_fit_for_a_mail(facility: Facility) -> None:
    text = written("--month", "2026-07", "--short", "--format", "text")
    assert text.startswith("Agent load, July 2026\naster, 2026-07-01 to 2026-07-31 (UTC)\n")
    assert "Submissions: 24 submissions\n" in text and "No report of June 2026 is published" in text
    html = written("--month", "2026-07", "--short", "--format", "html")
    assert "24 submissions</a>" in html and "http" in html and "<script" not in html and "<link" not in html
    assert json.loads(written("--month", "2026-07", "--short"))["title"] == "Agent load, July 2026"
