"""Figures carry tokens instead of colours, links to their rows, and words for every value."""

import datetime as dt
import json

import pytest

from portal.dashboard import dev, figures
from portal.dashboard.figures import Series

DAYS = [dt.date(2026, 7, 7) + dt.timedelta(days=n) for n in range(26)]


@pytest.mark.parametrize("name", sorted(dev.FIGURES))
def test_a_figure_is_plain_json_painted_with_tokens(name):
    text = json.dumps(dev.FIGURES[name]())
    assert "var(--" in text and "#" not in text
    assert "bdata" not in text  # no packed arrays: the bundle reads them, a person cannot


def test_agents_are_solid_squares_and_people_dashed_discs():
    figure = figures.lines_by_day(DAYS[:2], [Series("A", "agent", [1, 2]), Series("P", "human", [3, None])])
    agent, human = figure["data"]
    assert agent["line"] == {"color": "var(--agent)", "width": 2, "dash": "solid"}
    assert human["line"]["dash"] == "6px,3px" and human["y"] == [3, None] and human["text"] == ["3", "–"]


def test_days_are_ticked_from_the_first_to_the_last():
    axis = figures.lines_by_day(DAYS, [])["layout"]["xaxis"]
    assert axis["ticktext"][0] == "7\u00a0Jul" and axis["ticktext"][-1] == "1\u00a0Aug"
    assert 4 <= len(axis["ticktext"]) <= 6


def test_a_point_leads_to_its_rows():
    figure = figures.stacked_columns(DAYS[:1], [Series("Jobs", "agent", [4], urls=["/jobs/?day=2026-07-07"])])
    assert figure["data"][0]["customdata"] == ["/jobs/?day=2026-07-07"]


def test_a_heatmap_has_five_even_steps_on_the_scale_it_is_given():
    trace = figures.hour_of_week([[0.01] * 24] * 7, "human", top=0.02)["data"][0]
    assert (trace["zmin"], trace["zmax"]) == (0, 0.02)
    assert len({colour for _, colour in trace["colorscale"]}) == 5


def test_a_pair_without_people_has_no_ratio():
    figure = figures.dot_pairs(["All"], Series("A", "agent", [3.0]), Series("P", "human", [0.0]))
    assert "–" in [note["text"] for note in figure["layout"]["annotations"]]
