"""Jobs as JSON: the same records as the text of the same cluster, and nothing lost on the way."""

import io
import json
import tracemalloc
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from telemetry.engine.slurm import json_stream
from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.pyslurm_jobs import read_pyslurm_jobs
from telemetry.engine.slurm.records import JobRecord, Outcome, Rejected, StepSeen
from telemetry.engine.slurm.sacct_json import SacctJsonReader, read_sacct_json
from telemetry.engine.slurm.sacct_text import SacctReader
from tests.telemetry.engine.shared import shared_file

NOW_S = 1_800_000_000
# What no version writes into its JSON; `extra` holds the columns that a text was asked for besides.
NEVER_IN_JSON = {"uid": None, "cancelled_by_uid": None, "extra": {}}


def jobs(outcomes: Iterable[Outcome]) -> dict[int, JobRecord]:
    found = list(outcomes)
    assert not [each for each in found if isinstance(each, Rejected)]
    return {each.raw_job_id: each for each in found if isinstance(each, JobRecord)}


def steps(outcomes: Iterable[Outcome]) -> list[StepSeen]:
    return sorted(
        (each for each in outcomes if isinstance(each, StepSeen)), key=lambda step: (step.raw_job_id, step.step)
    )


def from_text(folder: str, name: str) -> list[Outcome]:
    return list(SacctReader(io.BytesIO(shared_file("slurm", folder, name).read_bytes()), now_s=NOW_S))


def from_json(folder: str, name: str = "sacct.json") -> list[Outcome]:
    return list(read_sacct_json(io.BytesIO(shared_file("slurm", folder, name).read_bytes()), now_s=NOW_S))


def assert_same(told: dict[int, JobRecord], expected: dict[int, JobRecord], **silent: Any) -> None:
    """What was told is what was expected, but for fields that one side does not say, and the age of what runs."""
    assert told.keys() == expected.keys()
    for job, record in told.items():
        wanted = expected[job]._replace(**silent)
        if record.end_s is None:
            assert abs(record.elapsed_s - wanted.elapsed_s) <= 2  # asked a moment later
            wanted = wanted._replace(elapsed_s=record.elapsed_s)
        assert record == wanted


@pytest.mark.shared_data
@pytest.mark.parametrize("version", ["24.11.5", "25.11.7"])
def test_json_gives_the_records_and_steps_of_the_text(version: str) -> None:
    text, told = from_text(f"slurm-{version}", "sacct_P.txt"), from_json(f"slurm-{version}")
    assert len(jobs(told)) == 26
    assert_same(jobs(told), jobs(text), **NEVER_IN_JSON)
    assert steps(told) == steps(text)
    assert jobs(told)[28].state == "REQUEUED"  # which the JSON writes as PENDING and a flag


@pytest.mark.shared_data
def test_json_of_22_05_says_less_than_its_text() -> None:
    text, told = jobs(from_text("slurm-22.05.8", "sacct_P.txt")), jobs(from_json("slurm-22.05.8"))
    # Of a job that was requeued, either prints one stretch, and not the same one.
    assert (text.pop(28).state, told.pop(28).state) == ("PENDING", "REQUEUED")
    # A failed job is written with the exit code 0; signals are true.
    assert {job: record.exit_code for job, record in text.items() if record.exit_code} == {
        2: 3, 7: 2, 16: 1, 17: 1, 18: 1, 30: 1,
    }  # fmt: skip
    assert told[3].exit_signal == text[3].exit_signal == 11
    assert_same(told, text, submit_line="", exit_code=0, **NEVER_IN_JSON)
    assert len(steps(from_json("slurm-22.05.8"))) == 16


@pytest.mark.shared_data
@pytest.mark.parametrize("version", ["22.05.8", "24.11.5", "25.11.7"])
def test_a_narrow_question_gives_the_same_record(version: str) -> None:
    asked = from_json(f"slurm-{version}", "sacct_j4.json")
    assert jobs(asked) == {4: jobs(from_json(f"slurm-{version}"))[4]}
    without_steps = from_json(f"slurm-{version}", "sacct_X.json")
    assert jobs(without_steps).keys() == jobs(from_json(f"slurm-{version}")).keys()


