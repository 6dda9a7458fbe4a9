"""What hooks say: the forms that Slurm 22.05.8 gave, the traps in them, and what becomes of a report."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine.slurm.errors import FieldError
from telemetry.engine.slurm.hooks import NAMES, Report, Stored, digest_of, judge, read_file, read_report
from telemetry.engine.slurm.values import ENDED_STATES, STATES

SUBMIT, START, END, FIRED = 1796071903, 1796071904, 1796071907, 1796071907.89
COMPLETED = {
    "JOBID": "4", "ARRAYJOBID": "0", "ARRAYTASKID": "4294967294", "JOBSTATE": "COMPLETED", "EXITCODE": "0:0",
    "SUBMIT": str(SUBMIT), "START": str(START), "END": str(END), "NODECNT": "1",
}  # fmt: skip
EPILOG = {"SLURM_JOB_ID": "5", "SLURM_JOB_EXIT_CODE": "768", "SLURM_JOB_RESTART_COUNT": "0"}
MAIL = {"SLURM_JOB_ID": "7", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "2", "SLURM_JOB_MAIL_TYPE": "Began"}


def report(kind: str = "jobcomp", values: dict[str, str] = COMPLETED, **others: str) -> Report:
    found = read_report(kind, values | others, fired_s=FIRED)
    assert found is not None
    return found


def file_of(kind: str, values: dict[str, str]) -> bytes:
    pairs = {"HOOK": kind, **values, "DONE": "1"}
    return b"".join(f"{name}={value}\0".encode() for name, value in pairs.items())


def test_an_end_is_whole() -> None:
    found = report()
    assert found == Report("jobcomp", 4, FIRED, "ended", None, "", SUBMIT, START, END, "COMPLETED", 0, 0)
    assert found.is_whole


def test_exit_codes_and_signals() -> None:
    assert report(JOBSTATE="FAILED", EXITCODE="3:0")[-3:-1] == (3, 0)
    assert report(JOBSTATE="FAILED", EXITCODE="0:9")[-3:-1] == (0, 9)
    assert report("epilog", EPILOG)[-3:-1] == (3, 0)
    assert report("epilog", EPILOG, SLURM_JOB_EXIT_CODE="9")[-3:-1] == (0, 9)
    assert report("epilog", EPILOG, SLURM_JOB_EXIT_CODE2="0:15")[-3:-1] == (0, 15)


def test_a_task_of_an_array_is_named_as_people_do() -> None:
    found = report(JOBID="8", ARRAYJOBID="7", ARRAYTASKID="1")
    assert (found.job, found.array_job, found.task) == (8, 7, "7_1")
    whole = report(JOBID="7", ARRAYJOBID="7")  # an array that was cancelled before any of its tasks started
    assert (whole.array_job, whole.task) == (7, "")


def test_what_was_cancelled_before_it_started_has_no_start() -> None:
    found = report(JOBSTATE="CANCELLED", START=str(END), NODECNT="0")
    assert (found.start_s, found.end_s, found.is_whole) == (None, END, True)


@pytest.mark.parametrize("state", ["PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT"])
def test_a_requeue_is_no_end(state: str) -> None:
    found = report(JOBSTATE=state)
    assert (found.happened, found.state, found.is_whole) == ("requeued", "", False)


def test_the_epilog_says_neither_end_nor_requeue() -> None:
    assert not report("epilog", EPILOG).is_whole
    assert not report("epilog", EPILOG, SLURM_JOB_START_TIME=str(START), SLURM_JOB_END_TIME=str(END)).is_whole


def test_mails_of_other_things_tell_of_no_change() -> None:
    assert report("mail", MAIL).happened == "began"
    assert read_report("mail", MAIL | {"SLURM_JOB_MAIL_TYPE": "Reached 80% of time limit"}, fired_s=FIRED) is None
    assert read_report("mail", {}, fired_s=FIRED) is None


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"JOBID": ""}, "bad_job_id"),
        ({"JOBID": "0"}, "bad_job_id"),
        ({"JOBID": "4294967294"}, "bad_job_id"),
        ({"JOBID": "4; rm"}, "bad_number"),
        ({"JOBSTATE": "DONE"}, "unknown_state"),
        ({"JOBSTATE": ""}, "unknown_state"),
        ({"EXITCODE": "3"}, "bad_exit_code"),
        ({"END": "12"}, "bad_time"),
        ({"END": str(2**39)}, "bad_time"),  # in the year 19391: no date can hold it
        ({"END": str(START - 1)}, "bad_time"),
    ],
)
def test_what_no_slurm_says_is_refused(values: dict[str, str], code: str) -> None:
    with pytest.raises(FieldError) as caught:
        report(**values)
    assert caught.value.code == code


def test_a_file_keeps_what_is_listed_alone() -> None:
    kind, values = read_file(file_of("jobcomp", COMPLETED | {"JOBNAME": "a\nb", "AWS_SECRET": "x", "STDOUT": "é"}))
    assert (kind, values) == ("jobcomp", COMPLETED)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "hook_cut"),
        (file_of("jobcomp", COMPLETED)[:-3], "hook_cut"),
        (file_of("jobcomp", COMPLETED) + b"x", "hook_cut"),
        (file_of("jobcomp", COMPLETED | {"X": "y" * 5000}), "hook_cut"),
        (file_of("prolog", COMPLETED), "hook_unknown"),
        (b"A=1\0DONE=1\0", "hook_unknown"),
        (file_of("jobcomp", COMPLETED | {"JOBID": "4\n5"}), "bad_value"),
        (file_of("jobcomp", COMPLETED | {"JOBID": "\xe9"}), "bad_value"),
        (file_of("jobcomp", COMPLETED | {"JOBID": "4" * 65}), "bad_value"),
    ],
)
def test_a_file_that_is_none_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(FieldError) as caught:
        read_file(data)
    assert caught.value.code == code


@given(st.binary(max_size=300) | st.sampled_from(sorted(NAMES)).map(lambda kind: file_of(kind, COMPLETED | EPILOG)))
def test_any_bytes_are_a_file_or_refused(data: bytes) -> None:
    try:
        kind, values = read_file(data)
        read_report(kind, values, fired_s=FIRED)
    except FieldError as error:
        assert error.code


_texts = st.text(max_size=12) | st.integers(0, 2**64).map(str) | st.sampled_from(sorted(STATES)) | st.just("3:0")


@given(st.sampled_from(sorted(NAMES)), st.data())
def test_any_values_are_a_report_or_refused(kind: str, data: st.DataObject) -> None:
    values = data.draw(st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES[kind], _texts)))
    try:
        found = read_report(kind, values, fired_s=FIRED)
    except FieldError as error:
        assert error.code
        return
    if found is not None:
        assert found.state in ENDED_STATES | {""}
        assert -(2**63) <= digest_of(found) < 2**63


def test_the_same_end_told_twice_is_the_same_news() -> None:
    again = report()._replace(fired_s=FIRED + 60)
    assert digest_of(report()) == digest_of(again)
    assert digest_of(report()) != digest_of(report(SUBMIT=str(SUBMIT - 1)))
    mail = report("mail", MAIL)
    assert digest_of(mail) != digest_of(mail._replace(fired_s=FIRED + 60))  # a job that was requeued begins again


RUNNING = Stored("4", SUBMIT, "RUNNING", START, None)
WAITING = Stored("4", SUBMIT, "PENDING", None, None)
ENDED = Stored("4", SUBMIT, "COMPLETED", START, END)
REQUEUED = Stored("4", SUBMIT, "REQUEUED", START, END)
AGAIN = Stored("4", END, "PENDING", None, None)


@pytest.mark.parametrize(
    ("records", "verdict"),
    [
        ([], "ask"),
        ([RUNNING], "apply"),
        ([WAITING], "apply"),
        ([ENDED], "known"),
        ([REQUEUED, AGAIN], "known"),
        ([AGAIN], "ask"),  # of another stretch of the job
    ],
)
def test_what_becomes_of_an_end(records: list[Stored], verdict: str) -> None:
    assert judge(report(), records) == verdict


def test_a_row_that_stands_for_all_tasks_is_not_ended_by_one() -> None:
    task = report(JOBID="7", ARRAYJOBID="7", ARRAYTASKID="2")
    assert judge(task, [WAITING._replace(job_id="7_[1-2]")]) == "ask"
    assert judge(task, [RUNNING._replace(job_id="7_2")]) == "apply"
    assert judge(report(JOBID="7", ARRAYJOBID="7"), [WAITING._replace(job_id="7_[1-2]")]) == "ask"
    assert judge(report(JOBID="7"), [WAITING._replace(job_id="7_[1-2]")]) == "ask"


@pytest.mark.parametrize(
    ("records", "verdict"),
    [
        ([], "ask"),
        ([WAITING], "ask"),
        ([RUNNING], "ask"),
        ([ENDED], "known"),
        ([REQUEUED, AGAIN], "known"),
        ([ENDED._replace(end_s=END - 3600), WAITING._replace(submit_s=END)], "ask"),
    ],
)
def test_an_epilog_is_settled_once_the_stretch_is_closed(records: list[Stored], verdict: str) -> None:
    assert judge(report("epilog", EPILOG), records) == verdict


@pytest.mark.parametrize(
    ("records", "verdict"),
    [([], "ask"), ([WAITING], "ask"), ([RUNNING], "known"), ([ENDED], "known"), ([REQUEUED, AGAIN], "ask")],
)
def test_a_start_is_settled_once_the_newest_record_has_one(records: list[Stored], verdict: str) -> None:
    assert judge(report("mail", MAIL), records) == verdict


_ids = st.sampled_from(["4", "7_2", "7_[1-2]"])
_times = st.none() | st.integers(START, END)
_stored = st.builds(Stored, _ids, st.integers(SUBMIT - 2, SUBMIT + 2), st.sampled_from(sorted(STATES)), _times, _times)


@given(st.lists(_stored))
def test_what_has_ended_is_never_changed_and_what_is_not_known_never_made(records: list[Stored]) -> None:
    unique = list({record.submit_s: record for record in records}.values())
    if judge(report(), unique) == "apply":
        record = next(record for record in unique if record.submit_s == SUBMIT)
        assert record.state not in ENDED_STATES and record.job_id == "4"
