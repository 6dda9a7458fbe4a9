import io
import tracemalloc
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from telemetry.engine.slurm import groups
from telemetry.engine.slurm.columns import COMMAND, Plan
from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.lines import MAX_LINE_BYTES
from telemetry.engine.slurm.records import JobRecord, Outcome, Rejected, StepSeen, campaign_of, content_digest
from telemetry.engine.slurm.rows import RowBuilder
from telemetry.engine.slurm.sacct_text import MAX_LINES_OF_RECORD, SacctReader
from tests.telemetry.engine.bulk_outcomes import read_in_blocks, tell
from tests.telemetry.engine.sacct_texts import COLUMNS, NOW_S, many_rows, row, text
from tests.telemetry.engine.shared import shared_file

NARROW = ("JobID", "JobIDRaw", "JobName", "User", "State", "Submit", "Start", "End")


def read(data: bytes | Iterable[bytes]) -> list[Outcome]:
    """Read a text row by row; whatever a test gives as bytes must read the same in blocks."""
    source = io.BytesIO(data) if isinstance(data, bytes) else data
    outcomes = list(SacctReader(source, now_s=NOW_S))
    if isinstance(data, bytes):
        assert read_in_blocks(data, now_s=NOW_S, block_bytes=1 << 20) == tell(outcomes)
    return outcomes


def read_one(data: bytes) -> JobRecord:
    (outcome,) = read(data)
    assert isinstance(outcome, JobRecord), outcome
    return outcome


def codes(outcomes: Iterable[Outcome]) -> list[str]:
    return [o.reason_code if isinstance(o, Rejected) else type(o).__name__ for o in outcomes]


def test_a_good_row_fills_every_field_in_its_place() -> None:
    job = read_one(text(row(State="CANCELLED by 7", ExitCode="3:15", Comment="campaign=fold")))
    assert job == JobRecord(
        raw_job_id=101,
        job_id="101",
        user="ada",
        state="CANCELLED",
        submit_s=1782900000,
        eligible_s=1782900000,
        start_s=1782900300,
        end_s=1782903900,
        elapsed_s=3600,
        timelimit_s=86400,
        nodes=1,
        cpus=8,
        req_cpus=8,
        gpus=2,
        gpu_types=("a100",),
        mem_bytes=16 * 2**30,
        uid=1001,
        cancelled_by_uid=7,
        exit_code=3,
        exit_signal=15,
        started=True,
        campaign="fold",
        account="chem",
        partition="gpu",
        qos="normal",
        node_list="gpu-1",
        job_name="train",
        submit_line="sbatch run.sh",
        work_dir="/home/ada",
        comment="campaign=fold",
        extra={},
    )


def test_columns_may_come_in_any_order_and_unknown_ones_are_kept() -> None:
    columns = (*reversed(COLUMNS), "Moonphase")
    data = text(row(COLUMNS[::-1]) + "|full", row(COLUMNS[::-1]) + "|", columns=columns)
    first, second = read(data)
    assert isinstance(first, JobRecord)
    assert isinstance(second, JobRecord)
    assert first.extra == {"Moonphase": "full"}
    assert second == read_one(text(row()))


def test_the_trailing_separator_of_the_other_parsable_form_is_understood() -> None:
    assert read_one(f"{'|'.join(COLUMNS)}|\n{row()}|\n".encode()) == read_one(text(row()))


def test_byte_order_mark_and_carriage_returns_are_taken_off() -> None:
    data = b"\xef\xbb\xbf" + text(row(), row(JobID="102", JobIDRaw="102")).replace(b"\n", b"\r\n")
    assert [o.job_id for o in read(data) if isinstance(o, JobRecord)] == ["101", "102"]


def test_steps_are_seen_and_counted_apart() -> None:
    steps = [
        row(JobID=f"101.{s}", JobIDRaw=f"101.{s}", User="", UID="") for s in ("batch", "extern", "0", "interactive")
    ]
    assert Counter(codes(read(text(row(), *steps)))) == {"JobRecord": 1, "StepSeen": 4}
    assert read(text(row(JobID="7_1.batch", JobIDRaw="29.batch", User="")))[0] == StepSeen(29, "batch")