@pytest.mark.shared_data
def test_pyslurm_text_and_json_of_one_cluster_give_the_same_records() -> None:
    folder = "pyslurm-25.11.2-jobs"
    text = jobs(from_text(folder, "sacct_all.txt"))
    dump = json.loads(shared_file("slurm", folder, "pyslurm_db_jobs.json").read_text())
    told = list(read_pyslurm_jobs(dump, now_s=NOW_S))
    assert_same(jobs(told), text, group="", extra={})  # PySlurm does not tell the group
    assert len(steps(told)) == 7
    # The folders in that JSON were renamed when it was recorded.
    as_json = {job: each._replace(work_dir=text[job].work_dir) for job, each in jobs(from_json(folder)).items()}
    assert_same(as_json, text, **NEVER_IN_JSON)


@pytest.mark.shared_data
def test_pyslurm_objects_that_were_not_converted_are_set_aside_and_never_read_as_nothing() -> None:
    samples = json.loads(shared_file("slurm", "pyslurm-25.11.2", "to_dict_samples.json").read_text())
    found = list(read_pyslurm_jobs(samples["db.Jobs.load"], now_s=NOW_S))
    assert [each.reason_code for each in found if isinstance(each, Rejected)] == ["unconverted_tres"] * 4
    assert len(found) == 4


@pytest.mark.shared_data
@pytest.mark.parametrize("release", ["24.05/0.0.41", "25.05/0.0.43"])
def test_slurmrestd_gives_records_of_the_same_form(release: str) -> None:
    found = {}
    for path in sorted(shared_file("slurm-rest", *release.split("/")).glob("slurmdb-job-*.json")):
        if path.stem != "slurmdb-job-unfound":
            (found[path.stem.removeprefix("slurmdb-job-")],) = jobs(
                read_sacct_json(io.BytesIO(path.read_bytes()), now_s=NOW_S)
            ).values()
    assert {name: job.state for name, job in found.items()} == {
        "completed": "COMPLETED", "failed": "FAILED", "pending": "PENDING", "running": "RUNNING",
        "timeout": "TIMEOUT", "gpus-multi-types": "PENDING" if release.startswith("24") else "RUNNING",
    }  # fmt: skip
    assert found["failed"].exit_code == 1
    assert found["timeout"].timelimit_s == 60
    assert (found["pending"].started, found["pending"].nodes) == (False, 1)
    assert all(job.cluster == "hpc" for job in found.values())


@pytest.mark.shared_data
def test_a_job_that_is_not_found_is_no_empty_file() -> None:
    unfound = shared_file("slurm-rest", "25.05", "0.0.43", "slurmdb-job-unfound.json").read_bytes()
    with pytest.raises(FormatError) as caught:
        read_sacct_json(io.BytesIO(unfound), now_s=NOW_S)
    assert caught.value.code == "slurm_error"


# By hand: no cluster is needed for what follows.


def number(value: int | None) -> dict[str, Any]:
    return {"set": value is not None, "infinite": False, "number": value or 0}


def job(raw: int = 8, **changes: Any) -> dict[str, Any]:
    return {
        "job_id": raw, "account": "chem", "user": "ada", "group": "users", "cluster": "aster", "partition": "cpu",
        "qos": "normal", "name": "train", "nodes": "n1", "allocation_nodes": 1, "submit_line": "sbatch run.sh",
        "working_directory": "/home/ada", "restart_cnt": 0, "comment": {"job": "campaign=fold", "administrator": ""},
        "array": {"job_id": 0, "task_id": number(None), "task": ""}, "het": {"job_id": 0, "job_offset": number(None)},
        "time": {
            "submission": 1782900000, "eligible": 1782900000, "start": 1782900300, "end": 1782903900, "elapsed": 3600,
            "limit": number(120),
        },
        "state": {"current": ["COMPLETED"], "reason": "None"},
        "exit_code": {"return_code": number(0), "signal": {"id": number(None)}},
        "required": {"CPUs": 8, "memory_per_cpu": number(1024), "memory_per_node": number(None)},
        "tres": {
            "requested": [{"type": "cpu", "name": "", "count": 8}],
            "allocated": [
                {"type": "cpu", "name": "", "count": 8}, {"type": "energy", "name": "", "count": -2},
                {"type": "gres", "name": "gpu", "count": 2}, {"type": "gres", "name": "gpu:a100", "count": 2},
            ],
        },
        "steps": [],
    } | changes  # fmt: skip


