"""An assessment sums what the row reader reads, whichever way a log was cut into dumps."""

import io
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telemetry.engine.assessment.assessor import Assessment, Assessor
from telemetry.engine.assessment.figures import content_of
from telemetry.engine.assessment.figures.kinds import Reading
from telemetry.engine.assessment.frames import Known, Marker
from telemetry.engine.assessment.seen import Seen
from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.records import JobRecord, Rejected, StepSeen
from telemetry.engine.slurm.sacct_text import SacctReader
from telemetry.engine.tallies import Tally
from tests.telemetry.engine.sacct_texts import COLUMNS, NOW_S, many_rows, row, text
from tests.telemetry.engine.shared import shared_file
from tests.telemetry.usage_by_hand import histogram_bucket

STEP = row(JobID="101.batch", JobIDRaw="101.batch", User="")
RUNNING = {"State": "RUNNING", "End": "Unknown"}


def assess(*dumps: bytes, known: Known | None = None, cluster: str = "") -> Assessment:
    """Assess dumps, in their order."""
    assessor = Assessor(now_s=NOW_S, known=known or Known(), cluster=cluster)
    for dump in dumps:
        assessor.read(io.BytesIO(dump))
    return assessor.finish()


def told(found: Assessment) -> str:
    """The whole content of an assessment."""
    return json.dumps(content_of(found, cluster="aster").as_json(), sort_keys=True)


def figure(found: Assessment, key: str) -> dict[str, Any]:
    """One figure of an assessment, with its rows by their key."""
    figures = (one for section in content_of(found, cluster="").sections for one in section.figures)
    one = asdict(next(one for one in figures if one.key == key))
    return one | {"rows": {each["key"]: each["values"] for each in one["rows"]}}


def records(dump: bytes) -> list[JobRecord]:
    """What the row reader makes of a dump."""
    return [one for one in SacctReader(io.BytesIO(dump), now_s=NOW_S) if isinstance(one, JobRecord)]


MANY = b"".join(many_rows(3000))


def test_sums_are_those_of_the_records_one_by_one() -> None:
    jobs, reading = records(MANY), Reading(assess(MANY))
    ran, states = [job for job in jobs if job.started], Counter(job.state for job in jobs)
    sums = {
        "submissions": len(jobs), "over": len(jobs), "ran": len(ran), "never_started": len(jobs) - len(ran),
        "cancelled": states["CANCELLED"], "failed": states["FAILED"], "timeout": states["TIMEOUT"],
        "within_minute": sum(job.elapsed_s <= 60 for job in ran), "wall_s": sum(job.elapsed_s for job in ran),
        "core_s": sum(job.elapsed_s * job.cpus for job in ran), "gpu_s": sum(job.elapsed_s * job.gpus for job in ran),
        "node_s": sum(job.elapsed_s * job.nodes for job in ran),
        "wait_s": sum(max(0, (job.start_s or 0) - job.submit_s) for job in ran),
    }  # fmt: skip
    assert {name: reading.sum(name) for name in sums} == sums
    assert reading.people() == len({job.user for job in jobs})
    runtimes = {bucket: jobs for bucket, _, jobs in reading.found.sums.runtimes.table().iter_rows()}
    assert runtimes == Counter(histogram_bucket(job.elapsed_s) for job in ran)


ODD = (
    STEP, row(JobName="a|b", JobIDRaw="7"), row(JobName="a\nb", JobIDRaw="8"), row(JobIDRaw="9", **RUNNING),
    row(JobID="11_[3-9]", JobIDRaw="11", State="PENDING", Start="Unknown", End="Unknown", NodeList="None assigned"),
    row(JobIDRaw="12", State="NOVEL"), row(JobIDRaw="13", NNodes="99999999999999P"), "nonsense",
    row(JobIDRaw="14", End="2026-07-01T09:00:00"), row(), row(),
)  # fmt: skip
ROWS = [line.decode().rstrip("\n") for line in many_rows(60)][1:]