def test_arrays_and_heterogeneous_jobs_keep_their_places() -> None:
    task = read_one(text(row(JobID="7_1", JobIDRaw="29")))
    assert (task.raw_job_id, task.job_id, task.array_job_id, task.array_task, task.array_tasks) == (
        29,
        "7_1",
        7,
        1,
        1,
    )
    pending = read_one(text(row(JobID="7_[2-9%3]", JobIDRaw="7", State="PENDING", Start="Unknown", End="Unknown")))
    assert (pending.array_job_id, pending.array_task, pending.array_tasks) == (7, None, 8)
    part = read_one(text(row(JobID="50+1", JobIDRaw="51")))
    assert (part.raw_job_id, part.het_job_id, part.het_offset) == (51, 50, 1)


def test_without_the_raw_id_only_plain_jobs_have_a_key() -> None:
    columns = [name for name in COLUMNS if name != "JobIDRaw"]
    outcomes = read(text(row(columns), row(columns, JobID="7_1"), row(columns, JobID="7.batch"), columns=columns))
    assert codes(outcomes) == ["JobRecord", "raw_id_unknown", "StepSeen"]


def test_live_jobs_have_no_end_and_waiting_ones_show_what_they_asked_for() -> None:
    running = read_one(text(row(State="RUNNING", End="Unknown", Elapsed="00:02:09")))
    assert (running.end_s, running.elapsed_s, running.started) == (None, 129, True)
    columns = (*COLUMNS, "ReqTRES")
    waiting = row(
        State="PENDING",
        Start="Unknown",
        End="Unknown",
        AllocTRES="",
        NCPUS="0",
        NNodes="2",
        Elapsed="00:00:00",
    )
    job = read_one(text(waiting + "|cpu=8,gres/gpu:h100=4,node=2", columns=columns))
    assert (job.started, job.nodes, job.cpus, job.gpus, job.gpu_types) == (False, 2, 8, 4, ("h100",))


def test_a_job_that_never_got_a_node_never_started() -> None:
    job = read_one(text(row(NodeList="None assigned", State="CANCELLED by 7")))
    assert not job.started
    assert not read_one(text(row(Start="None", State="CANCELLED by 7", Elapsed="00:00:00"))).started


def test_a_missing_end_follows_from_start_and_elapsed() -> None:
    columns = [name for name in COLUMNS if name != "End"]
    assert read_one(text(row(columns), columns=columns)).end_s == 1782903900


def test_a_deleted_user_is_named_by_uid_and_nobody_is_set_aside() -> None:
    assert read_one(text(row(User=""))).user == "uid:1001"
    assert codes(read(text(row(User="", UID="4294967294")))) == ["no_user"]


def test_per_node_and_per_cpu_memory_is_made_total_and_garbage_kept_as_text() -> None:
    assert read_one(text(row(AllocTRES="", ReqMem="100Mc"))).mem_bytes == 800 * 2**20
    assert read_one(text(row(AllocTRES="", ReqMem="100Mn", NNodes="3"))).mem_bytes == 300 * 2**20
    garbage = read_one(text(row(AllocTRES="", ReqMem="2147486648Mn")))
    assert (garbage.mem_bytes, garbage.extra) == (None, {"ReqMem": "2147486648Mn"})


@pytest.mark.parametrize(
    ("column", "value", "code"),
    [
        ("State", "FOO", "unknown_state"),
        ("JobIDRaw", "x", "bad_job_id"),
        ("Start", "soon", "bad_time"),
        ("Elapsed", "long", "bad_duration"),
        ("NCPUS", "-1", "bad_count"),
        ("AllocTRES", "cpu", "bad_tres"),
        ("ReqMem", "lots", "bad_memory"),
        ("ExitCode", "1", "bad_exit_code"),
        ("Submit", "Unknown", "no_submit_time"),
        ("Submit", "2027-07-01T10:00:00", "future_date"),
        ("End", "2026-07-01T10:04:59", "end_before_start"),
    ],
)
def test_a_bad_value_is_set_aside_with_its_reason_and_good_neighbours_stay(column: str, value: str, code: str) -> None:
    bad = row(**{column: value})
    outcomes = read(text(row(), bad, row(JobID="103", JobIDRaw="103")))
    assert codes(outcomes) == ["JobRecord", code, "JobRecord"]
    assert isinstance(outcomes[1], Rejected)
    assert (outcomes[1].line_no, outcomes[1].raw) == (3, bad)


