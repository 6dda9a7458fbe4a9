"""What squeue prints, printed again: layouts, durations, what is left to the real command."""

from collections.abc import Sequence

import pytest

from telemetry.engine.slurm.printing import KEYS, PassedOn, Printed, Queue, print_queue, read_squeue_arguments
from telemetry.engine.slurm.printing.layout import lay_out, lay_out_header, read_long, read_short
from telemetry.engine.slurm.printing.times import read_duration, write_duration

HEADER = "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
BASE = {
    "account": "chem", "jobid": "7", "tres-per-node": "N/A", "batchhost": "n1", "arrayjobid": "7", "jobarrayid": "7",
    "name": "relax", "comment": "(null)", "arraytaskid": "N/A", "timelimit": "5:00", "timeused": "", "numnodes": "1",
    "nodelist": "n1", "partition": "shared", "reason": "None", "reasonlist": "n1", "starttime": "1000",
    "statecompact": "R", "state": "RUNNING", "username": "ann", "userid": "1", "endtime": "1300",
}  # fmt: skip


def row(**texts: str | None) -> list[str | None]:
    return [{**BASE, **texts}.get(key, "") for key in KEYS]


def show(*arguments: str, rows: Sequence[Sequence[str | None]] = (), now_s: int = 1065, **known: object) -> Printed:
    queue = Queue(rows=rows, logins=["ann"], open=["shared"], **known)  # type: ignore[arg-type]
    return print_queue(read_squeue_arguments(arguments, {}), queue, login="ann", now_s=now_s)


def reason(*arguments: str, environment: dict[str, str] | None = None, **known: object) -> str:
    with pytest.raises(PassedOn) as passed:
        read_squeue_arguments(arguments, environment or {})
        show(*arguments, **known)  # type: ignore[arg-type]
    return passed.value.reason


def test_the_default_is_squeues() -> None:
    told = show("--me", rows=[row(), row(jobid="8", jobarrayid="8_[1-9%2]", statecompact="PD", reasonlist="(Priority)",
                                         timeused="0:00", name="a name that is long")])  # fmt: skip
    assert told.out.decode() == (
        HEADER
        + "                 7    shared    relax      ann  R       1:05      1 n1\n"
        + "         8_[1-9%2]    shared a name t      ann PD       0:00      1 (Priority)\n"
    )
    assert (told.status, told.complaint) == (0, "")


@pytest.mark.parametrize(
    ("layout", "text", "expected"),
    [
        ("%.5j|", "ab", "   ab|"),
        ("%.5j|", "abcdefg", "abcde|"),
        ("%5j|", "abcdefg", "abcde|"),
        ("%5j|", "ab", "ab   |"),
        ("%j|", "abcdefg", "abcdefg|"),
        ("%.3N", "n[1-9]", "n[1-9]"),  # a list of nodes to the right is never cut
        ("%3N", "n[1-9]", "n[1"),
        ("%.3R", "(Priority)", "(Pr"),
        ("%.3R", "n[1-9]", "n[1-9]"),
        ("%.2l", "1-00:00:00", "1-00:00:00"),
        ("%2l", "1-00:00:00", "1-"),
        ("%.5k", "(null)", "(null"),
        ("x%iy", "7", "x7y"),
    ],
)
def test_columns_of_o(layout: str, text: str, expected: str) -> None:
    assert lay_out(read_short(layout), [text]) == expected.encode() + b"\n"


def test_bytes_are_cut_not_letters() -> None:
    assert lay_out(read_short("%.3j"), ["aüb"]) == "aü".encode() + b"\n"
    assert lay_out(read_short("%.2j"), ["aü"]) == b"a\xc3\n"


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("JobID", "JOBID               "),
        ("jobid:8,NAME:.6", "JOBID     NAME"),
        ("jobid:|", "JOBID|"),
        ("jobid:.|", "JOBID|"),
        ("name:5x", "NAME x"),
        ("name:2,name:.2", "NANA"),
        ("timeused:.2,timelimit:.3,timeleft:.4", "TITIMTIME"),
        ("nodelist:.2,reasonlist:.2", "NODELISTNODELIST(REASON)"),
    ],
)
def test_columns_of_big_o(layout: str, expected: str) -> None:
    assert lay_out_header(read_long(layout)) == expected.encode() + b"\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (65, "1:05"), (3600, "1:00:00"), (86_400, "1-00:00:00"), (-1, "INVALID"), (31_536_001, "INVALID")],
)
def test_durations(seconds: int, text: str) -> None:
    assert write_duration(seconds) == text
    if text != "INVALID":
        assert read_duration(text) == seconds


def test_time_goes_on_while_a_job_runs() -> None:
    rows = [row()]
    assert show("--me", "-h", "-o", "%M %L", rows=rows, now_s=1010).out == b"0:10 4:50\n"
    assert show("--me", "-h", "-o", "%M %L", rows=rows, now_s=1301).out == b"5:01 INVALID\n"
    assert show("--me", "-h", "-o", "%L", rows=[row(timelimit="UNLIMITED")]).out == b"UNLIMITED\n"
    assert show("--me", "-h", "-o", "%M", rows=[row(timeused="0:07")]).out == b"0:07\n"


