"""Packed tables come out as they went in."""

from collections import Counter

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine.packed import pack_frame, sum_packed, unpack, unpack_frame

ROWS = st.dictionaries(st.tuples(st.integers(0, 3), st.integers(0, 40)), st.integers(0, 2**62), max_size=20)


@given(ROWS)
def test_what_is_packed_comes_out_again(rows: dict[tuple[int, int], int]) -> None:
    frame = pl.DataFrame(
        [(key, cell, number) for (key, cell), number in rows.items()],
        schema={"key": pl.Int64, "cell": pl.Int64, "number": pl.Int64}, orient="row",
    )  # fmt: skip
    packed = pack_frame(frame.sort("cell"), ["key"], ["cell", "number"], "text")
    by_text = {(key, cell): number for key, text in packed.iter_rows() for cell, number in unpack(text)}
    back = unpack_frame(packed, "text", ["cell", "number"])
    assert by_text == rows
    assert {(key, cell): number for key, cell, number in back.iter_rows()} == rows
    for _, text in packed.iter_rows():
        cells = [cell for cell, _ in unpack(text)]
        assert cells == sorted(cells)


def test_nothing_packed_is_no_row() -> None:
    frame = pl.DataFrame({"key": [1, 2], "text": ["", "3:4"]})
    assert unpack_frame(frame, "text", ["cell", "number"]).rows() == [(2, 3, 4)]
    assert list(unpack("")) == []


@given(st.lists(st.dictionaries(st.integers(0, 40), st.integers(0, 10**12)), max_size=5))
def test_packed_tables_are_added_up(tables: list[dict[int, int]]) -> None:
    texts = [" ".join(f"{key}:{number}" for key, number in table.items()) for table in tables]
    expected: Counter[int] = Counter()
    for table in tables:
        expected.update(table)
    assert sum_packed(texts) == expected