def test_separators_in_what_people_write_are_theirs() -> None:
    written = {
        "JobName": "a|b",
        "Comment": "x||y|",
        "WorkDir": "/home/|",
        "SubmitLine": "sbatch --wrap cat f | sort | uniq",
    }
    for column, value in written.items():
        assert read_one(text(row(**{column: value}))) == read_one(text(row()))._replace(
            **{
                {"JobName": "job_name", "SubmitLine": "submit_line", "WorkDir": "work_dir"}.get(
                    column, "comment"
                ): value
            }
        )
    job = read_one(text(row(**written)))
    assert (job.job_name, job.comment, job.work_dir, job.submit_line) == tuple(written.values())


def test_newlines_in_what_people_write_are_theirs() -> None:
    job = read_one(text(row(JobName="one\ntwo|\n", SubmitLine="sbatch --wrap set -e\n\nmake | tee log\n")))
    assert job.job_name == "one\ntwo|\n"
    assert job.submit_line == "sbatch --wrap set -e\n\nmake | tee log\n"


def test_a_free_last_column_ends_where_the_next_record_begins() -> None:
    columns = (*COLUMNS[:-2], "ExitCode", "SubmitLine")
    first = row(columns, SubmitLine="sbatch --wrap a\nb | c\n\nd")
    outcomes = read(text(first, row(columns, JobID="102", JobIDRaw="102", JobName="x\ny"), columns=columns))
    assert [o.submit_line for o in outcomes if isinstance(o, JobRecord)] == [
        "sbatch --wrap a\nb | c\n\nd",
        "sbatch run.sh",
    ]


def test_records_of_many_lines_follow_each_other() -> None:
    names = ["a\n" * lines for lines in (60, 60, 3, 40, 1, 60)]
    outcomes = read(text(*[row(JobID=str(n), JobIDRaw=str(n), JobName=name) for n, name in enumerate(names, 1)]))
    assert [o.job_name for o in outcomes if isinstance(o, JobRecord)] == names


def test_a_record_that_may_go_on_beyond_its_limit_is_set_aside() -> None:
    columns = (*COLUMNS[:-2], "ExitCode", "SubmitLine")
    long = row(columns, SubmitLine="sbatch --wrap " + "line\n" * 100)
    outcomes = read(text(long, row(columns, JobID="102", JobIDRaw="102"), columns=columns))
    assert codes(outcomes) == ["record_too_long", "too_few_columns", "JobRecord"]


def test_a_separator_between_two_neighbouring_free_columns_is_never_guessed() -> None:
    columns = (*COLUMNS, "AdminComment", "StdOut")
    outcomes = read(text(row() + "|one|two|three", row() + "|one|two", columns=columns))
    assert codes(outcomes) == ["ambiguous_split", "JobRecord"]


def test_a_cut_record_behind_a_free_last_column_could_be_its_tail_and_is_not_guessed() -> None:
    columns = (*COLUMNS[:-2], "ExitCode", "SubmitLine")
    good = row(columns, JobID="102", JobIDRaw="102")
    outcomes = read(text(row(columns), "103|103|ada|tra", good, columns=columns))
    assert codes(outcomes) == ["ambiguous_record", "JobRecord"]


@pytest.mark.parametrize("bad", ["nonsense", "5|5|x", "|" * 24, "|" * 60, "%%%\n%%%", "101|101|ada|tra"])
def test_the_record_behind_a_bad_line_is_not_swallowed(bad: str) -> None:
    outcomes = read(text(row(), bad, row(JobID="103", JobIDRaw="103"), row(JobID="104", JobIDRaw="104")))
    assert [o.job_id for o in outcomes if isinstance(o, JobRecord)] == ["101", "103", "104"]
    assert "\n".join(o.raw for o in outcomes if isinstance(o, Rejected)) == bad


def test_a_cut_record_between_good_ones_is_one_rejection() -> None:
    cut = row(JobID="102", JobIDRaw="102")[:-40]
    outcomes = read(text(row(), cut, row(JobID="103", JobIDRaw="103")))
    assert codes(outcomes) == ["JobRecord", "too_few_columns", "JobRecord"]