@settings(max_examples=25, deadline=None)
@given(
    lines=st.permutations([*ODD, *ROWS]),
    cuts=st.lists(st.integers(0, len(ODD) + len(ROWS)), max_size=4),
    orders=st.randoms(use_true_random=False),
)
def test_any_cut_into_dumps_in_any_order_gives_the_same_report(
    lines: Sequence[str], cuts: Sequence[int], orders: Any
) -> None:
    known = Known(frozenset({"u03", "ada"}))
    # A line that is none would be part of the record before it: what belongs together is cut nowhere.
    whole = [line for line in lines if line != "nonsense"]
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    parts = [text(*whole[first:behind]) for first, behind in pairwise(edges)]
    orders.shuffle(parts)
    assert told(assess(*parts, known=known)) == told(assess(text(*whole), known=known))


@settings(max_examples=60, deadline=None)
@given(lines=st.lists(st.sampled_from([*ODD, *ROWS[:5]])))
def test_every_record_is_counted_somewhere(lines: Sequence[str]) -> None:
    dump = text(*lines)
    outcomes = list(SacctReader(io.BytesIO(dump), now_s=NOW_S))
    found = assess(dump)
    kinds = Counter(type(one) for one in outcomes)
    assert found.lines.steps == kinds[StepSeen]
    assert found.lines.jobs + sum(found.lines.rejected.values()) == kinds[JobRecord] + kinds[Rejected]
    assert found.jobs == len({(job.raw_job_id, job.submit_s) for job in records(dump) if job.nodes < 2**31})


def test_dumps_that_overlap_count_a_job_once() -> None:
    lines = MANY.splitlines(keepends=True)
    first, second = b"".join(lines[:2001]), b"".join([lines[0], *lines[1500:]])
    found = assess(first, second)
    assert found.repeated == 501
    assert Reading(found).sum("core_s") == Reading(assess(MANY)).sum("core_s")


@pytest.mark.parametrize("order", [1, -1])
def test_a_job_that_one_dump_saw_running_counts_as_it_ended(order: int) -> None:
    dumps = [text(row(**RUNNING, Elapsed="00:10:00")), text(row())]
    found = assess(*dumps[::order])
    assert (found.jobs, found.live, found.repeated) == (1, 0, 1)
    assert Reading(found).sum("wall_s") == 3600


def test_a_job_that_still_runs_counts_as_far_as_it_was_seen() -> None:
    reading = Reading(assess(text(row(**RUNNING, Elapsed="00:10:00")), text(row(**RUNNING, Elapsed="00:20:00"))))
    assert (reading.found.jobs, reading.found.live) == (1, 1)
    assert (reading.sum("core_s"), reading.sum("over")) == (1200 * 8, 0)


def test_who_is_not_known_is_not_attributed_and_never_a_person() -> None:
    found = assess(MANY)
    share = figure(found, "share-submissions")
    assert (share["value"], share["unknown_share"]) == (None, 1.0)
    assert "human" not in told(found)


def test_agents_are_known_by_their_login_names_and_by_markers() -> None:
    dump = text(
        row(User="bot"), row(JobIDRaw="2", Comment="run by agent=claude"), row(JobIDRaw="3", Comment="agent"),
        row(JobIDRaw="4", User="cy", JobName="x|y", Comment="agent=codex", SubmitLine="sbatch b.sh"),
        row(JobIDRaw="5", User="cy"),
    )  # fmt: skip
    found = assess(dump, known=Known(frozenset({"bot"}), (Marker("comment", "*agent=*"),)))
    assert figure(found, "share-submissions")["rows"] == {"agent": (3, 0.6), "unknown": (2, 0.4)}
    assert figure(found, "share-people")["rows"] == {"agent": (3, 1.0), "unknown": (0, 0.0)}


def test_a_marker_may_stand_in_a_column_without_a_place_of_its_own() -> None:
    columns = [*COLUMNS, "WCKey"]
    dump = text(f"{row()}|agent", f"{row(JobIDRaw='2')}|", columns=columns)
    found = assess(dump, known=Known(markers=(Marker("WCKey", "agent"),)))
    assert figure(found, "share-submissions")["value"] == 0.5


@pytest.mark.parametrize("column", ["AdminComment", "UID", "State", "JobIDRaw"])
def test_a_marker_s_column_that_is_not_there_or_no_text_is_an_error_with_its_remedy(column: str) -> None:
    with pytest.raises(FormatError) as caught:
        assess(MANY, known=Known(markers=(Marker(column, "x"),)))
    assert caught.value.code == "no_marker_column"
    assert column in caught.value.remedy