def test_a_job_that_is_gone_is_said_to_be() -> None:
    gone = show("-j", "9", ended=[9])
    assert gone == Printed(b"", "slurm_load_jobs error: Invalid job id specified\n", 1)
    assert show("-j", "9,7", rows=[row()], ended=[9], now_s=1065).out.count(b"\n") == 2


def test_ids_of_arrays_and_of_their_tasks() -> None:
    rows = [row(jobid="8", arrayjobid="7", jobarrayid="7_1", arraytaskid="1", starttime="1001"),
            row(jobid="9", arrayjobid="7", jobarrayid="7_2", arraytaskid="2")]  # fmt: skip
    for asked, expected in (("7", b"8\n9\n"), ("9", b"9\n"), ("7_1", b"8\n"), ("7_2,8", b"8\n9\n")):
        assert show("-hj", asked, "-o", "%A", rows=rows).out == expected
    assert reason("-j", "7_3", rows=[row(jobarrayid="7_[1-4]", arraytaskid="1-4")]) == "array"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--me", "--json"], "option"),
        (["--me", "-s"], "option"),
        (["--me", "-i5"], "option"),
        (["--me", "-M", "all"], "option"),
        (["--me", "--use=ann"], "option"),
        (["-u", "ann", "--me"], "option"),
        (["--me", "5"], "option"),
        (["-j", "1", "2"], "option"),
        (["--me", "-o", "%all"], "format"),
        (["--me", "-o", "%i%%"], "format"),
        (["--me", "-o", "JOBID"], "format"),
        (["--me", "-o", "%g"], "field"),
        (["--me", "-O", "JobID,Nothing"], "field"),
        (["--me", "-O", "JobID,"], "format"),
        (["--me", "-O", "JobID:-3"], "format"),
        (["--me", "-t", "XX"], "state"),
        (["-j", "x"], "job_id"),
        (["-j", "5"], "unknown_job"),
        (["-u", "bob"], "other_user"),
        (["-u", "ann,bob"], "other_user"),
        ([], "all_users"),
        (["-p", "shared"], "all_users"),
    ],
)
def test_what_is_left_to_the_real_command(arguments: list[str], expected: str) -> None:
    assert reason(*arguments) == expected


@pytest.mark.parametrize(
    ("texts", "arguments", "expected"),
    [
        ({"name": None}, [], "withheld"),
        ({"name": None}, ["-n", "x"], "withheld"),
        ({"statecompact": "SE"}, [], "job_state"),
        ({"statecompact": "CG"}, ["-t", "CD"], "job_state"),
        ({"partition": "secret"}, [], "hidden"),
        ({"timeused": "?"}, [], "time"),
        ({}, ["-o", "%5k"], "null"),
        ({"name": "ünï"}, ["-n", "ÜNÏ"], "folding"),
    ],
)
def test_what_is_not_known_for_sure(texts: dict[str, str | None], arguments: list[str], expected: str) -> None:
    assert reason("--me", *arguments, rows=[row(**texts)]) == expected


def test_hidden_partitions_are_shown_to_who_asks() -> None:
    for asked in (["-a"], ["-p", "secret"], ["-j", "7"]):
        assert show("--me", "-h", "-o", "%A", *asked, rows=[row(partition="secret")]).out == b"7\n"


@pytest.mark.parametrize("name", ["SQUEUE_FORMAT", "SLURM_CLUSTERS", "SLURM_BITSTR_LEN", "SLURM_TIME_FORMAT"])
def test_an_environment_that_changes_squeue(name: str) -> None:
    assert reason("--me", environment={name: "x"}) == "environment"


def test_rows_of_two_names_have_no_known_order() -> None:
    queue = Queue(rows=[row(), row(username="ann2", jobid="8", jobarrayid="8", arrayjobid="8")], logins=["ann", "ann2"])
    with pytest.raises(PassedOn, match="order"):
        print_queue(read_squeue_arguments(["-u", "ann,ann2", "-a"], {}), queue, login="ann", now_s=0)


def test_tasks_that_started_together_have_no_known_order_where_one_id_is_asked_about() -> None:
    rows = [row(jobid=task, arrayjobid="7", jobarrayid=f"7_{task}", arraytaskid=task) for task in ("1", "2")]
    assert reason("-j", "7", rows=rows) == "order"
    assert show("--me", "-h", "-o", "%A", rows=rows).out == b"1\n2\n"


def test_a_job_that_has_ended_since_is_listed_no_more() -> None:
    rows = [row(), row(jobid="8", jobarrayid="8", arrayjobid="8")]
    for asked in (["--me"], ["-j", "7,8"], ["--me", "-t", "R,PD"]):
        assert show("-h", "-o", "%A", *asked, rows=rows, over=[7]).out == b"8\n"
    assert show("-h", "-j", "7", rows=rows, over=[7]) == Printed(b"")
    for states in ("all", "CD", "CG", "R,CG"):  # how Slurm shows it nobody knows
        assert reason("--me", "-t", states, rows=rows, over=[7]) == "job_state"