def test_a_repeated_header_is_no_row_and_blank_lines_are_nothing() -> None:
    data = text(row()) + b"\n" + text(row(JobID="102", JobIDRaw="102"))
    assert codes(read(data)) == ["JobRecord", "JobRecord"]


@pytest.mark.parametrize("kept", [1, 3, 8, 40, 120, len(row())])
def test_a_last_line_without_its_end_is_set_aside_even_if_it_looks_whole(kept: int) -> None:
    outcomes = read(text(row()) + row(JobID="999", JobIDRaw="999")[:kept].encode())
    assert codes(outcomes) == ["JobRecord", "truncated_last_line"]


def test_a_cut_tail_takes_the_record_it_may_belong_to_with_it() -> None:
    columns = (*COLUMNS[:-2], "ExitCode", "SubmitLine")
    outcomes = read(text(row(columns), columns=columns) + b"echo and so on")
    assert codes(outcomes) == ["truncated_last_line"]
    assert isinstance(outcomes[0], Rejected)
    assert outcomes[0].lines == 2


def test_a_line_without_end_is_not_held_in_memory() -> None:
    def endless() -> Iterator[bytes]:
        yield text(row())
        for _ in range(160):
            yield b"x" * 65_536
        yield b"\n" + row(JobID="102", JobIDRaw="102").encode() + b"\n"

    tracemalloc.start()
    outcomes = read(endless())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert codes(outcomes) == ["JobRecord", "line_too_long", "JobRecord"]
    assert peak < 4 * MAX_LINE_BYTES


def test_lines_that_never_make_a_record_are_let_go_in_bounded_groups() -> None:
    outcomes = read(text(row(), *["nonsense"] * 1000, row(JobID="102", JobIDRaw="102")))
    rejected = [o for o in outcomes if isinstance(o, Rejected)]
    assert sum(o.lines for o in rejected) == 1000
    assert max(o.lines for o in rejected) <= MAX_LINES_OF_RECORD
    assert codes(outcomes).count("JobRecord") == 2


def test_tangled_text_is_given_up_in_bounded_work(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    judge = groups.judge

    def counting(plan: Plan, builder: RowBuilder, fields: list[str], *rest: Any) -> Outcome | None:
        tried.append(len(fields))
        return judge(plan, builder, fields, *rest)

    monkeypatch.setattr(groups, "judge", counting)
    start, tail = row().split("|")[:5], row().split("|")[-8:]
    tangle = "|".join([*start, *tail])
    data = text(*[tangle] * 64, row(JobID="102", JobIDRaw="102"))
    outcomes = list(SacctReader(io.BytesIO(data), now_s=NOW_S))
    assert sum(o.lines for o in outcomes if isinstance(o, Rejected)) == 64
    assert codes(outcomes)[-1] == "JobRecord"
    assert 0 < sum(tried) < 2 * groups.MAX_TRIED_SEPARATORS


def test_zero_bytes_are_named_and_kept_out() -> None:
    assert codes(read(text(row(), "a\0b", row(JobID="102", JobIDRaw="102")))) == [
        "JobRecord",
        "binary_data",
        "JobRecord",
    ]


def test_broken_utf8_is_kept_in_free_text_and_set_aside_in_typed_columns() -> None:
    name = read_one(text(row(JobName="caf@")).replace(b"caf@", b"caf\xe9")).job_name
    assert name == "caf\ufffd"
    assert codes(read(text(row(User="caf@")).replace(b"caf@", b"caf\xe9"))) == ["invalid_utf8"]
    assert read_one(text(row(User="façade", JobName="schón Straße"))).user == "façade"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty_file"),
        (b"\n", "empty_file"),
        (bytes(range(256)) * 4, "not_text"),
        (b"\x7fELF\0\0\0\n", "not_text"),
        (b"x" * (MAX_LINE_BYTES + 9), "not_text"),
        (b"JobID|State\n1|COMPLETED\n", "missing_columns"),
        (text(row() + "|101", columns=(*COLUMNS, "JobID")), "duplicate_columns"),
    ],
)
def test_a_file_of_another_kind_is_refused_as_a_whole(data: bytes, code: str) -> None:
    with pytest.raises(FormatError) as caught:
        read(data)
    assert caught.value.code == code


