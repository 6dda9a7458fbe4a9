"""What `sacct -X` prints, printed again: which records, in which order, how written, and what is left to sacct."""

from collections.abc import Sequence
from typing import Any

import pytest

from telemetry.engine.slurm.printing import FACTS, Accounts, PassedOn, print_accounts, read_sacct_arguments
from telemetry.engine.slurm.printing.account_asked import AskedAccounts
from telemetry.engine.slurm.printing.account_table import write_span

NOW = 1_000_000
BASE = {
    "raw_id": 7, "job_id": "7", "user": "ann", "account": "chem", "partition": "shared", "qos": "normal",
    "name": "relax", "state": "COMPLETED", "submit": NOW - 100, "eligible": NOW - 100, "start": NOW - 90,
    "end": NOW - 20, "elapsed_s": 70, "limit_s": 300,
    "nodes": 1, "cpus": 2, "node_list": "n1", "runs": False, "is_sure": True, "exit_code": 0,
    "exit_signal": 0,
}  # fmt: skip
PENDING = {"state": "PENDING", "start": None, "end": None, "elapsed_s": 0, "node_list": "None assigned"}
RUNNING = {"state": "RUNNING", "end": None, "elapsed_s": None, "runs": True}


def row(**facts: Any) -> list[Any]:
    return [(BASE | facts).get(name) for name in FACTS]


def task(raw_id: int, number: int | None, job_id: str, **facts: Any) -> list[Any]:
    return row(raw_id=raw_id, array_job=7, task=number, job_id=job_id, **facts)


def read(*arguments: str, environment: dict[str, str] | None = None) -> AskedAccounts:
    return read_sacct_arguments(["-X", *arguments], environment or {}, now_s=NOW)


def show(*arguments: str, rows: Sequence[Any] = (), known: Sequence[int] = (7,), **more: Any) -> str:
    accounts = Accounts(rows=rows, **({"login": "ann", "known": known, "since_s": 0} | more))
    printed = print_accounts(read(*arguments), accounts, login="ann", now_s=NOW)
    assert (printed.status, printed.complaint) == (0, "")
    return printed.out.decode(errors="surrogateescape")


def reason(*arguments: str, **more: Any) -> str:
    with pytest.raises(PassedOn) as passed:
        show(*arguments, **more)
    return passed.value.reason


def test_the_default_is_sacct_s() -> None:
    rows = [row(), row(raw_id=8, job_id="8", name="“a” name that is long", state="CANCELLED", cancelled_by=12, cpus=64)]
    assert show(rows=rows) == (
        "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode \n"
        "------------ ---------- ---------- ---------- ---------- ---------- -------- \n"
        "7                 relax     shared       chem          2  COMPLETED      0:0 \n"
        "8            “a” n+     shared       chem         64 CANCELLED+      0:0 \n"
    )


def test_of_one_id_the_last_record_stands_in_the_order_of_submission() -> None:
    again = row(submit=NOW - 50, eligible=NOW - 40, **PENDING)
    first = row(state="REQUEUED")
    rows = [first, row(raw_id=9, job_id="9", submit=NOW - 60), again]
    assert show("-nP", "-o", "jobid,state", rows=rows) == "9|COMPLETED\n7|PENDING\n"
    # A record that is not in the span does not hide an older one that is.
    later = row(submit=NOW - 50, eligible=None, **PENDING)
    assert show("-nP", "-o", "state", rows=[first, later]) == "REQUEUED\n"
    assert show("-nP", "-o", "state", "-j7", rows=[first, later]) == "PENDING\n"


def test_tasks_of_an_array_stand_together_and_what_waits_comes_last() -> None:
    rows = [task(7, None, "7_[3-9%2]", **PENDING), task(9, 2, "7_2"), task(8, 1, "7_1"), row(raw_id=10, job_id="10")]
    assert show("-nP", "-o", "jobid", rows=rows) == "10\n7_1\n7_2\n7_[3-9%2]\n"
    assert show("-nP", "-o", "jobid", "-j", "7", rows=rows) == "7_1\n7_2\n7_[3-9%2]\n"
    assert show("-nP", "-o", "jobid", "-j", "7_2", rows=rows) == "7_2\n"
    assert reason("-j", "7_4", rows=rows) == "array"


