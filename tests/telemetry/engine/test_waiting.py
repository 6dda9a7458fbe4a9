"""Waiting for jobs: which records an id stands for, when it is over, and with which status."""

import time

import pytest

from telemetry.engine.slurm.errors import FieldError
from telemetry.engine.waiting import MAY_RETURN, Record, describe_counts, exit_status, is_whole, pick, read_asked, stand

NOW = 1_800_000_000
ARRAY = [
    Record("7_1", "COMPLETED", NOW, NOW),
    Record("7_2", "FAILED", NOW, NOW, exit_code=3),
    Record("7_3", "RUNNING", NOW),
    Record("7_[4-9%2]", "PENDING", NOW, tasks=6),
]


@pytest.mark.parametrize(
    ("asked", "ids"),
    [
        ("7", ["7_1", "7_2", "7_3", "7_[4-9%2]"]),
        ("7_2", ["7_2"]),
        ("7_5", ["7_[4-9%2]"]),
        ("7_[1-2]", ["7_1", "7_2"]),
        ("7_[3,5]", ["7_3", "7_[4-9%2]"]),
        ("7_12", []),
        ("7+1", []),
        ("8", []),
    ],
)
def test_an_id_stands_for_its_records(asked: str, ids: list[str]) -> None:
    assert [record.job_id for record in pick(read_asked(asked), ARRAY)] == ids


def test_parts_of_a_heterogeneous_job() -> None:
    parts = [Record("9+0", "COMPLETED", NOW), Record("9+1", "FAILED", NOW, exit_code=2)]
    assert pick(read_asked("9"), parts) == parts
    assert pick(read_asked("9+1"), parts) == parts[1:]
    assert pick(read_asked("9_1"), parts) == []


def test_a_requeued_job_is_its_newest_record_and_an_old_job_of_that_number_is_none() -> None:
    before, again = Record("7", "REQUEUED", NOW - 60, NOW), Record("7", "PENDING", NOW)
    year_ago = Record("7_1", "FAILED", NOW - 365 * 86_400, exit_code=1)
    assert pick(read_asked("7"), [again, before, year_ago]) == [again]


@pytest.mark.parametrize("text", ["", "x", "7.batch", "7_", "7_4.0", "-7", "7_[]", "7_[1-]"])
def test_what_is_no_job_is_refused(text: str) -> None:
    with pytest.raises(FieldError):
        read_asked(text)


@pytest.mark.parametrize(
    ("state", "code", "signal", "status"),
    [
        ("COMPLETED", 0, 0, 0),
        ("FAILED", 3, 0, 3),
        ("FAILED", 0, 9, 137),
        ("FAILED", 139, 0, 139),
        ("FAILED", 0, 0, 1),
        ("CANCELLED", 0, 15, 201),
        ("CANCELLED", 0, 0, 201),
        ("TIMEOUT", 0, 0, 202),
        ("OUT_OF_MEMORY", 0, 125, 203),
        ("NODE_FAIL", 0, 0, 204),
        ("PREEMPTED", 0, 0, 205),
        ("DEADLINE", 0, 0, 206),
    ],
)
def test_the_status_of_a_job_that_is_over(state: str, code: int, signal: int, status: int) -> None:
    assert exit_status(state, code, signal) == status


def test_an_array_is_over_with_its_last_task_and_has_the_worst_status() -> None:
    standing = stand(ARRAY, now_s=NOW)
    assert standing is not None
    assert (standing.state, standing.is_over, standing.status) == ("RUNNING", False, None)
    assert standing.worst == ARRAY[1]
    assert describe_counts(standing.counts) == "1 running, 6 pending, 1 completed, 1 failed"
    over = stand(ARRAY[:2], now_s=NOW)
    assert over is not None and (over.state, over.is_over, over.status) == ("FAILED", True, 3)
    assert stand([], now_s=NOW) is None


def test_a_closed_stretch_is_no_end() -> None:
    standing = stand([Record("7", "REQUEUED", NOW, NOW)], now_s=NOW + 999)
    assert standing is not None and not standing.is_over


@pytest.mark.parametrize("state", sorted(MAY_RETURN))
def test_what_slurm_may_put_back_is_over_a_little_later(state: str) -> None:
    record = Record("7", state, NOW - 60, NOW)
    soon, later = stand([record], now_s=NOW + 5), stand([record], now_s=NOW + 31)
    assert soon is not None and not soon.is_over
    assert later is not None and later.is_over


@pytest.mark.parametrize(
    ("asked", "line", "known", "quiet_s", "whole"),
    [
        ("7", "sbatch --array=1-4%2 job.sh", 4, 0, True),
        ("7", "sbatch --array=1-4%2 job.sh", 3, 60, False),
        ("7", "sbatch -a 0-9:3 job.sh", 4, 0, True),
        ("7", "sbatch -a0-9 job.sh", 9, 599, False),
        ("7", "sbatch -a0-9 job.sh", 9, 600, True),  # one that nobody tells of
        ("7_[1-2]", "sbatch --array=1-4 job.sh", 2, 0, True),
        ("7_[1-3]", "sbatch job.sh", 2, 60, False),
        ("7", "sbatch job.sh", 4, 14, False),  # an #SBATCH line says how many
        ("7", "sbatch job.sh", 4, 15, True),
    ],
)
def test_an_array_is_over_when_all_its_tasks_are_known(
    asked: str, line: str, known: int, quiet_s: int, whole: bool
) -> None:
    assert is_whole(read_asked(asked), known, submit_line=line, quiet_s=quiet_s) is whole


@pytest.mark.parametrize("asked", ["7_[0-9999]", f"7_[{','.join(str(task) for task in range(0, 9999, 7))}]"])
def test_a_large_array_is_picked_from_without_each_task_being_compared_with_each(asked: str) -> None:
    records = [Record(f"7_{task}", "COMPLETED", 0) for task in range(10_000)]
    began = time.process_time()
    assert len(pick(read_asked(asked), records)) == read_asked(asked).array_tasks
    assert time.process_time() - began < 5  # it took 20 and more


def test_many_may_ask_for_parts_of_a_large_array() -> None:
    records = [Record(f"7_{task}", "COMPLETED", 0) for task in range(5000)]
    began = time.process_time()
    assert [len(pick(read_asked(f"7_[{task}-4999]"), records)) for task in range(100)] == list(range(5000, 4900, -1))
    assert time.process_time() - began < 5
