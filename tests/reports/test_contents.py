"""Report, dashboard and exports hold the same numbers, to the last digit."""

import csv
import json
import re
from collections import defaultdict
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from portal.reports import contents, drawing, pages
from portal.reports.figures import FIGURES
from principals.actors import SYSTEM_ACTOR
from telemetry import selectors
from telemetry.figures import Readings, measure_figure
from telemetry.figures.behaviour import words_of
from telemetry.selectors import Definition, Period, Scope
from tests.telemetry.facility import Facility, make_facility
from tests.telemetry.job_rows import DAY_0, make_job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("few_are_shown")]


@pytest.fixture
def facility(db: None) -> Facility:
    return make_facility()


def written(*options: str) -> str:
    out = StringIO()
    call_command("report", "--cluster", "aster", "--month", "2026-07", *options, stdout=out)
    return out.getvalue()


def by_key(content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {figure["key"]: figure for section in content["sections"] for figure in section["figures"]}


def test_the_report_says_what_the_selectors_say(facility: Facility) -> None:
    found = by_key(json.loads(written("--format", "json")))
    scope = Scope(SYSTEM_ACTOR, facility.cluster, Period.month(2026, 7))
    for definition in Definition:
        shares = selectors.shares(scope, definition)
        for title, name in (("people", "users"), ("submissions", "submissions"), ("core-hours", "core_s"),
                            ("GPU-hours", "gpu_s")):  # fmt: skip
            figure = found[f"share-{title}-{definition}"]
            assert figure["value"] == getattr(shares, name).share()
            assert figure["unknown_share"] == getattr(shares, name).share("unknown")
    assert found["total-core-hours"]["value"] == selectors.totals(scope).core_hours


def test_every_figure_is_in_the_report_to_the_last_digit(facility: Facility) -> None:
    found = by_key(json.loads(written("--format", "json")))
    readings = Readings(Scope(SYSTEM_ACTOR, facility.cluster, Period.month(2026, 7)))
    assert set(found) == set(FIGURES)
    for key, figure in found.items():
        measured = measure_figure(FIGURES[key], readings)
        if measured is None or measured.needs:
            assert (figure["value"], figure["rows"]) == (None, [])
            assert figure["needs"]
            continue
        assert figure["value"] == measured.value, key
        assert [row["values"] for row in figure["rows"]] == [list(row.values) for row in measured.rows], key


def test_csv_holds_the_same_numbers_as_json(facility: Facility) -> None:
    content = json.loads(written("--format", "json"))
    lines = list(csv.DictReader(StringIO(written("--format", "csv"))))
    from_json = ["" if row.get("value") is None else str(row["value"]) for row in contents.flat_rows(content)]
    assert [line["value"] for line in lines] == from_json
    assert {line["figure"] for line in lines} == set(FIGURES)


def test_csv_rows_sum_to_the_totals_on_the_page(facility: Facility) -> None:
    lines = list(csv.DictReader(StringIO(written("--format", "csv"))))
    heads = {line["figure"]: line["value"] for line in lines if line["column"] == "value" and not line["label"]}
    sums: dict[tuple[str, str], float] = defaultdict(float)
    for line in lines:
        if line["label"] and line["value"]:
            sums[line["figure"], line["column"]] += float(line["value"])
    for definition in Definition:
        for title in ("people", "submissions", "core-hours", "GPU-hours"):
            total = float(heads[f"total-{title}"])
            assert sums[f"share-{title}-{definition}", "amount"] == pytest.approx(total, rel=1e-12), title
    submissions = float(heads["total-submissions"])
    assert sums["labs", "submissions"] == sums["partitions", "submissions"] == submissions
    assert sum(sums["daily", f"{actor}_submissions"] for actor in ("agent", "human", "unknown")) == submissions
    assert sum(sums["hour-of-week", actor] for actor in ("agent", "human", "unknown")) == submissions
    assert sums["harnesses", "submissions"] == sum(
        float(line["value"]) for line in lines
        if (line["figure"], line["row"], line["column"]) == ("share-submissions-job", "agent", "amount")
    )  # fmt: skip


def test_the_page_writes_the_reports_own_numbers(facility: Facility) -> None:
    content = json.loads(written("--format", "json"))
    html = written("--format", "html")
    found = by_key(content)
    for key, figure in found.items():
        if not figure["needs"]:
            assert drawing.shown(figure["value"], figure["unit"]) in html, key
        else:
            assert figure["needs"].replace("’", "’") in html, key
    assert "actor=agent" in html


def test_every_figure_says_what_it_is_of_whom_and_what_it_cannot_tell() -> None:
    said = {key: one.definition and one.population and (one.limit or one.needs) for key, one in FIGURES.items()}
    assert [key for key, words in said.items() if not words] == []


def test_two_reports_of_the_same_data_are_equal(facility: Facility) -> None:
    scope = Scope(SYSTEM_ACTOR, facility.cluster, Period.month(2026, 7))
    assert contents.build(scope) == contents.build(scope)


def test_the_report_takes_in_what_is_not_yet_rolled_up(facility: Facility) -> None:
    make_job(facility.users[0], facility.big, submit=DAY_0)
    assert by_key(json.loads(written()))["total-submissions"]["value"] == 25


def test_a_report_goes_to_a_file(facility: Facility, tmp_path: Path) -> None:
    assert written("--output", str(tmp_path / "july.json")) == ""
    assert json.loads((tmp_path / "july.json").read_text())["title"] == "Agent load, July 2026"


def test_numbers_of_a_document_lead_to_the_portal_that_wrote_it(facility: Facility, settings: Any) -> None:
    settings.BASE_URL = "https://gatehouse.example.org"
    links = set(re.findall(r'href="([^"#]+)"', written("--format", "html")))
    assert links
    assert {link for link in links if not link.startswith("https://gatehouse.example.org/jobs/?")} == set()


def test_bounds_of_run_times_are_written_in_whole_units() -> None:
    assert [words_of(edge) for edge in (0, 90, 120, 5400, 129_600, 5_184_000)] == [
        "0 s", "90 s", "2 min", "90 min", "36 h", "60 d",
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "why"), [("missing/july.json", "No such file"), (".", "Is a directory")])
def test_a_file_that_cannot_be_written_is_one_clear_sentence(
    facility: Facility, tmp_path: Path, name: str, why: str
) -> None:
    with pytest.raises(CommandError, match=f"cannot be written: {why}"):
        written("--output", str(tmp_path / name))


@pytest.mark.parametrize(
    ("cluster", "month", "says"), [("borage", "2026-07", "known: aster"), ("aster", "July", "no month")]
)
def test_a_wrong_request_is_explained(facility: Facility, cluster: str, month: str, says: str) -> None:
    with pytest.raises(CommandError, match=says):
        call_command("report", "--cluster", cluster, "--month", month)


def test_a_lab_name_that_is_a_formula_is_not_run_by_a_spreadsheet(facility: Facility) -> None:
    content = json.loads(written("--format", "json"))
    figure = by_key(content)["labs"]
    figure["rows"][0]["label"] = "=HYPERLINK()"
    assert b",'=HYPERLINK()," in pages.write(content, "csv")


def test_an_empty_month_is_written_and_said_to_be_empty(facility: Facility) -> None:
    for month, is_empty in (("2026-07", False), ("2020-01", True)):
        out, err = StringIO(), StringIO()
        call_command("report", "--cluster", "aster", "--month", month, stdout=out, stderr=err)
        assert json.loads(out.getvalue())["sections"]
        assert ("There are no jobs of aster in 2020-01" in err.getvalue()) is is_empty
