"""Random people write random text: what comes back is what they wrote, or nothing."""

import io

from hypothesis import example, given, settings
from hypothesis import strategies as st

from telemetry.engine.slurm.columns import compile_plan, split_ways
from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.records import JobRecord, Rejected
from telemetry.engine.slurm.sacct_text import SacctReader
from telemetry.engine.slurm.xdmod_text import XdmodReader
from tests.telemetry.engine.sacct_texts import COLUMNS, NOW_S, row, text

FREE_LAST = (*COLUMNS[:-2], "ExitCode", "SubmitLine")
NEIGHBOURS = (
    *COLUMNS[:3],
    "Comment",
    "JobName",
    *(c for c in COLUMNS[3:] if c not in ("Comment", "JobName")),
)
WRITTEN = st.text("ab01|\n:- COMPLETED", max_size=12) | st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8
)
FIELDS = st.fixed_dictionaries(
    {"JobName": WRITTEN, "Comment": WRITTEN, "WorkDir": WRITTEN, "SubmitLine": WRITTEN},
)


def told(job: JobRecord) -> dict[str, str]:
    return {
        "JobName": job.job_name,
        "Comment": job.comment,
        "WorkDir": job.work_dir,
        "SubmitLine": job.submit_line,
    }


@settings(max_examples=400, deadline=None)
@given(
    st.lists(FIELDS, min_size=1, max_size=5),
    st.sampled_from([COLUMNS, FREE_LAST, NEIGHBOURS, COLUMNS[::-1]]),
)
@example([dict.fromkeys(["JobName", "Comment", "WorkDir", "SubmitLine"], "1|1\n1|1")] * 2, FREE_LAST)
def test_a_row_comes_back_as_written_or_is_set_aside(written: list[dict[str, str]], columns: tuple[str, ...]) -> None:
    rows = [row(columns, JobID=str(n), JobIDRaw=str(n), **fields) for n, fields in enumerate(written, start=1)]
    data = text(*rows, columns=columns)
    outcomes = list(SacctReader(io.BytesIO(data), now_s=NOW_S))
    jobs = [outcome for outcome in outcomes if isinstance(outcome, JobRecord)]
    for job in jobs:
        assert told(job) == written[job.raw_job_id - 1]
        assert (job.user, job.elapsed_s, job.node_list) == ("ada", 3600, "gpu-1")
    set_aside = "\n".join(outcome.raw for outcome in outcomes if isinstance(outcome, Rejected))
    kept = {job.raw_job_id for job in jobs}
    assert len(kept) == len(jobs)
    for number, line in enumerate(rows, start=1):
        assert number in kept or line.strip("\n") in set_aside


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400), st.sampled_from([COLUMNS, FREE_LAST]))
def test_random_bytes_never_break_the_readers(noise: bytes, columns: tuple[str, ...]) -> None:
    data = text(row(columns), columns=columns) + noise + b"\n" + row(columns, JobID="9", JobIDRaw="9").encode() + b"\n"
    outcomes = list(SacctReader(io.BytesIO(data), now_s=NOW_S))
    assert outcomes
    for reader in (SacctReader, XdmodReader):
        try:
            list(reader(io.BytesIO(noise), now_s=NOW_S))
        except FormatError:
            continue


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["1", "RUNNING", "FAILED", "x", "", "2026-07-01T10:00:00"]), max_size=9))
def test_ways_are_counted_like_trying_all_of_them(fields: list[str]) -> None:
    plan = compile_plan("JobID|JobName|User|State|Comment|Submit|Start|End")

    def tries(column: int, rest: list[str]) -> list[list[str]]:
        if column == plan.width:
            return [] if rest else [[]]
        check = plan.checks[column]
        found = []
        for taken in [1] if check else range(1, len(rest) + 1):
            value = "|".join(rest[:taken])
            if len(rest) < taken or (check and not fits(column, value)):
                continue
            found += [[value, *tail] for tail in tries(column + 1, rest[taken:])]
        return found

    def fits(column: int, value: str) -> bool:
        try:
            check = plan.checks[column]
            assert check is not None
            check(value)
        except ValueError:
            return False
        return True

    grown = ["7", *fields, "x", "ada", "RUNNING", "note", "2026-07-01T10:00:00", "Unknown", "Unknown"]
    expected = tries(0, grown)
    count, values = split_ways(plan, grown)
    assert count == min(2, len(expected))
    assert values == (expected[0] if len(expected) == 1 else [])
