"""Blocks of lines read in columns say what the row reader says, line for line."""

import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from telemetry.engine.slurm.bulk import BulkReader
from tests.telemetry.engine.bulk_outcomes import read_by_rows, read_in_blocks
from tests.telemetry.engine.sacct_texts import COLUMNS, NOW_S, many_rows, row, text

ODD = (
    "", "nonsense", "|" * (len(COLUMNS) - 1), row() + "|", "|".join(COLUMNS), row(JobName="a|b"), row(JobName="a\nb"),
    row(Comment="campaign=spring"), row(SubmitLine="sbatch \u202e\U0001f600"), row(User=""), row(JobName="\ufffd"),
    row(JobID="101.batch", JobIDRaw="101.batch", User=""), row(JobID="101_3.0", JobIDRaw="104.0"),
    row(JobID="101_[3-9%2]", State="PENDING", Start="Unknown", End="Unknown"), row(JobID="101+1"), row(JobID="102"),
    row(JobID="101", JobIDRaw=""), row(JobIDRaw="1x"), row(JobID=""),
)  # fmt: skip
VALUES = {
    "JobID": ["101_7", "101+0", "10\u0661", "9" * 19],
    "State": ["RUNNING", "PENDING", "CANCELLED by 7", "CANCELLED+", "REQUEUED", "NOVEL", ""],
    "Submit": ["2026-07-01T24:00:00", "2026-02-29T10:00:00", "1782900000", "Unknown", "2099-01-01T00:00:00", ""],
    "Start": ["Unknown", "None", "2026-07-01T12:00:00", "2026-07-01T10:00:60", "0026-07-01T10:00:00", ""],
    "End": ["Unknown", "2026-07-01T09:00:00", "2027-07-01T09:00:00", "2026-W27-3T10:00:0"],
    "Eligible": ["Unknown", "", "2026-07-01t10:00:00"],
    "Elapsed": [
        "32-00:00:00",
        "INVALID",
        "00:10",
        "x",
        "123456-00:00:01",
        "100:00:00",
        "00:10:00.5",
        "99:99:99",
        "-01:00:00",
    ],
    "Timelimit": ["UNLIMITED", "Partition_Limit", "1-1:1:1"],
    "NodeList": ["None assigned", ""],
    "NNodes": ["", "0", "1K", "99999999999999P"],
    "ReqMem": ["16?", "2048Mc", "4194304Tn", "18446744073709551614"],
    "AllocTRES": ["", "cpu=4,gres/gpu:b=1,gres/gpu:a=1", "mem=1E,node=9", "cpu"],
    "UID": ["", "4294967294", "-1"],
    "ExitCode": ["1:0", "", "9"],
    "Comment": ['{"campaign":"x"}', "campaign=y", "a,b"],
}
CHANGED = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in VALUES.items()})
LINES = st.lists(st.just(row()) | st.just(row()) | st.sampled_from(ODD) | CHANGED.map(lambda values: row(**values)))


@settings(max_examples=150, deadline=None)
@example(lines=[row(), "tail", row()], end="\n", block_bytes=300, block_rows=1)
@example(lines=[row(), row(), "x"], end="", block_bytes=600, block_rows=1)
@given(
    lines=LINES, end=st.sampled_from(["\n", ""]), block_bytes=st.sampled_from([1, 300, 700, 10_000]),
    block_rows=st.sampled_from([1, 2, 1000]),
)  # fmt: skip
def test_any_text_in_blocks_of_any_size_reads_as_row_by_row(
    lines: list[str], end: str, block_bytes: int, block_rows: int
) -> None:
    data = ("\n".join(["|".join(COLUMNS), *lines]) + end).encode()

    told = read_in_blocks(data, now_s=NOW_S, block_bytes=block_bytes, block_rows=block_rows)

    assert told == read_by_rows(data, now_s=NOW_S)


@pytest.mark.parametrize("name", sorted(VALUES))
def test_each_odd_value_reads_as_by_itself_among_plain_rows(name: str) -> None:
    for value in VALUES[name]:
        data = text(row(), row(), row(**{name: value}), row(), row(), row())

        assert read_in_blocks(data, now_s=NOW_S, block_bytes=10_000) == read_by_rows(data, now_s=NOW_S), value


@pytest.mark.parametrize("value", ["", "60", "0", "1K", "x", "9" * 18, "9" * 19])
def test_elapsed_seconds_go_before_elapsed_time_as_row_by_row(value: str) -> None:
    columns = (*COLUMNS, "ElapsedRaw")
    times = ("01:00:00", "1-00:00:00", "INVALID", "x", "")
    data = text(*(row(columns, Elapsed=time, ElapsedRaw=value) for time in times), columns=columns)

    assert read_in_blocks(data, now_s=NOW_S, block_bytes=10_000) == read_by_rows(data, now_s=NOW_S)


@settings(max_examples=30, deadline=None)
@given(noise=st.binary(max_size=600), block_bytes=st.sampled_from([50, 1000]))
def test_random_bytes_among_plain_rows_read_as_row_by_row(noise: bytes, block_bytes: int) -> None:
    data = text(row(), row()) + noise + b"\n" + text(row(), row(), columns=COLUMNS).partition(b"\n")[2]

    assert read_in_blocks(data, now_s=NOW_S, block_bytes=block_bytes) == read_by_rows(data, now_s=NOW_S)


def test_columns_that_have_no_place_and_names_of_our_own_do_not_meet() -> None:
    columns = (*COLUMNS, "line", "tail", "Started", "Text", "CPUTime", "Restarts")
    rows = [f"{row()}|{number}|x|{number % 2}|a b|00:00:10|2" for number in range(9)]
    data = text(*rows, columns=columns)

    told = read_in_blocks(data, now_s=NOW_S, block_bytes=10_000)

    assert told == read_by_rows(data, now_s=NOW_S)
    assert [getattr(job, "extra", {}).get("line") for job in told] == list("012345678")


def test_most_of_a_plain_file_is_read_in_columns() -> None:
    data = b"".join(many_rows(3000))
    reader = BulkReader(io.BytesIO(data), now_s=NOW_S, block_bytes=300_000, block_rows=500)

    blocks = list(reader)

    assert sum(len(block.columns.jobs) for block in blocks if block.columns) > 2990
    assert (reader.offset, reader.next_line) == (len(data), 3002)
    assert read_in_blocks(data, now_s=NOW_S, block_bytes=300_000) == read_by_rows(data, now_s=NOW_S)


def test_reading_resumes_behind_any_block() -> None:
    lines = [row() if number % 7 else row(JobName=f"a\n{number}") for number in range(60)]
    data = text(*lines)
    whole = read_by_rows(data, now_s=NOW_S)
    reader, read = BulkReader(io.BytesIO(data), now_s=NOW_S, block_bytes=2000, block_rows=3), 0
    for block in reader:
        read += (len(block.columns.jobs) if block.columns else 0) + len(block.odd)
        rest = BulkReader(
            io.BytesIO(data[block.offset :]), now_s=NOW_S, header=reader.header, start_line=block.next_line,
            offset=block.offset, block_rows=3,
        )  # fmt: skip
        found = sum((len(each.columns.jobs) if each.columns else 0) + len(each.odd) for each in rest)
        assert read + found == len(whole)
        assert (rest.offset, rest.next_line) == (len(data), data.count(b"\n") + 1)
