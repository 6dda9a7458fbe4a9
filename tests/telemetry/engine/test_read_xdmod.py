import io
import json
from collections import Counter
from datetime import UTC, datetime

import pytest

from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.records import JobRecord, Outcome, Rejected, StepSeen
from telemetry.engine.slurm.sacct_text import SacctReader
from telemetry.engine.slurm.xdmod_text import COLUMNS, XdmodReader
from tests.telemetry.engine.sacct_texts import NOW_S
from tests.telemetry.engine.shared import shared_file

GOOD = (
    "163485|163485|hill|focaccia|chestnut|chaff|chaff|45789|noror|380693|2016-12-22T07:15:12|"
    "2016-12-22T07:15:12|2016-12-22T07:15:13|2017-01-01T20:42:19|10-13:27:06|0:0|CANCELLED by 380693|"
    "1|12|12|31000Mn|cpu=12,node=1|billing=12,cpu=12,gres/gpu=2,mem=31000M,node=1|37-14:00:00|"
    "cpn-f11-31|name"
)


def read(data: bytes) -> list[Outcome]:
    return list(XdmodReader(io.BytesIO(data), now_s=NOW_S))


def read_shared(*parts: str) -> list[Outcome]:
    with shared_file("xdmod", *parts).open("rb") as stream:
        return list(XdmodReader(stream, now_s=NOW_S))


def test_a_row_is_read_and_the_name_keeps_its_separators() -> None:
    (job,) = read(f"{GOOD}|a|b\n".encode())
    assert isinstance(job, JobRecord)
    assert (job.job_name, job.group, job.cluster, job.gpus, job.cpus) == ("name|a|b", "chaff", "hill", 2, 12)
    assert (job.cancelled_by_uid, job.timelimit_s, job.elapsed_s) == (380693, 3_247_200, 912_426)


def test_a_job_that_never_got_a_node_is_kept_as_not_started() -> None:
    (job,) = read(GOOD.replace("cpn-f11-31", "None assigned").encode() + b"\n")
    assert isinstance(job, JobRecord)
    assert not job.started


def test_bad_lines_are_set_aside_one_by_one() -> None:
    lines = [
        GOOD,
        "too|few",
        GOOD.replace("CANCELLED by 380693", "FOO"),
        "",
        GOOD.replace("2016-12-22", "2036-12-22").replace("2017-01-01", "2037-01-01"),
        GOOD.replace("163485|163485", "163485.0|163485.0"),
        GOOD,
    ]
    outcomes = read("\n".join(lines).encode())
    found = [o.reason_code if isinstance(o, Rejected) else type(o) for o in outcomes]
    assert found == [
        JobRecord,
        "too_few_columns",
        "unknown_state",
        "future_date",
        StepSeen,
        "truncated_last_line",
    ]
    assert [o.line_no for o in outcomes if isinstance(o, Rejected)] == [2, 3, 5, 7]


def test_broken_utf8_is_kept_in_the_name_only() -> None:
    good, bad = GOOD.encode(), GOOD.encode()
    outcomes = read(good.replace(b"|name", b"|n\xffme") + b"\n" + bad.replace(b"noror", b"n\xffror") + b"\n")
    assert isinstance(outcomes[0], JobRecord)
    assert outcomes[0].job_name == "n\ufffdme"
    assert isinstance(outcomes[1], Rejected)
    assert outcomes[1].reason_code == "invalid_utf8"


@pytest.mark.parametrize(
    ("data", "code"), [(b"JobID|State\n1|COMPLETED\n", "wrong_columns"), (b"\x7fELF\0\n", "not_text")]
)
def test_a_file_of_another_kind_is_refused_as_a_whole(data: bytes, code: str) -> None:
    with pytest.raises(FormatError) as caught:
        read(data)
    assert caught.value.code == code


def test_reading_resumes_at_the_offset_of_any_outcome() -> None:
    data = f"{GOOD}\nbad\n{GOOD}\n".encode()
    whole, reader = read(data), XdmodReader(io.BytesIO(data), now_s=NOW_S)
    for number, _ in enumerate(reader, start=1):
        rest = io.BytesIO(data[reader.offset :])
        again = XdmodReader(rest, now_s=NOW_S, start_line=reader.next_line, offset=reader.offset)
        assert list(again) == whole[number:]