def document(*records: Any, version: str = "v0.0.44", **members: Any) -> bytes:
    meta = {"plugin": {"data_parser": f"data_parser/{version}"}, "slurm": {"release": "25.11.7"}}
    content = {"jobs": records, "meta": meta, "errors": [], "warnings": []} | members
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogateescape")


def read(data: bytes) -> list[Outcome]:
    return list(read_sacct_json(io.BytesIO(data), now_s=NOW_S))


def read_one(**changes: Any) -> Outcome:
    (outcome,) = read(document(job(**changes)))
    return outcome


def test_a_job_fills_every_field_in_its_place() -> None:
    assert read_one() == JobRecord(
        raw_job_id=8, job_id="8", user="ada", state="COMPLETED", submit_s=1782900000, eligible_s=1782900000,
        start_s=1782900300, end_s=1782903900, elapsed_s=3600, timelimit_s=7200, nodes=1, cpus=8, req_cpus=8, gpus=2,
        gpu_types=("a100",), mem_bytes=8 * 2**30, started=True, campaign="fold", account="chem", group="users",
        cluster="aster", partition="cpu", qos="normal", node_list="n1", job_name="train", submit_line="sbatch run.sh",
        work_dir="/home/ada", reason="None", comment="campaign=fold",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "shown", "place"),
    [
        ({"array": {"job_id": 7, "task_id": number(0), "task": ""}}, "7_0", (7, 0, 1, None, None)),
        ({"array": {"job_id": 7, "task_id": number(None), "task": "4-9%2"}}, "7_[4-9%2]", (7, None, 6, None, None)),
        ({"het": {"job_id": 7, "job_offset": number(1)}}, "7+1", (None, None, 1, 7, 1)),
    ],
)
def test_array_tasks_ranges_and_parts_of_a_job_are_placed(
    changes: dict[str, Any], shown: str, place: tuple[int | None, ...]
) -> None:
    outcome = read_one(**changes)
    assert isinstance(outcome, JobRecord)
    placed = (outcome.array_job_id, outcome.array_task, outcome.array_tasks, outcome.het_job_id, outcome.het_offset)
    assert (outcome.raw_job_id, outcome.job_id, placed) == (8, shown, place)


def test_what_people_write_is_kept_as_they_wrote_it() -> None:
    written = 'a|b\n"c" 🙂 \u202e'
    outcome = read_one(name=written)
    assert isinstance(outcome, JobRecord)
    assert outcome.job_name == written


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"user": ""}, "no_user"),
        ({"time": {}}, "missing_field"),
        ({"allocation_nodes": {"set": True}}, "bad_number"),
        ({"array": {"job_id": 0, "task_id": 3, "task": ""}}, "bad_number"),
        ({"state": {"current": ["ODD"], "reason": ""}}, "unknown_state"),
        ({"name": "a\0b"}, "binary_data"),
        ({"account": "a\udcff"}, "invalid_utf8"),
        ({"account": "a\nb"}, "bad_word"),
        ({"job_id": 0}, "empty_value"),
        ({"steps": None}, "bad_record"),
        ({"steps": [{"step": {"id": "batch"}}]}, "bad_job_id"),
    ],
)
def test_a_record_that_is_no_job_is_set_aside_with_its_reason(changes: dict[str, Any], code: str) -> None:
    before, outcome, after = read(document(job(1), job(2) | changes, job(3)))
    assert isinstance(outcome, Rejected)
    assert (outcome.line_no, outcome.reason_code) == (2, code)
    assert outcome.raw.startswith("{")
    outcome.raw.encode()
    assert isinstance(before, JobRecord) and isinstance(after, JobRecord)


