"""The report as a page: every figure once, long tables as curves of the same numbers."""

import io
import json
import re

import pytest

from portal.core import clock
from portal.reports import assessment, changes, curves, drawing
from telemetry import services
from telemetry.models import Job
from tests.reports.test_contents import written
from tests.telemetry.facility import make_facility
from tests.telemetry.job_rows import mark
from tests.telemetry.logs import job_row, text

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("few_are_shown")]


def figure(columns, rows):
    return {
        "title": "Load by day",
        "columns": [{"key": key, "title": key, "unit": "submissions"} for key in columns],
        "rows": [{"label": label, "values": values} for label, values in rows],
    }


def test_curves_share_one_scale_and_a_withheld_cell_is_a_gap():
    rows = [("1 July", [10, 0]), ("2 July", [None, 20]), ("3 July", [5, 20])]
    found = curves.curves_of(figure(["agent_submissions", "human_submissions"], rows), drawing.shown)
    assert found is not None
    assert [line["path"] for line in found["lines"]] == [
        "M0.0,80.0 M1000.0,119.0",
        "M0.0,158.0 L500.0,2.0 L1000.0,2.0",
    ]
    assert found["label"] == "Load by day, 1 July to 3 July: Agents at most 10; People at most 20 submissions."


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        (["submissions", "share"], [("a", [1, 2]), ("b", [1, 2])]),
        (["agent", "human"], [("a", [1, 2])]),
        (["agent", "human"], [("a", [0, 0]), ("b", [None, 0])]),
        (["agent", "human", "unknown"], [("a", [0, 0, 0]), ("b", [None, 0, 0])]),
    ],
)
def test_there_is_no_picture_of_what_has_no_two_curves(columns, rows):
    assert curves.curves_of(figure(columns, rows), drawing.shown) is None


def test_where_nothing_is_attributed_what_is_not_is_drawn():
    found = curves.curves_of(
        figure(["agent", "human", "unknown"], [("a", [0, 0, 4]), ("b", [None, 0, 2])]), drawing.shown
    )
    assert found is not None
    assert [(line["kind"], line["path"]) for line in found["lines"]] == [("unknown", "M0.0,2.0 L1000.0,80.0")]


def test_a_report_without_sessions_has_its_pictures_and_says_where_there_is_nothing():
    facility = make_facility()
    Job.objects.update(actor="unknown", harness="")
    for job in Job.objects.all():
        mark(job)
    services.catch_up(cluster=facility.cluster)
    html = written("--format", "html")
    shown = dict(re.findall(r'id="([^"]+)">\s*<h3>(.*?)<dl class="notes">', html, re.DOTALL))
    assert {"daily", "hour-of-week", "runtime-distribution", "session-age"} <= set(shown)
    for key in ("daily", "hour-of-week", "runtime-distribution"):
        assert "<svg" in shown[key] and "Not attributed at most" in shown[key], key
    assert "nothing to count" in shown["session-age"] and "nothing to count" not in shown["daily"]


def test_the_first_column_of_every_table_says_what_its_rows_are():
    make_facility()
    content = json.loads(written("--format", "json"))
    dump = text(job_row(1), job_row(2, User="bob"), job_row(3, State="NOVEL"))
    known = assessment.Known(frozenset({"bob"}))
    assessed = assessment.assess(
        [("dump", io.BytesIO(dump))], known=known, cluster="", now_s=clock.now_s(), note=lambda *_: None
    ).as_json()
    for told in (content, assessed):
        heads = {one["key"]: one["heads"].split(";")[0] for each in drawing.sections(told) for one in each["figures"]}
        assert "What" not in heads.values(), heads
    headed = {one["key"]: one["heads"].split(";")[0] for each in drawing.sections(content) for one in each["figures"]}
    assert (headed["labs"], headed["daily"], headed["failed"]) == ("Lab", "Day (UTC)", "Submitted by")


def test_every_figure_with_rows_stands_on_the_page_once():
    make_facility()
    html = written("--format", "html")
    ids = re.findall(r'<article class="report__fig[^"]*" id="([^"]+)"', html)
    linked = re.findall(r'<a href="#([^"]+)">', html)
    assert ids and len(ids) == len(set(ids)) and set(ids) == set(linked)
    assert html.count('<figure class="curves">') >= 2
    assert "<script" not in html


def test_dollars_are_written_as_on_every_page() -> None:
    assert drawing.shown(4.5, "US$") == "$4.50"
    assert changes.written(4.5, 4.0, "US$").startswith("+$0.50")


def test_decimals_that_say_nothing_are_not_written() -> None:
    assert [drawing.shown(value, "core-hours") for value in (140_222.96, 99.5, 0.0)] == ["140,223", "99.50", "0"]
    assert changes.written(140_222.96, 145_740.37, "core-hours") == "−5,517 (−3.8\u202f%)"
    assert changes.written(62.56, 60.0, "GPU-hours").startswith("+2.56 ")


@pytest.mark.parametrize(
    ("columns", "rows", "wide", "stack"),
    [(2, 3, False, False), (3, 3, True, True), (2, 9, True, False), (3, 14, True, False)],
)
def test_a_table_too_wide_for_a_card_has_a_row_of_the_page_and_is_read_row_by_row_on_a_telephone(
    columns: int, rows: int, wide: bool, stack: bool
) -> None:
    heads = [{"key": f"c{n}", "title": f"C{n}", "unit": "jobs"} for n in range(columns)]
    figure = {
        "key": "x", "title": "X", "unit": "jobs", "value": 1, "unknown_share": None, "note": "", "needs": "", "url": "",
        "columns": heads,
        "rows": [{"key": f"r{n}", "label": f"R{n}", "values": [1] * columns, "url": ""} for n in range(rows)],
    }  # fmt: skip
    (section,) = drawing.sections({"sections": [{"title": "s", "figures": [figure]}]})
    (drawn,) = section["figures"]
    assert (drawn["wide"], drawn["stack"]) == (wide, stack)
    assert [cell["head"] for cell in drawn["table"][0]["cells"]] == [head["title"] for head in heads]
