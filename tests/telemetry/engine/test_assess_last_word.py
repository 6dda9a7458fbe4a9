"""Of several records of a job an assessment counts the one that ingest would keep, whatever was cut where."""

import io
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st

from telemetry.engine.assessment.assessor import Assessment, Assessor
from telemetry.engine.assessment.figures.kinds import Reading
from telemetry.engine.assessment.frames import Known
from telemetry.engine.reports import Known as KnownReport
from telemetry.engine.reports import judge_report
from telemetry.engine.slurm.records import JobRecord, content_digest
from telemetry.engine.slurm.sacct_text import SacctReader
from telemetry.engine.touched import Footprint
from tests.telemetry.engine.sacct_texts import NOW_S, row, text

LIVE = {"End": "Unknown", "State": "RUNNING"}
# One job, told of in many ways.
TOLD = (
    {"State": "PENDING", "Start": "Unknown", "End": "Unknown", "Elapsed": "00:00:00"},
    {**LIVE, "Elapsed": "00:10:00"}, {**LIVE, "Elapsed": "00:20:00"},
    {**LIVE, "State": "SUSPENDED", "Elapsed": "00:05:00"}, {"State": "REQUEUED"},
    {}, {"NCPUS": "16"}, {"Account": "physics"}, {"State": "FAILED", "ExitCode": "1:0"},
    {"State": "CANCELLED by 7", "Elapsed": "00:30:00", "End": "2026-07-01T10:35:00"},
)  # fmt: skip


def assess(dumps: Sequence[bytes]) -> Assessment:
    """Assess dumps as the command does: once more where records of an ended job differ."""
    assessor: Assessor | None = Assessor(now_s=NOW_S, known=Known())
    while assessor is not None:
        last = assessor
        for dump in dumps:
            last.read(io.BytesIO(dump))
        assessor = last.again()
    return last.finish()


def kept_at_ingest(lines: Sequence[str]) -> list[str]:
    """The lines that ingest would keep: one a job."""
    known: dict[tuple[int, int], tuple[str, KnownReport]] = {}
    for line in lines:
        (job,) = (one for one in SacctReader(io.BytesIO(text(line)), now_s=NOW_S) if isinstance(one, JobRecord))
        key, digest = (job.raw_job_id, job.submit_s), content_digest(job)
        before = known[key][1] if key in known else None
        told = {"state": job.state, "start_s": job.start_s, "elapsed_s": job.elapsed_s}
        if judge_report(before, digest=digest, **told) in ("created", "updated"):  # type: ignore[arg-type]
            footprint = Footprint(0, job.submit_s, job.start_s, job.end_s, job.elapsed_s, ())
            known[key] = line, KnownReport(digest, job.state, footprint)
    return [line for line, _ in known.values()]


def said(found: Assessment) -> tuple[object, ...]:
    reading = Reading(found)
    names = ("submissions", "over", "failed", "cancelled", "core_s", "wall_s", "gpu_s", "lost_core_s")
    gaps = sorted((one.outcome, one.jobs) for one in found.gaps)
    accounts = found.sums.accounts.table().rows()
    return found.jobs, found.live, [reading.sum(name) for name in names], gaps, accounts


@settings(max_examples=30, deadline=None)
@given(
    told=st.lists(st.tuples(st.integers(1, 3), st.sampled_from(TOLD)), min_size=1, max_size=10),
    cuts=st.lists(st.integers(0, 10), max_size=3),
)
@example(told=[(1, TOLD[5]), (1, TOLD[6]), (1, TOLD[5])], cuts=[])
@example(told=[(1, TOLD[5]), (1, TOLD[4]), (1, TOLD[0])], cuts=[1, 2])
def test_the_record_that_counts_is_the_one_that_ingest_keeps(
    told: list[tuple[int, dict[str, str]]], cuts: list[int]
) -> None:
    lines = [row(JobID=str(number), JobIDRaw=str(number), **values) for number, values in told]
    edges = [0, *sorted(min(cut, len(lines)) for cut in cuts), len(lines)]
    found = assess([text(*lines[first:behind]) for first, behind in pairwise(edges)])
    kept = kept_at_ingest(lines)
    assert said(found) == said(assess([text(*kept)]))
    assert found.repeated == len(lines) - len(kept)


def test_dumps_are_read_once_where_no_record_differs() -> None:
    assessor = Assessor(now_s=NOW_S, known=Known())
    for _ in range(2):
        assessor.read(io.BytesIO(text(row(), row(JobIDRaw="2", **LIVE))))
    assert assessor.again() is None
    assessor.read(io.BytesIO(text(row(NCPUS="16"))))
    assert assessor.again() is not None


def test_many_jobs_that_a_later_dump_corrects_count_as_it_says() -> None:
    first = text(*(row(JobID=str(n), JobIDRaw=str(n)) for n in range(1, 3001)))
    second = text(*(row(JobID=str(n), JobIDRaw=str(n), NCPUS="2") for n in range(3000, 1000, -1)))
    found = assess([first, second])
    assert (found.jobs, found.repeated) == (3000, 2000)
    assert Reading(found).sum("core_s") == 3600 * (1000 * 8 + 2000 * 2)