@pytest.mark.shared_data
def test_the_reference_log_is_read_without_a_rejection() -> None:
    outcomes = read_shared("phillips.log")
    assert Counter(type(o) for o in outcomes) == {JobRecord: 4285}
    jobs = [o for o in outcomes if isinstance(o, JobRecord)]
    assert Counter(job.state for job in jobs) == {
        "COMPLETED": 2324,
        "FAILED": 1717,
        "CANCELLED": 243,
        "TIMEOUT": 1,
    }
    assert sum("ReqMem" in job.extra for job in jobs) == 4238
    assert sum(job.started for job in jobs) == 4046


@pytest.mark.shared_data
def test_small_cases_agree_with_the_expected_records() -> None:
    folder = "unit_shredder_slurm"
    jobs = [o for o in read_shared(folder, "input", "accounting-logs.log") if isinstance(o, JobRecord)]
    expected = json.loads(shared_file("xdmod", folder, "output", "accounting-logs.json").read_text())
    assert len(jobs) == len(expected)
    for job, want in zip(jobs, expected, strict=True):
        assert (job.job_id, job.user, job.group) == (want["job_id"], want["user_name"], want["group_name"])
        assert (job.submit_s, job.eligible_s) == (want["submit_time"], want["eligible_time"])
        assert (job.start_s, job.end_s, job.elapsed_s) == (
            want["start_time"],
            want["end_time"],
            want["elapsed"],
        )
        assert (job.nodes, job.cpus, job.gpus) == (int(want["nnodes"]), int(want["ncpus"]), want["ngpus"])
        assert (job.timelimit_s, job.job_name) == (want["timelimit"], want["job_name"])


@pytest.mark.shared_data
def test_arrays_utf8_live_and_unknown_states_of_the_small_cases() -> None:
    folder = "unit_shredder_slurm"
    arrays = [
        o for o in read_shared(folder, "input", "accounting-logs-with-job-arrays.log") if isinstance(o, JobRecord)
    ]
    expected = json.loads(shared_file("xdmod", folder, "output", "accounting-logs-with-job-arrays.json").read_text())
    assert [job.array_tasks for job in arrays] == [len(tasks) for tasks in expected]
    assert {job.raw_job_id for job in arrays} == {4103947}
    live = [o for o in read_shared(folder, "input", "non-ended-job-state.log") if isinstance(o, JobRecord)]
    assert [(job.state, job.end_s, job.started) for job in live] == [
        ("RUNNING", None, True),
        ("PENDING", None, False),
    ]
    unknown = read_shared(folder, "input", "unknown-job-state.log")
    assert [o.reason_code for o in unknown if isinstance(o, Rejected)] == ["unknown_state"] * 2
    (accented,) = read_shared(folder, "input", "utf8-multibyte-chars.log")
    assert isinstance(accented, JobRecord)
    assert accented.job_name == "aàb"


def test_the_form_has_twenty_six_columns() -> None:
    assert COLUMNS.count("|") == 25
    assert datetime.fromtimestamp(NOW_S, UTC).year == 2026


def test_a_reader_of_sacct_text_knows_this_form_and_says_how_to_read_it() -> None:
    for line in (GOOD, f"{GOOD}|a|b"):
        with pytest.raises(FormatError, match="read it with --format xdmod") as caught:
            SacctReader(io.BytesIO(f"{line}\n{line}\n".encode()), now_s=NOW_S)
        assert caught.value.code == "missing_columns"


@pytest.mark.parametrize("line", [GOOD.rpartition("|")[0], "|".join("abcdefghijklmnopqrstuvwxyz"), "JobID|State"])
def test_a_first_line_of_another_form_is_not_taken_for_it(line: str) -> None:
    with pytest.raises(FormatError) as caught:
        SacctReader(io.BytesIO(f"{line}\n".encode()), now_s=NOW_S)
    assert "xdmod" not in str(caught.value)