@pytest.mark.parametrize(
    ("span", "shown"),
    [
        (("-S", "now-19"), "no"),
        (("-S", "now-20seconds"), "yes"),
        (("-S", "now-1hour", "-E", "now-100"), "no"),
        (("-S", "now-1hour", "-E", "now-99"), "yes"),
    ],
    ids=["ended before", "ended in it", "eligible after", "eligible in it"],
)
def test_a_span_holds_what_was_eligible_in_it(span: tuple[str, ...], shown: str) -> None:
    assert show("-nP", "-o", "jobid", *span, rows=[row()]) == ("7\n" if shown == "yes" else "")


@pytest.mark.parametrize(
    ("field", "facts", "text"),
    [
        ("Elapsed", {}, "00:01:10"),
        ("Elapsed", RUNNING, "00:01:30"),
        ("CPUTime", RUNNING, "00:03:00"),
        ("CPUTimeRAW", {}, "140"),
        ("End", RUNNING, "Unknown"),
        ("Start", PENDING, "Unknown"),
        ("Start", {"start": None, "state": "CANCELLED"}, "None"),
        ("Eligible", {"eligible": None}, "Unknown"),
        ("State", {"state": "CANCELLED", "cancelled_by": 0}, "CANCELLED by 0"),
        ("ExitCode", {"exit_code": 3, "exit_signal": 9}, "3:9"),
        ("Timelimit", {"limit_s": 90_000}, "1-01:00:00"),
        ("TimelimitRaw", {"limit_s": 90_000}, "1500"),
        ("NodeList", PENDING, "None assigned"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_fields(field: str, facts: dict[str, Any], text: str) -> None:
    assert show("-nP", "-j7", "-o", field, rows=[row(**facts)]) == f"{text}\n"


def test_widths_cut_texts_and_no_numbers() -> None:
    asked = ("-j7", "-o", "JobID%3,JobName%-4,AllocCPUS%1,State%3")
    assert show(*asked, rows=[row(cpus=128, job_id="7_11")]).splitlines() == [
        "Job JobN A Sta ", "--- ---- - --- ", "7_+ rel+ 128 CO+ ",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "more", "expected"),
    [
        (["-a"], {}, "option"),
        (["-D"], {}, "option"),
        (["-s", "F"], {}, "option"),
        (["--json"], {}, "option"),
        (["-o", "JobID,MaxRSS"], {}, "field"),
        (["-o", "Job"], {}, "field"),
        (["-o", "jobid,jobid%5"], {}, "format"),
        (["-o", "jobid%0"], {}, "format"),
        (["-o", "jobid,"], {}, "format"),
        (["-S", "noon"], {}, "time"),
        (["-S", "13:00"], {}, "time"),
        (["-S", "2026-02-30"], {}, "time"),
        (["-S", "now", "-E", "now-1days"], {}, "time"),
        (["-j", "7.batch"], {}, "job_id"),
        (["-j", "8"], {}, "unknown_job"),
        (["-j", "7"], {"behind": [7]}, "unknown_job"),
        ([], {"behind": [9]}, "unknown_job"),
        ([], {"since_s": None}, "old"),
        (["-S", "now-1days"], {"since_s": NOW}, "old"),
        (["-u", "bob"], {}, "other_user"),
        ([], {"login": "ann2"}, "other_user"),
        (["-j7"], {"rows": [row(name=None)]}, "withheld"),
        (["-j7"], {"rows": [row(is_sure=False)]}, "accounting"),
        (["-j7", "-o", "nnodes"], {"rows": [row(nodes=1024)]}, "withheld"),
        (["-j7", "-o", "elapsed"], {"rows": [row(state="SUSPENDED", end=None, elapsed_s=None)]}, "withheld"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value)) if isinstance(value, list) else "",
)
def test_what_is_left_to_sacct(arguments: list[str], more: dict[str, Any], expected: str) -> None:
    assert reason(*arguments, **({"rows": [row()]} | more)) == expected


def test_steps_and_an_environment_are_left_to_sacct() -> None:
    with pytest.raises(PassedOn, match="steps"):
        read_sacct_arguments(["-j", "7"], {}, now_s=NOW)
    for name in ("SACCT_FORMAT", "SLURM_TIME_FORMAT", "SLURM_CLUSTERS", "SLURM_BITSTR_LEN"):
        with pytest.raises(PassedOn, match="environment"):
            read(environment={name: "x"})


def test_spans() -> None:
    assert [write_span(seconds) for seconds in (0, 65, 3600, 90_061)] == [
        "00:00:00",
        "00:01:05",
        "01:00:00",
        "1-01:01:01",
    ]