@pytest.mark.parametrize("odd", [None, 7, "text", ["list"]])
def test_what_is_no_object_is_set_aside(odd: object) -> None:
    _, outcome = read(document(job(1), odd))
    assert isinstance(outcome, Rejected)
    assert outcome.line_no == 2


def test_a_byte_that_is_not_utf_8_in_a_name_is_kept_as_a_mark() -> None:
    outcome = read(document(job(name="caf\udce9")))[0]
    assert isinstance(outcome, JobRecord)
    assert outcome.job_name == "caf\ufffd"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty_file"),
        (b"JobID|State\n1|RUNNING\n", "json_is_text"),
        (document(job())[:-40], "not_json"),
        (document(job()).replace(b'"jobs"', b'"nodes"'), "no_records"),
        (b'{"jobs": [{"a": }]}', "not_json"),
        (b'{"jobs": [' + b'{"a":' * 200_000, "not_json"),
        (document(job(), meta={}), "no_meta"),
        (document(job(), errors=[{"error": "Connection refused"}]), "slurm_error"),
        (document(warnings=[{"description": "found nothing"}]), "slurm_error"),
    ],
)
def test_a_file_that_cannot_be_believed_is_refused_whole(data: bytes, code: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_sacct_json(io.BytesIO(data), now_s=NOW_S)
    assert caught.value.code == code


def test_an_unknown_version_is_read_as_the_nearest_one_and_says_so() -> None:
    reader = SacctJsonReader(io.BytesIO(document(job(), version="v0.0.45")), now_s=NOW_S)
    assert reader.warnings == ("v0.0.45 (Slurm 25.11.7) is read as v0.0.44",)
    assert isinstance(next(iter(reader)), JobRecord)


def test_a_reading_goes_on_from_every_place_it_can_stop_at() -> None:
    written = {"steps": [{"step": {"id": "2.batch"}}, {"step": {"id": "2.0"}}], "name": "caf\udce9 🙂"}
    data = document(job(1), job(2, **written), 7, job(4))
    reader = SacctJsonReader(io.BytesIO(data), now_s=NOW_S)
    whole, places = [], [(reader.offset, reader.next_line)]
    for outcome in reader:
        whole.append(outcome)
        if (reader.offset, reader.next_line) != places[-1]:
            places.append((reader.offset, reader.next_line))
            rest = io.BytesIO(data)
            rest.seek(reader.offset)
            resumed = SacctJsonReader(
                rest, now_s=NOW_S, header=reader.header, start_line=reader.next_line, offset=reader.offset
            )
            assert whole + list(resumed) == read(data)
    assert [line for _, line in places] == [1, 2, 3, 4, 5]


def test_a_stream_that_cannot_be_read_twice_gives_the_same() -> None:
    data = document(*(job(n) for n in range(1, 40)))
    pieces: Iterator[bytes] = (data[i : i + 7] for i in range(0, len(data), 7))
    assert list(read_sacct_json(pieces, now_s=NOW_S)) == read(data)


@pytest.mark.parametrize("size", [1, 2, 3, 61])
def test_where_the_stream_is_cut_makes_no_difference(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    data = document(job(1, name='"}],{[ 🙂 caf\udce9 \\'), 12345, job(2), last_update=number(7), count=1234567)
    whole = read(data)
    monkeypatch.setattr(json_stream, "CHUNK_BYTES", size)
    assert read(data) == whole
    assert len(whole) == 3


def test_memory_does_not_grow_with_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "CHUNK_BYTES", 16 * 1024)
    data = document(*(job(n, name="x" * 500) for n in range(1, 1001)))
    assert len(data) > 80 * json_stream.CHUNK_BYTES
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_sacct_json(io.BytesIO(data), now_s=NOW_S))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 1000
    assert peak < 16 * json_stream.CHUNK_BYTES
