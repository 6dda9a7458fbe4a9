"""Exports of jobstats and DCGM: each line is read, skipped or rejected with its number."""

import base64
import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine.gpu_exports import Outcome, Skipped, read_export
from telemetry.engine.gpu_use import GpuReading
from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.records import Rejected

NOW = 1_782_900_000
GIB = 2**30
TOTAL = 80 * GIB
ENDED = "2026-07-01T10:00:00"  # NOW


def read(*lines: str, format: str = "jobstats") -> list[Outcome]:
    return list(read_export(lines, format=format))


def marked(text: bytes) -> str:
    """A summary as jobstats stores it. Without the time of packing: each worker must collect the same test names."""
    return "JS1:" + base64.b64encode(gzip.compress(text, mtime=0)).decode()


def summary(nodes: object) -> str:
    return marked(json.dumps({"nodes": nodes, "total_time": 60}).encode())


def node(**gpus: tuple[float, float]) -> dict[str, object]:
    return {
        "cpus": 8, "total_memory": 1, "used_memory": 1, "total_time": 5.0,
        "gpu_utilization": {index.strip("g"): compute for index, (compute, _) in gpus.items()},
        "gpu_used_memory": {index.strip("g"): int(gib * GIB) for index, (_, gib) in gpus.items()},
        "gpu_total_memory": {index.strip("g"): TOTAL for index in gpus},
    }  # fmt: skip


ACCOUNTING = "JobIDRaw|End|AdminComment"


def test_a_jobstats_summary_gives_a_reading_for_each_gpu():
    line = f"41|2026-07-01T10:00:00|{summary({'n1': node(g0=(93.1, 40), g3=(1.5, 20)), 'n2': node(g0=(50, 8))})}"
    found = read(ACCOUNTING, line)
    assert [(each.raw_job_id, each.gpu, each.compute_percent, each.memory_percent) for each in found] == [
        (41, "n1:0", 93.1, 50.0), (41, "n1:3", 1.5, 25.0), (41, "n2:0", 50, 10.0),
    ]  # fmt: skip
    assert {(each.measured_s, each.memory_is_peak, each.total_memory_bytes) for each in found} == {
        (1_782_900_000, True, TOTAL)
    }
    assert found[0].peak_memory_bytes == 40 * GIB


@pytest.mark.parametrize(
    ("comment", "reason"),
    [
        ("", "no_summary"), ("campaign=dock", "no_summary"), ("JS1:None", "empty_summary"),
        ("JS1:Short", "empty_summary"), (summary({"n1": {"cpus": 1}}), "no_gpu"),
    ],
)  # fmt: skip
def test_a_job_without_gpus_or_summary_is_skipped(comment, reason):
    assert read(ACCOUNTING, f"41|Unknown|{comment}") == [Skipped(2, reason)]
    assert read(ACCOUNTING, f"41.0|Unknown|{summary({})}") == [Skipped(2, "step")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f"41|Unknown|{summary({'n1': node(g0=(5, 5))})}", "time_missing"),
        ("41|Unknown|JS1:!!!", "summary_malformed"),
        ("41|Unknown|JS1:" + base64.b64encode(b"plain").decode(), "summary_malformed"),
        ("41|Unknown|" + marked(b"[1]"), "summary_malformed"),
        ("41|Unknown|" + marked(b"[" * 99_999), "summary_malformed"),
        ("41|Unknown|" + marked(b" " * 2**23), "summary_too_large"),
        (f"41|Unknown|{summary([1])}", "summary_malformed"),
        (f"41|Unknown|{summary({'n1': {'gpu_utilization': [1]}})}", "summary_malformed"),
        (f"41|Unknown|{summary({'n1': {'gpu_utilization': {'0': 'x'}}})}", "summary_malformed"),
        (f"41_3|{ENDED}|{summary({'n1': node(g0=(5, 5))})}", "job_invalid"),
        (f"41|yesterday|{summary({'n1': node(g0=(5, 5))})}", "time_invalid"),
        (f"41|{ENDED}|{summary({'n1': node(g0=(500, 5))})}", "percent_out_of_range"),
        ("41|Unknown", "columns"),
    ],
)  # fmt: skip
def test_a_bad_line_is_told_with_its_number_and_reason(line, reason):
    good = f"42|{ENDED}|{summary({'n1': node(g0=(5, 5))})}"
    bad, fine = read(ACCOUNTING, line, good)
    assert isinstance(bad, Rejected) and (bad.line_no, bad.reason_code, bad.raw) == (2, reason, line)
    assert isinstance(fine, GpuReading) and fine.measured_s == NOW


FLAT = "end,jobid,node,gpu,gpu_utilization,gpu_used_memory,gpu_total_memory,model"


