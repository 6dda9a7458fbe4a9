"""Exports of GPU use, laid upon the jobs of the dumps: four quadrants, their threshold, and who was not measured."""

import io
from dataclasses import asdict
from typing import Any

import pytest

from telemetry.engine.assessment.assessor import Assessment, Assessor
from telemetry.engine.assessment.figures import content_of
from telemetry.engine.assessment.frames import Known
from telemetry.engine.assessment.gpus import Readings
from telemetry.engine.gpu_use import classify
from telemetry.engine.slurm.errors import FormatError
from tests.telemetry.engine.gpu_texts import export, sample
from tests.telemetry.engine.sacct_texts import NOW_S, row, text

KNOWN = Known(frozenset({"bot"}))
JOBSTATS = (
    b"JobIDRaw,End,node,gpu,gpu_utilization,gpu_used_memory,gpu_total_memory\n1,2026-07-01T11:05:00,g1,0,80,70,80\n"
)


def assess(dump: bytes, *exports: bytes, known: Known = KNOWN) -> Assessment:
    readings = Readings()
    for one in exports:
        readings.read(io.BytesIO(one))
    assessor = Assessor(now_s=NOW_S, known=known, readings=readings if exports else None)
    assessor.read(io.BytesIO(dump))
    return assessor.finish()


def figure(found: Assessment, key: str) -> dict[str, Any]:
    figures = (one for section in content_of(found, cluster="").sections for one in section.figures)
    one = asdict(next(one for one in figures if one.key == key))
    return one | {"rows": {each["key"]: each["values"] for each in one["rows"]}}


def jobs(count: int, **values: str) -> list[str]:
    return [row(JobID=str(n), JobIDRaw=str(n), **values) for n in range(1, count + 1)]


USES = {1: (80, 70), 2: (50, 50), 3: (80, 10), 4: (10, 80), 5: (49.9, 49.9)}


def test_jobs_fall_into_the_quadrants_of_their_means_with_the_threshold_written_on_the_figure() -> None:
    dump = text(*jobs(6), row(JobIDRaw="7", AllocTRES="cpu=8,node=1"))
    lines = [sample(job, f"{job}{gpu}", *use) for job, use in USES.items() for gpu in "ab"]
    found = figure(assess(dump, export(*lines)), "gpu-use")
    both, compute, memory, low = (
        sum(classify(*use).value == name for use in USES.values()) / 5 for name in ("both", "compute", "memory", "low")
    )
    assert found["rows"]["unknown"] == (both, compute, memory, low, 5, 1)
    assert found["rows"]["agent"] == (None, None, None, None, 0, 0)
    assert (found["value"], found["unknown_share"]) == (pytest.approx(0.6), 1.0)
    assert "heavy is a mean of 50" in found["definition"]
    assert "Measured: 5 of 6 jobs (83.3%)." in found["note"]


def test_gpus_of_one_job_are_taken_together_and_the_later_reading_of_one_counts() -> None:
    lines = [sample(1, "a", 90, 20), sample(1, "b", 30, 20)]
    found = assess(text(*jobs(1)), export(sample(1, "a", 0, 0, "2026-07-01T10:30:00")), export(*lines))
    assert figure(found, "gpu-use")["rows"]["all"][:4] == (0, 1, 0, 0)
    stranded, measured, share, held = figure(found, "gpu-stranded")["rows"]["all"]
    assert (measured, held) == (2, 2)
    assert (stranded, share) == (pytest.approx(0.8), pytest.approx(0.4))


def test_a_reading_is_of_the_run_that_had_begun_last_and_of_none_long_after_its_end() -> None:
    second = {"Submit": "2026-07-01T11:05:00", "Start": "2026-07-01T11:06:00", "End": "2026-07-01T12:06:00"}
    dump = text(row(JobIDRaw="1", User="bot"), row(JobIDRaw="1", **second), *jobs(2)[1:])
    lines = [
        sample(1, "a", 90, 90, "2026-07-01T11:05:00"), sample(1, "a", 10, 10, "2026-07-01T12:10:00"),
        sample(2, "a", 90, 90, "2026-07-01T11:10:01"), sample(99, "a", 90, 90),
    ]  # fmt: skip
    # One file makes one mean of samples of one job and GPU; two runs come in two.
    found = figure(assess(dump, export(lines[0]), export(*lines[1:])), "gpu-use")
    assert found["rows"]["agent"] == (1, 0, 0, 0, 1, 0)
    assert found["rows"]["unknown"] == (0, 0, 0, 1, 1, 1)
    assert "2 of 4 readings are of no job of the dumps." in found["note"]


def test_jobstats_is_told_by_its_header_and_its_memory_is_said_to_be_a_peak() -> None:
    found = figure(assess(text(*jobs(1)), JOBSTATS), "gpu-use")
    assert found["rows"]["unknown"] == (1, 0, 0, 0, 1, 0)
    assert "Of 1 memory is the peak" in found["note"]


def test_lines_that_cannot_be_taken_are_counted_with_their_reason() -> None:
    found = figure(assess(text(*jobs(1)), export(sample(1, "a", 900, 10), "broken", sample(1, "b", 90, 90))), "gpu-use")
    assert "Lines of the exports set aside: 2 (" in found["note"] and "columns 1" in found["note"]


def test_without_exports_it_is_said_what_it_would_take() -> None:
    assert "--gpu" in figure(assess(text(*jobs(1))), "gpu-use")["needs"]
    assert figure(assess(text(*jobs(1)), export()), "gpu-use")["rows"]["unknown"] == (None, None, None, None, 0, 1)


@pytest.mark.parametrize("content", [b"", b"a,b,c\n1,2,3\n", b"JobID|State\n1|COMPLETED\n"])
def test_what_is_no_export_is_an_error(content: bytes) -> None:
    with pytest.raises(FormatError):
        Readings().read(io.BytesIO(content))
