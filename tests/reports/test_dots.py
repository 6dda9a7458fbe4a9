"""Short tables of commands as dots: one scale for all rows, words for who cannot see it, gaps for what is withheld."""

from typing import Any

import pytest

from portal.reports import dots, drawing


def figure(key: str, columns: list[str], rows: list[tuple[str, list[Any]]], unit: str = "calls") -> dict[str, Any]:
    return {
        "key": key, "title": "Commands",
        "columns": [{"key": column, "title": column, "unit": unit} for column in columns],
        "rows": [{"key": row, "label": row.capitalize(), "values": values} for row, values in rows],
    }  # fmt: skip


def drawn(*args: Any, **more: Any) -> dict[str, Any]:
    found = dots.dots_of(figure(*args, **more), drawing.shown)
    assert found is not None
    return found


def marks(found: dict[str, Any]) -> list[list[tuple[str, str]]]:
    return [[(mark["kind"], mark["x"]) for mark in line["marks"]] for line in found["lines"]]


def test_agents_stand_beside_people_on_one_scale() -> None:
    found = drawn("file-tools", ["agent", "human", "times"], [("cat", [40, 10, 4]), ("sed", [20, None, None])])
    assert marks(found) == [[("agent", "98.0"), ("human", "26.0")], [("agent", "50.0")]]
    assert (found["is_log"], [tick["words"] for tick in found["ticks"]]) == (False, ["0", "10", "20", "30", "40"])
    assert found["label"] == "Commands. Cat: agents 40, people 10; Sed: agents 20."
    assert (found["lines"][0]["link"], found["lines"][1]["link"]) == (("26.0", "98.0"), None)


def test_numbers_far_apart_stand_on_powers_of_ten_and_zero_a_step_before() -> None:
    found = drawn("file-tools", ["agent", "human"], [("cat", [1000, 1]), ("vim", [0, 10])])
    assert found["is_log"]
    assert [tick["words"] for tick in found["ticks"]] == ["0", "1", "10", "100", "1,000"]
    assert marks(found) == [[("agent", "98.0"), ("human", "26.0")], [("agent", "2.0"), ("human", "50.0")]]


def test_medians_have_their_bounds_and_few_people_have_no_dot() -> None:
    columns = ["value", "low", "high", "people"]
    found = drawn(
        "loop-time", columns, [("agent", [900, 600, 1200, 9]), ("human", [None] * 4), ("harness-codex", [300] * 4)],
        unit="s",
    )  # fmt: skip
    assert [line["name"] for line in found["lines"]] == ["Agent", "Harness-codex"]
    assert (found["has_bounds"], found["lines"][0]["marks"][0]["ends"]) == (True, ("50.0", "98.0"))
    assert "agents 15 min (10 min to 20 min)" in found["label"].replace("\u00a0", " ").replace(" 00 s", "")
    assert [tick["words"].replace("\u00a0", " ") for tick in found["ticks"]] == [
        "0 s",
        "5 min",
        "10 min",
        "15 min",
        "20 min",
    ]


def test_shares_within_some_minutes_are_a_line_each() -> None:
    columns = ["within_10", "within_30", "loops"]
    rows = [("agent", [0.4, 0.8, 90]), ("human", [0.2, 0.4, 40]), ("harness-codex", [0.4, 0.8, 9])]
    found = drawn("loops-closed", columns, rows, unit="share")
    assert marks(found) == [[("agent", "50.0"), ("human", "26.0")], [("agent", "98.0"), ("human", "50.0")]]


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        (["agent", "human", "unknown"], [("both", [1, 2, 3]), ("one", [1, 2, 3])]),
        (["jobs", "share"], [("a", [1, 2]), ("b", [3, 4])]),
        (["agent", "human"], [("a", [None, None])]),
        (["agent", "human"], [("a", [0, 0])]),
        (["agent", "human"], []),
        ([], []),
    ],
)
def test_there_is_no_picture_of_what_sets_nothing_beside_anything(columns: list[str], rows: Any) -> None:
    assert dots.dots_of(figure("similar-jobs", columns, rows), drawing.shown) is None


@pytest.mark.parametrize("most", [0.0007, 0.2, 1, 3, 7, 9.99, 30, 97, 1234, 86_400 * 90])
@pytest.mark.parametrize("unit", ["calls", "s", "share"])
def test_a_scale_holds_what_is_on_it_in_a_few_steps(most: float, unit: str) -> None:
    found = drawn("file-tools", ["agent", "human"], [("a", [most, most / 2])], unit=unit)
    assert 2 <= len(found["ticks"]) <= 6
    assert all(2 <= float(mark["x"]) <= 98 for line in found["lines"] for mark in line["marks"])