def test_what_another_cluster_did_is_set_aside() -> None:
    columns = [*COLUMNS, "Cluster"]
    dump = text(f"{row()}|Aster", f"{row(JobIDRaw='2')}|boreas", f"{row(JobIDRaw='3')}|", columns=columns)
    found = assess(dump, cluster="aster")
    assert (found.jobs, found.lines.rejected) == (2, {"other_cluster": 1})


def lost(raw_id: int, ended: str, **values: str) -> str:
    """A job that was cancelled at a time of the 1st of July."""
    return row(
        JobIDRaw=str(raw_id), State="CANCELLED by 1", Start="2026-07-01T10:00:00", End=f"2026-07-01T{ended}", **values
    )


@pytest.mark.parametrize(
    ("submitted", "values", "expected"),
    [
        ("10:20:00", {}, (1, 0.0, 1.0, 1.0, 1.0, 1200.0)),
        ("10:00:00", {}, (1, 0.0, 0.0, 0.0, 0.0, None)),  # not after it
        ("10:20:00", {"JobName": "else"}, (1, 0.0, 0.0, 0.0, 0.0, None)),
        ("10:20:00", {"User": "bo"}, (1, 0.0, 0.0, 0.0, 0.0, None)),
        ("10:20:00", {"WorkDir": "/home/else"}, (1, 0.0, 0.0, 0.0, 0.0, None)),
        ("10:20:00", {"SubmitLine": "sbatch -c 4 run.sh 7"}, (1, 0.0, 1.0, 1.0, 1.0, 1200.0)),  # the same script
        ("13:00:00", {}, (1, 0.0, 0.0, 0.0, 1.0, 10800.0)),
        ("13:00:01", {}, (1, 0.0, 0.0, 0.0, 0.0, None)),
    ],
)
def test_the_same_again_after_a_cancelled_job_is_a_resubmission(
    submitted: str, values: dict[str, str], expected: tuple[Any, ...]
) -> None:
    again = row(
        JobIDRaw="3", Submit=f"2026-07-01T{submitted}", Start="2026-07-01T14:00:00", End="2026-07-01T15:00:00", **values
    )
    for dumps in ([text(lost(2, "10:00:00"), again)], [text(again), text(lost(2, "10:00:00"))]):
        found = figure(assess(*dumps), "resubmitted")
        assert found["rows"]["cancelled-unknown"] == expected


def test_who_fails_twice_the_same_way_is_counted() -> None:
    def failed(number: int, hour: int, **values: str) -> str:
        times = {"Submit": f"2026-07-01T{hour:02}:00:00", "Start": f"2026-07-01T{hour:02}:00:05"}
        line = {"SubmitLine": f"sbatch run.sh {number}", "ExitCode": "1:0"}
        end = {"End": f"2026-07-01T{hour:02}:01:00", "Elapsed": "00:00:55"}
        return row(JobIDRaw=str(number), State="FAILED", **times | end | line | values)

    dumps = text(failed(2, 10), failed(3, 13)), text(failed(4, 10, User="bo"), failed(5, 11, User="bo", ExitCode="2:0"))
    found = figure(assess(*dumps), "repeated-failures")
    assert (found["value"], found["unknown_share"]) == (0.5, 1.0)
    assert found["rows"] == {"unknown": (0.5, 2, 1, 1, 1.0, 0.0, 10_800, 0.0)}
    found = figure(assess(*dumps, known=Known(users=frozenset({"ada"}))), "repeated-failures")
    assert {key: values[:3] for key, values in found["rows"].items()} == {"agent": (1.0, 1, 1), "unknown": (0.0, 1, 0)}
    assert found["unknown_share"] == 0.5


def test_work_shared_between_people_is_counted_by_its_keys() -> None:
    dump = text(
        row(SubmitLine="sbatch train.sh 1"), row(JobIDRaw="2", User="bo", SubmitLine="sbatch /home/bo/train.sh 2"),
        row(JobIDRaw="3", User="bo", SubmitLine="sbatch else.sh", WorkDir="/home/bo"),
    )  # fmt: skip
    rows = figure(assess(dump), "similar-jobs")["rows"]
    assert rows["command"] == (0, 0.0, 0, None)
    assert rows["script"] == (2, 2 / 3, 1, 2)
    assert rows["template"] == (2, 2 / 3, 1, 2)
    assert rows["work_dir"] == (2, 2 / 3, 1, 2)