def test_missing_columns_are_listed_with_the_command_that_gives_them() -> None:
    with pytest.raises(FormatError) as caught:
        read(b"JobID|State|Start\n")
    assert caught.value.missing == ("User", "Submit", "End")
    assert COMMAND in str(caught.value)


def test_the_command_we_suggest_gives_columns_we_read() -> None:
    columns = COMMAND.partition("--format=")[2].split(",")
    SacctReader([("|".join(columns) + "\n").encode()], now_s=NOW_S)


def test_reading_resumes_at_the_offset_of_any_outcome() -> None:
    rows = [row(JobID=str(n), JobIDRaw=str(n), JobName="a\nb|c" if n % 3 else "plain") for n in range(1, 12)]
    data = text(*rows[:5], "garbage", "more", *rows[5:])
    whole = read(data)
    reader = SacctReader(io.BytesIO(data), now_s=NOW_S)
    for number, _ in enumerate(reader, start=1):
        rest = io.BytesIO(data[reader.offset :])
        resumed = SacctReader(
            rest, now_s=NOW_S, header=reader.header, start_line=reader.next_line, offset=reader.offset
        )
        again = list(resumed)
        assert len(again) >= len(whole) - number
        assert again == whole[len(whole) - len(again) :]
        assert (resumed.offset, resumed.next_line) == (len(data), data.count(b"\n") + 1)


def test_chunks_of_any_size_give_the_same_outcomes() -> None:
    data = b"".join(many_rows(50))
    for size in (1, 7, 4096):
        assert read(data[i : i + size] for i in range(0, len(data), size)) == read(data)


def test_equal_records_have_equal_digests_and_any_change_shows() -> None:
    job = read_one(text(row()))
    assert content_digest(job) == content_digest(read_one(text(row())))
    assert (
        len(
            {
                content_digest(job),
                content_digest(job._replace(state="FAILED")),
                content_digest(job._replace(extra={"a": "b"})),
            }
        )
        == 3
    )
    assert -(2**63) <= content_digest(job) < 2**63


@pytest.mark.parametrize(
    ("comment", "campaign"),
    [
        ('{"agent": "a1", "campaign": "fold-7"}', "fold-7"),
        ("campaign=fold-7", "fold-7"),
        ("agent:trial, campaign:x.1", "x.1"),
        ('{"campaign": ["x"]}', ""),
        ('{"campaign": "two words"}', ""),
        ('{"campaign"', ""),
        ("mycampaign=x", ""),
        ("", ""),
    ],
)
def test_the_campaign_is_read_from_the_comment(comment: str, campaign: str) -> None:
    assert campaign_of(comment) == campaign


@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["sacct_P.txt", "sacct_short.txt"])
@pytest.mark.parametrize(("version", "steps"), [("22.05.8", 15), ("24.11.5", 16), ("25.11.7", 16)])
def test_real_dumps_of_three_releases_are_read_whole(version: str, steps: int, name: str) -> None:
    with shared_file("slurm", f"slurm-{version}", name).open("rb") as stream:
        outcomes = list(SacctReader(stream, now_s=2**31))
    assert Counter(codes(outcomes)) == {"JobRecord": 26, "StepSeen": steps}
    jobs = {job.job_id: job for job in outcomes if isinstance(job, JobRecord)}
    assert (jobs["5"].gpus, jobs["5"].gpu_types, jobs["5"].state, jobs["5"].end_s) == (
        4,
        ("a100",),
        "RUNNING",
        None,
    )
    assert (jobs["27"].state, jobs["27"].cancelled_by_uid, jobs["27"].started) == ("CANCELLED", 0, False)
    assert (jobs["7_3"].raw_job_id, jobs["7_3"].array_job_id, jobs["7_3"].exit_code) == (7, 7, 2)
    assert (jobs["3"].exit_code, jobs["3"].exit_signal) == (0, 11)


@pytest.mark.shared_data
@pytest.mark.parametrize("version", ["24.11.5", "25.11.7"])
def test_a_real_dump_without_user_and_submit_is_refused_with_the_way_out(version: str) -> None:
    with (
        shared_file("slurm", f"slurm-{version}", "sacct_D.txt").open("rb") as stream,
        pytest.raises(FormatError) as caught,
    ):
        SacctReader(stream, now_s=2**31)
    assert caught.value.missing == ("User", "Submit")
