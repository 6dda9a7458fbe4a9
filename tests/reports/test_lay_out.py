"""The report as a page: every figure once, long tables as curves of the same numbers."""

import re

import pytest

from portal.reports import curves, pages
from tests.reports.test_monthly import written
from tests.telemetry.facility import make_facility

pytestmark = pytest.mark.django_db


def figure(columns, rows):
    return {
        "title": "Load by day",
        "columns": [{"key": key, "title": key, "unit": "submissions"} for key in columns],
        "rows": [{"label": label, "values": values} for label, values in rows],
    }


def test_curves_share_one_scale_and_a_withheld_cell_is_a_gap():
    rows = [("1 July", [10, 0]), ("2 July", [None, 20]), ("3 July", [5, 20])]
    found = curves.curves_of(figure(["agent_submissions", "human_submissions"], rows), pages.shown)
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
    ],
)
def test_there_is_no_picture_of_what_has_no_two_curves(columns, rows):
    assert curves.curves_of(figure(columns, rows), pages.shown) is None


def test_every_figure_with_rows_stands_on_the_page_once():
    make_facility()
    html = written("--format", "html")
    ids = re.findall(r'<article class="report__fig[^"]*" id="([^"]+)"', html)
    linked = re.findall(r'<a href="#([^"]+)">', html)
    assert ids and len(ids) == len(set(ids)) and set(ids) == set(linked)
    assert html.count('<figure class="curves">') >= 2
    assert "<script" not in html