def test_partitions_for_tests_are_known_by_name_or_by_what_is_asked_of_them() -> None:
    jobs = {"test": 2, "gpu_dev": 1, "latest": 3, "quick": 20, "gpu": 5}
    lines = [
        row(JobIDRaw=str(100 * at + n), Partition=name, Timelimit="00:30:00" if name == "quick" else "1-00:00:00")
        for at, (name, count) in enumerate(jobs.items()) for n in range(count)
    ]  # fmt: skip
    found = figure(assess(text(*lines)), "test-partitions")
    assert found["value"] == 23 / 31
    assert "quick (no job asks for more than an hour); test (by its name); gpu_dev (by its name)." in found["note"]


def test_a_partition_of_few_people_stands_in_the_rest() -> None:
    lines = [row(JobIDRaw=str(n), User=f"u{n % 12}") for n in range(60)]
    lines += [row(JobIDRaw=str(100 + n), User=f"u{n}", Partition="big") for n in range(9)]
    lines += [row(JobIDRaw="200", User="u1", Partition="secret-lab")]
    rows = content_of(assess(text(*lines)), cluster="").sections[2].figures[-1].rows
    assert [one.label for one in rows] == ["gpu", "All others"]


def test_no_text_that_people_wrote_is_in_the_report() -> None:
    secret = {"SubmitLine": "sbatch --wrap PRIVATE", "JobName": "PRIVATE", "Comment": "PRIVATE", "WorkDir": "/PRIVATE"}
    dump = text(row(**secret), row(JobIDRaw="2", User="bo", **secret), "PRIVATE", row(JobIDRaw="PRIVATE"))
    assert "PRIVATE" not in told(assess(dump))
    assert "ada" not in told(assess(dump))


@pytest.mark.shared_data
@pytest.mark.parametrize("version", ["22.05.8", "24.11.5", "25.11.7"])
def test_what_real_slurms_print_is_summed_as_their_rows(version: str) -> None:
    dump = shared_file("slurm", f"slurm-{version}", "sacct_P.txt").read_bytes()
    now_s = 1_800_000_000
    jobs = [one for one in SacctReader(io.BytesIO(dump), now_s=now_s) if isinstance(one, JobRecord)]
    assessor = Assessor(now_s=now_s, known=Known())
    assessor.read(io.BytesIO(dump))
    reading = Reading(assessor.finish())
    assert reading.found.jobs == len(jobs) > 10
    assert reading.sum("submissions") == sum(job.array_tasks for job in jobs)
    assert reading.sum("core_s") == sum(job.cpus * job.elapsed_s for job in jobs if job.started)
    assert reading.people() == len({job.user for job in jobs})


def test_a_record_is_known_again_in_a_dump_of_any_order_and_length() -> None:
    """Blocks of any order overlap all others, so that the keys of many are put together."""
    numbers = list(range(5000))
    random.Random(3).shuffle(numbers)
    seen = Seen()
    for at in range(0, 5000, 50):
        part = pl.DataFrame({"raw_job_id": numbers[at : at + 50]}).with_columns(
            pl.lit("").alias("cluster"), pl.col("raw_job_id").alias("submit_s")
        )
        assert len(seen.only_new(part)) == 50
        assert seen.only_new(part).is_empty()
    again = pl.DataFrame({"raw_job_id": range(-7, 5007)}).with_columns(
        pl.lit("").alias("cluster"), pl.col("raw_job_id").alias("submit_s")
    )
    assert seen.among(again).to_list() == [0 <= number < 5000 for number in range(-7, 5007)]
    assert len(seen.only_new(again)) == 14


@settings(max_examples=30, deadline=None)
@given(
    blocks=st.lists(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=30), min_size=1, max_size=8),
    split=st.sampled_from(["", "key"]),
)
def test_a_tally_adds_up_whatever_the_blocks(blocks: list[list[tuple[int, int]]], split: str) -> None:
    tally = Tally(("key",), {"n": "sum"}, split=split, pending_rows=7)
    expected: Counter[int] = Counter()
    for block in blocks:
        tally.add(pl.DataFrame(block, schema={"key": pl.UInt64, "n": pl.Int64}, orient="row"))
        for key, n in block:
            expected[key] += n
    assert tally.table().rows() == sorted((key, expected[key]) for key in expected)