def test_flat_jobstats_lines_are_read():
    found = read(FLAT, f'{ENDED},41,n1,0,93.1,{40 * GIB},{TOTAL},"NVIDIA A100-SXM4-80GB"')
    assert found == [
        GpuReading(41, "n1:0", 93.1, 50.0, NOW, 40 * GIB, TOTAL, "NVIDIA A100-SXM4-80GB", memory_is_peak=True)
    ]


def test_a_quote_that_nobody_closes_spoils_its_own_line_only():
    found = read(FLAT, '9,41,n1,0,93.1,1,2,"A100', f"9,42,n1,0,5,1,{TOTAL},A100", "9,43,n1,0,5,1,0,A100")
    assert [getattr(each, "reason_code", "read") for each in found] == ["malformed", "read", "memory_out_of_range"]


DCGM = "timestamp,Hostname,gpu,UUID,modelName,hpc_job,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_FB_USED,DCGM_FI_DEV_FB_FREE"


def sample(at: int = NOW, job: str = "41", uuid: str = "GPU-1", util: object = 50, used: object = 1024) -> str:
    return f"{at},n1,0,{uuid},NVIDIA H200,{job},{util},{used},{4096 - int(str(used)) if str(used).isdigit() else 0}"


def test_samples_of_one_job_and_gpu_become_one_reading():
    found = read(DCGM, sample(NOW - 60, util=100, used=1024), sample(NOW - 30, util=0, used=3072),
                 sample(job="42"), sample(uuid="GPU-2"), format="dcgm")  # fmt: skip
    first, *others = found
    assert first == GpuReading(41, "GPU-1", 50.0, 50.0, NOW - 30, 3 * GIB, 4 * GIB, "NVIDIA H200")
    assert [(each.raw_job_id, each.gpu) for each in others] == [(42, "GPU-1"), (41, "GPU-2")]


def test_the_share_of_time_that_the_engine_was_active_goes_before_utilisation():
    header = DCGM + ",DCGM_FI_PROF_GR_ENGINE_ACTIVE"
    (found,) = read(header, sample(util=99) + ",0.25", format="dcgm")
    assert found.compute_percent == 25


def test_idle_gpus_and_values_that_dcgm_had_not_are_told():
    found = read(
        DCGM, sample(job=""), sample(util=9223372036854775794), sample(util="N/A"), "", sample(), format="dcgm"
    )
    assert [getattr(each, "reason", getattr(each, "reason_code", "read")) for each in found] == [
        "no_job", "value_blank", "number_invalid", "empty", "read",
    ]  # fmt: skip


def test_an_index_alone_is_named_with_its_node_and_a_slice_with_its_number():
    header = "timestamp,Hostname,gpu,GPU_I_ID,hpc_job,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_FB_USED,DCGM_FI_DEV_FB_TOTAL"
    found = read(header, "9,n1,3,,41,5,1,2", "9,n1,3,7,41,5,1,2", format="dcgm")
    assert [each.gpu for each in found] == ["n1:3", "n1:3/7"]


def test_numbered_gpus_without_their_node_are_not_taken_for_one():
    """A job on two nodes has two GPUs 0."""
    header, line = FLAT.replace(",node", ""), f"9,41,{{}},5,1,{TOTAL},A100"
    found = read(header, line.format("0"), line.format("nvidia0"), line.format("GPU-5fd4f087"))
    assert [getattr(each, "reason_code", "read") for each in found] == ["node_missing", "node_missing", "read"]
    assert isinstance(found[0], Rejected) and "add a column `node`" in found[0].detail
    assert [getattr(each, "gpu", "") for each in read(FLAT, f"9,41,n1,nvidia0,5,1,{TOTAL},A100")] == ["n1:nvidia0"]


@pytest.mark.parametrize(("header", "format"), [(FLAT, "jobstats"), (ACCOUNTING, "jobstats"), (DCGM, "dcgm")])
def test_an_export_that_names_no_time_is_refused_for_ids_recycle(header, format):
    timeless = header.replace("end,", "").replace("|End", "").replace("timestamp,", "")
    with pytest.raises(FormatError, match=r"Columns missing: (end|timestamp)"):
        read(timeless, format=format)


@pytest.mark.parametrize("lines", [(), ("",), ("nothing,here",), ("JobIDRaw|End",)])
@pytest.mark.parametrize("format", ["jobstats", "dcgm"])
def test_a_file_of_another_form_is_refused_whole(lines, format):
    with pytest.raises(FormatError, match="missing"):
        read(*lines, format=format)


def test_an_unknown_format_is_refused():
    with pytest.raises(FormatError, match="jobstats, dcgm"):
        read("a,b", format="csv")


@given(
    st.lists(st.text(max_size=200).filter(lambda text: "\n" not in text), max_size=5),
    st.sampled_from([FLAT, ACCOUNTING]),
)
def test_every_line_ends_as_something(lines, header):
    assert len(read(header, *lines)) == len(lines)
