import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine.slurm import values
from telemetry.engine.slurm.errors import FieldError
from telemetry.engine.slurm.job_ids import JobId, count_array_tasks, parse_job_id
from telemetry.engine.slurm.values import MemorySize, State, Tres

GIB = 2**30
PARSERS = (
    values.parse_time,
    values.parse_duration,
    values.parse_memory,
    values.parse_count,
    values.parse_tres,
    values.parse_state,
    values.parse_exit_code,
    parse_job_id,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:00:00", 0),
        ("10-13:27:06", 10 * 86400 + 13 * 3600 + 27 * 60 + 6),
        ("0-00:00:05", 5),
        ("125-00:00:00", 125 * 86400),
        ("05:00", 300),
        ("00:00.002", 0),
        ("59:59.999", 3599),
        ("27:46:39", 99_999),
        ("UNLIMITED", None),
        ("Partition_Limit", None),
        ("", None),
    ],
)
def test_durations_are_read_in_every_form_slurm_prints(text: str, seconds: int | None) -> None:
    assert values.parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["5", "1-05:00", "1:2:3:4", "-1:00", "00:00:0x", "00:00:00\n", " 00:00:01"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(FieldError) as caught:
        values.parse_duration(text)
    assert caught.value.code == "bad_duration"


@pytest.mark.parametrize(
    ("text", "epoch_s"),
    [
        ("1970-01-01T00:00:01", 1),
        ("2016-12-22T07:15:12", 1482390912),
        ("1482390912", 1482390912),
        ("0", None),
        ("Unknown", None),
        ("None", None),
        ("", None),
    ],
)
def test_times_are_utc_epoch_seconds(text: str, epoch_s: int | None) -> None:
    assert values.parse_time(text) == epoch_s


@pytest.mark.parametrize(
    "text", ["2016-13-01T00:00:00", "2016-12-22 07:15:12", "yesterday", "١٢٣", "1\n", "2016-12-22"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(FieldError):
        values.parse_time(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("31000Mn", MemorySize(31000 * 2**20, "node", False)),
        ("3000Mc", MemorySize(3000 * 2**20, "cpu", False)),
        ("62.50G", MemorySize(int(62.5 * GIB), "job", False)),
        ("0n", MemorySize(0, "node", False)),
        ("", MemorySize(None, "job", False)),
        ("2147486648Mn", MemorySize(None, "node", True)),
        ("16?", MemorySize(None, "job", True)),  # sacct 22.05, of a record cancelled before it was eligible
    ],
)
def test_memory_is_bytes_and_an_overflow_is_no_size(text: str, size: MemorySize) -> None:
    assert values.parse_memory(text) == size


def test_tres_prefers_the_total_of_gpus_and_else_sums_the_types() -> None:
    with_total = values.parse_tres("billing=64,cpu=64,gres/gpu:a100=4,gres/gpu=4,mem=62.50G,node=8")
    assert with_total == Tres(64, 8, int(62.5 * GIB), 4, ("a100",))
    assert values.parse_tres("gres/gpu:a100=4,gres/gpu:h100=2").gpus == 6
    assert values.parse_tres("gres/gpu=2").gpus == 2
    assert values.parse_tres("energy=-2,fs/disk=11087,license/matlab=1").gpus == 0
    assert values.parse_tres("") == Tres(None, None, None, 0, ())


@pytest.mark.parametrize("text", ["cpu", "cpu=", "cpu=x", "=4", "cpu=1;node=1", "cpu=1,", "mem=1Q", "cpu=1\n"])
def test_what_is_no_tres_list_is_refused(text: str) -> None:
    with pytest.raises(FieldError) as caught:
        values.parse_tres(text)
    assert caught.value.code == "bad_tres"


@pytest.mark.parametrize("name", sorted(values.STATES))
def test_every_state_of_slurm_is_known(name: str) -> None:
    assert values.parse_state(name) == State(name, None)


def test_states_tell_who_cancelled_and_survive_narrow_columns() -> None:
    assert values.parse_state("CANCELLED by 380693") == State("CANCELLED", 380693)
    assert values.parse_state("CANCELLED by 0") == State("CANCELLED", 0)
    for cut in ("CANCELLED+", "CANCELLED b+", "CANCELLED by 38+", "CANCELL+"):
        assert values.parse_state(cut) == State("CANCELLED", None)
    assert values.parse_state("OUT_OF_ME+").name == "OUT_OF_MEMORY"


@pytest.mark.parametrize("text", ["FOO", "", "RE+", "completed", "CANCELLED by", "CANCELLED by x", "RUNNING\n", "+"])
def test_an_unknown_or_ambiguous_state_is_refused(text: str) -> None:
    with pytest.raises(FieldError) as caught:
        values.parse_state(text)
    assert caught.value.code == "unknown_state"


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("123", JobId(123, None, None, 1, None, None)),
        ("123_4", JobId(123, 4, None, 1, None, None)),
        ("123_[1-3,5%2]", JobId(123, None, "1-3,5%2", 4, None, None)),
        ("123+1", JobId(123, None, None, 1, 1, None)),
        ("123.batch", JobId(123, None, None, 1, None, "batch")),
        ("123.extern", JobId(123, None, None, 1, None, "extern")),
        ("123.0", JobId(123, None, None, 1, None, "0")),
        ("123_4.batch", JobId(123, 4, None, 1, None, "batch")),
        ("123+0.interactive", JobId(123, None, None, 1, 0, "interactive")),
    ],
)
def test_job_ids_of_every_kind_are_read(text: str, parsed: JobId) -> None:
    assert parse_job_id(text) == parsed


@pytest.mark.parametrize("text", ["", "x", "12_", "12_[]", "12_[a]", "12.", "12 ", "12\n", "12_[5-3]", "12_[1-9:0]"])
def test_what_is_no_job_id_is_refused(text: str) -> None:
    with pytest.raises(FieldError) as caught:
        parse_job_id(text)
    assert caught.value.code == "bad_job_id"


def test_array_ranges_are_counted_without_being_listed() -> None:
    assert count_array_tasks("0-3999999") == 4_000_000
    assert count_array_tasks("1-10:3,20%5") == 5
    assert count_array_tasks("1-3,...") == 3
    assert count_array_tasks("9-11,13,16-20") == 9
    with pytest.raises(FieldError):
        count_array_tasks("0-4294967293")


def test_exit_codes_are_code_and_signal() -> None:
    assert values.parse_exit_code("127:0") == (127, 0)
    assert values.parse_exit_code("0:11") == (0, 11)
    with pytest.raises(FieldError):
        values.parse_exit_code("1")


@given(st.text(max_size=40) | st.text("0123456789:-.|\nTKMG[]_+%,=cpugresnode/", max_size=40))
def test_a_parser_answers_or_refuses_and_never_takes_a_newline(text: str) -> None:
    for parse in PARSERS:
        try:
            parse(text)
        except FieldError:
            continue
        assert "\n" not in text


@given(st.integers(0, 400), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_a_duration_read_back_is_the_same(days: int, hours: int, minutes: int, seconds: int) -> None:
    text = f"{days}-{hours:02}:{minutes:02}:{seconds:02}"
    assert values.parse_duration(text) == days * 86400 + hours * 3600 + minutes * 60 + seconds
