"""What one squeue prints of all jobs, taken apart: nothing that people write can pose as a field or a line."""

import pytest

from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.printing import KEYS
from telemetry.engine.slurm.queue import QueueNote, Standing
from telemetry.engine.slurm.queue_texts import ASKED, command, notes_of, queue_of, read_texts, sheets_of

MARK = "0f0f0f0f"
BASE = {
    "jobid": "7", "state": "RUNNING", "restartcnt": "0", "username": "ann", "starttime": "2026-07-02T00:00:00",
    "submittime": "2026-07-01T00:00:00", "endtime": "N/A", "timeused": "1:00", "name": "relax",
    "arraytaskid": "N/A", "reason": "None",
}  # fmt: skip
START_S = 1_782_950_400


def line(**texts: str) -> str:
    told = BASE | texts
    return f"\x1f{MARK}".join(told.get(key, "") for key in ASKED) + f"\x1e{MARK}\n"


def read(text: str):
    return read_texts(text, MARK, asked_s=START_S + 60, told_s=START_S + 61)


def kept(text: str, key: str) -> str | None:
    (row,) = sheets_of(read(text), ["ann"])["ann"]
    return row[KEYS.index(key)]


def test_the_command_asks_for_all_that_is_kept_and_marks_each_field() -> None:
    asked = command(MARK)
    assert asked[:4] == ("squeue", "--all", "--states=all", "--noheader")
    assert asked[-1].split(",")[:2] == [f"account:\x1f{MARK}", f"jobid:\x1f{MARK}"]
    assert asked[-1].count(",") == len(ASKED) - 1 and asked[-1].endswith(f":\x1e{MARK}")


@pytest.mark.parametrize(
    ("texts", "note"),
    [
        ({"state": "PENDING", "reason": "Dependency"}, QueueNote("Dependency")),
        ({"state": "PENDING"}, QueueNote()),
        ({"reason": "Prolog"}, QueueNote()),  # it does not wait
        ({"stdout": "/l/%A_%a.out", "stderr": "(null)"}, QueueNote("", "/l/%A_%a.out")),
        ({"stdout": "/l/two\nlines", "stderr": "/l/\N{REPLACEMENT CHARACTER}"}, QueueNote()),
        ({"stdout": "/l/slurm-7.out", "stderr": "/l/slurm-7.out"}, QueueNote("", "/l/slurm-7.out", "/l/slurm-7.out")),
        ({"stdout": "/l/slurm-7.out", "stderr": "/l/e", "arraytaskid": "5"}, QueueNote("", "", "/l/e")),
    ],
    ids=["waits", "not considered", "runs", "patterns", "unreadable", "default", "default of a task"],
)
def test_what_else_is_told_of_a_job(texts: dict[str, str], note: QueueNote) -> None:
    assert notes_of(read(line(**texts))) == {7: note}
    assert len(sheets_of(read(line(**texts)), ["ann"])["ann"][0]) == len(KEYS)  # it is not printed again


def test_the_queue_is_what_has_not_ended() -> None:
    texts = read(line() + line(jobid="8", state="COMPLETED") + line(jobid="9", state="PENDING", restartcnt="2"))
    assert queue_of(texts) == {7: Standing("RUNNING", 0), 9: Standing("PENDING", 2)}
    assert queue_of(read("")) == {}


@pytest.mark.parametrize("name", ["a|b", "two\nlines", "\x1f\x1e\n", "\x1e00000000\n7", "(null)"])
def test_a_name_is_only_a_name(name: str) -> None:
    assert kept(line(name=name) + line(jobid="8", username="bob"), "name") == name


@pytest.mark.parametrize("text", ["nothing", line()[:-1], line() + "more", line().replace("\x1f", "|", 1), "\n"])
def test_one_odd_line_spoils_all(text: str) -> None:
    with pytest.raises(FormatError):
        read(text)


def test_a_job_without_a_number_spoils_all() -> None:
    with pytest.raises(FormatError):
        queue_of(read(line(jobid="x")))


def test_times_are_kept_as_seconds_and_words_as_they_are() -> None:
    assert (kept(line(), "starttime"), kept(line(), "endtime")) == (str(START_S), "N/A")
    assert kept(line(submittime="2026-07-32T00:00:00"), "submittime") is None


@pytest.mark.parametrize(
    ("state", "used", "expected"),
    [
        ("RUNNING", "1:00", ""),  # counted from the start
        ("RUNNING", "0:30", "?"),  # it was suspended for a while
        ("RUNNING", "INVALID", "?"),
        ("COMPLETED", "0:30", "0:30"),
        ("PENDING", "0:00", "0:00"),
        ("CONFIGURING", "1:00", "?"),
    ],
)
def test_how_long_a_job_ran(state: str, used: str, expected: str) -> None:
    assert kept(line(state=state, timeused=used), "timeused") == expected


def test_what_cannot_be_read_is_not_told() -> None:
    assert kept(line(name="a\N{REPLACEMENT CHARACTER}"), "name") is None
