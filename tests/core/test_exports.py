"""Exports hold the rows they are given, and nothing a spreadsheet would run."""

import csv
import io
import json
from datetime import UTC, datetime

import pytest

from portal.core.errors import Invalid
from portal.core.exports import export

ROWS = [
    {"id": 1, "title": 'says "hello", twice', "at": datetime(2026, 8, 3, 10, 4, tzinfo=UTC), "more": "left out"},
    {"id": -2, "title": "=HYPERLINK(1)", "at": None},
]


def test_csv_holds_the_rows_and_disarms_formulas() -> None:
    answer = export("csv", "things", ["id", "title", "at"], ROWS)
    assert list(csv.reader(io.StringIO(answer.content.decode()))) == [
        ["id", "title", "at"],
        ["1", 'says "hello", twice', "2026-08-03T10:04:00Z"],
        ["-2", "'=HYPERLINK(1)", ""],
    ]
    assert answer["Content-Disposition"] == 'attachment; filename="things.csv"'


@pytest.mark.parametrize("rows", [[], ROWS[:1], ROWS])
def test_json_holds_the_rows_as_they_are(rows: list) -> None:
    found = json.loads(export("json", "things", ["id", "title"], rows).content)
    assert found == [{"id": row["id"], "title": row["title"]} for row in rows]


def test_another_format_is_refused_with_what_there_is() -> None:
    with pytest.raises(Invalid, match="no export as exe") as refusal:
        export("exe", "things", [], [])
    assert "csv or json" in refusal.value.remedy
