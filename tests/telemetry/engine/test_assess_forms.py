"""An assessment reads every form of dump into the same sums, alone or beside another form."""

import io
import json
from typing import Any

import pytest

from telemetry.engine.assessment.assessor import Assessment, Assessor
from telemetry.engine.assessment.figures import content_of
from telemetry.engine.assessment.figures.kinds import Reading
from telemetry.engine.assessment.frames import Known, Marker
from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.records import JobRecord
from telemetry.engine.slurm.sacct_json import SacctJsonReader
from telemetry.engine.slurm.xdmod_text import XdmodReader
from tests.telemetry.engine.sacct_texts import COLUMNS, row, text
from tests.telemetry.engine.shared import shared_file

NOW_S = 1_800_000_000
XDMOD = (
    "7|7|hill|gpu|normal|chem|chem|45|ada|1001|2026-07-01T10:00:00|2026-07-01T10:00:00|2026-07-01T10:05:00|"
    "2026-07-01T11:05:00|01:00:00|0:0|COMPLETED|1|8|8|16G|cpu=8,node=1|billing=8,cpu=8,gres/gpu=2,node=1|1-00:00:00|"
    "gpu-1|train"
)
NUMBER = {"set": True, "infinite": False, "number": 0}


def job(**more: Any) -> dict[str, Any]:
    """A job as Slurm 25.11 writes it, as far as it is read."""
    tres = [{"type": "cpu", "name": "", "count": 8}, {"type": "gres", "name": "gpu", "count": 2},
            {"type": "node", "name": "", "count": 1}]  # fmt: skip
    started = 1_782_900_300
    return {
        "job_id": 7, "user": "ada", "account": "chem", "group": "chem", "cluster": "hill", "partition": "gpu",
        "qos": "normal", "name": "train", "nodes": "gpu-1", "working_directory": "/home/ada", "submit_line": "sbatch r",
        "comment": {"job": "", "administrator": "", "system": ""}, "allocation_nodes": 1, "restart_cnt": 0,
        "array": {"job_id": 0, "task_id": NUMBER | {"set": False}, "task": ""},
        "het": {"job_id": 0, "job_offset": NUMBER | {"set": False}},
        "exit_code": {"return_code": NUMBER, "signal": {"id": NUMBER}},
        "state": {"current": ["COMPLETED"], "reason": "None"},
        "required": {"CPUs": 8, "memory_per_cpu": NUMBER, "memory_per_node": NUMBER},
        "time": {"submission": started - 300, "eligible": started - 300, "start": started, "end": started + 3600,
                 "elapsed": 3600, "limit": NUMBER | {"number": 1440}},
        "tres": {"allocated": tres, "requested": tres}, "steps": [],
    } | more  # fmt: skip


def document(*jobs: dict[str, Any], version: int = 44) -> bytes:
    meta = {"plugin": {"data_parser": f"data_parser/v0.0.{version}"}, "slurm": {"release": "25.11.7"}}
    return json.dumps({"jobs": jobs, "meta": meta, "errors": [], "warnings": []}).encode()


def assess(*dumps: bytes, known: Known | None = None) -> Assessment:
    assessor = Assessor(now_s=NOW_S, known=known or Known())
    for dump in dumps:
        assessor.read(io.BytesIO(dump))
    return assessor.finish()


def sums(found: Assessment) -> dict[str, int]:
    reading = Reading(found)
    return {name: reading.sum(name) for name in ("submissions", "ran", "core_s", "gpu_s", "node_s", "wait_s")}


ONE = {"submissions": 1, "ran": 1, "core_s": 8 * 3600, "gpu_s": 2 * 3600, "node_s": 3600, "wait_s": 300}


@pytest.mark.parametrize("dump", [document(job()), b"\xef\xbb\xbf" + document(job()), XDMOD.encode() + b"\n"])
def test_json_and_xdmod_s_columns_are_told_by_their_beginning(dump: bytes) -> None:
    assert sums(assess(dump)) == ONE


def test_a_job_that_several_forms_tell_of_counts_once() -> None:
    columns = [*COLUMNS, "Cluster"]
    named = text(row(columns, JobID="7", JobIDRaw="7", Cluster="Hill"), columns=columns)
    found = assess(document(job()), XDMOD.encode() + b"\n", named)
    assert (found.jobs, found.repeated) == (1, 2)
    assert sums(found) == ONE


def test_what_is_odd_in_a_document_is_set_aside_and_its_steps_are_counted() -> None:
    step = {"step": {"id": "7.batch"}}
    found = assess(document(job(steps=[step]), job(job_id=8, user=5), job(job_id=9, array=None)))
    assert (found.jobs, found.lines.steps, sum(found.lines.rejected.values())) == (1, 1, 2)


def test_a_marker_is_looked_for_in_a_document_too() -> None:
    marked = job(job_id=8, comment={"job": "agent=claude", "administrator": "", "system": ""})
    found = assess(document(job(), marked), known=Known(markers=(Marker("Comment", "agent=*"),)))
    assert Reading(found).sum("submissions", agent=True) == 1
    with pytest.raises(FormatError) as caught:
        assess(document(job()), known=Known(markers=(Marker("WCKey", "x"),)))
    assert caught.value.code == "no_marker_column"


def test_a_version_that_nobody_knows_is_said_in_the_report() -> None:
    content = content_of(assess(document(job(), version=77)), cluster="")
    notes = [one.note for section in content.sections for one in section.figures if one.key == "records"]
    assert "v0.0.77 (Slurm 25.11.7) is read as v0.0.44" in notes[0]


@pytest.mark.parametrize(
    ("dump", "code"),
    [(b'{"jobs": [', "not_json"), (b'{"nodes": []}', "no_records"), (b'{"jobs": []}', "no_meta")],
)
def test_a_document_that_is_none_is_an_error_with_its_code(dump: bytes, code: str) -> None:
    with pytest.raises(FormatError) as caught:
        assess(dump)
    assert caught.value.code == code


@pytest.mark.shared_data
@pytest.mark.parametrize("version", ["22.05.8", "24.11.5", "25.11.7"])
def test_what_real_slurms_print_as_json_is_summed_as_its_records(version: str) -> None:
    dump = shared_file("slurm", f"slurm-{version}", "sacct.json").read_bytes()
    jobs = [one for one in SacctJsonReader(io.BytesIO(dump), now_s=NOW_S) if isinstance(one, JobRecord)]
    reading = Reading(assess(dump))
    assert reading.found.jobs == len({(one.raw_job_id, one.submit_s) for one in jobs}) > 10
    assert reading.sum("core_s") == sum(one.cpus * one.elapsed_s for one in jobs if one.started)


@pytest.mark.shared_data
def test_xdmod_s_reference_log_is_summed_as_its_records() -> None:
    dump = shared_file("xdmod", "phillips.log").read_bytes()
    jobs = [one for one in XdmodReader(io.BytesIO(dump), now_s=NOW_S) if isinstance(one, JobRecord)]
    reading = Reading(assess(dump))
    assert reading.found.jobs == len({(one.raw_job_id, one.submit_s, one.cluster) for one in jobs}) > 100
    assert reading.sum("submissions") == sum(one.array_tasks for one in jobs)
