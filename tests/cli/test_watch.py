"""What `gatehouse wait` makes of what it is told: each change once, whatever comes first, twice or late."""

from typing import Any

import pytest

from portal.cli.accounting import read_records
from portal.cli.event_stream import read_messages
from portal.cli.wait import Waiting
from portal.cli.watch import Change, Watch
from telemetry.engine.waiting import read_asked

AT = "2026-07-01T10:00:00Z"
AT_S = 1_782_900_000


def watch(*ids: str, **options: Any) -> Watch:
    return Watch({each: read_asked(each) for each in ids}, **options)


def standing(seq: int, asked: str, state: str, *, over: bool = False, status: int | None = None, **more: Any) -> Any:
    counts = more.pop("counts", {state: 1})
    job = {
        "job_id": asked, "submit": AT, "outcome": state.lower(), "reason": "", "elapsed_s": 41,
    } | more  # fmt: skip
    item = {
        "asked": asked, "known": True, "cluster": "aster", "state": state, "over": over, "exit_status": status,
        "counts": counts, "job": job,
    }  # fmt: skip
    return {"seq": seq, "items": [item]}


def event(seq: int, name: str, job_id: str, state: str, **more: Any) -> dict[str, Any]:
    payload = {
        "job_id": job_id, "cluster": "aster", "submit": AT, "state": state, "text": name, "exit_code": 0,
        "exit_signal": 0,
    } | more  # fmt: skip
    return {"seq": seq, "name": name, "payload": payload}


def texts(changes: list[Any]) -> list[str]:
    return [change.text for change in changes]


def test_each_change_is_told_once() -> None:
    seen = watch("7")
    assert texts(seen.take_standing(standing(4, "7", "PENDING"))) == ["pending"]
    assert seen.take_standing(standing(4, "7", "PENDING")) == []
    assert seen.take_event(event(4, "job.submitted", "7", "PENDING"), now=0) == []  # it is in the standing
    assert seen.take_event(event(5, "job.submitted", "7", "PENDING"), now=0) == []  # numbered late
    assert texts(seen.take_event(event(6, "job.started", "7", "RUNNING"), now=0)) == ["job.started"]
    assert seen.take_event(event(6, "job.started", "7", "RUNNING"), now=0) == []
    assert seen.status is None
    assert texts(seen.take_event(event(7, "job.ended", "7", "FAILED", exit_code=3), now=0)) == ["job.ended"]
    assert seen.status == 3
    assert seen.take_standing(standing(9, "7", "RUNNING")) == []  # over is over


def test_a_line_says_what_is_needed_next() -> None:
    seen = watch("7")
    seen.take_standing(standing(1, "7", "PENDING"))
    started = event(2, "job.started", "7", "RUNNING", text="started on 2 nodes", node_list="n[1-2]")
    assert texts(seen.take_event(started, now=0)) == ["started on 2 nodes (n[1-2])"]
    more = {"text": "reached its time limit after 1 h", "stdout": "/w/7.out", "stderr": "", "hint": "It had 1 h."}
    ended = event(3, "job.ended", "7", "TIMEOUT", **more, node_list="n[1-2]")
    assert texts(seen.take_event(ended, now=0)) == ["reached its time limit after 1 h; stdout /w/7.out; It had 1 h."]


def test_what_was_read_before_an_event_came_puts_nothing_back() -> None:
    seen = watch("7")
    seen.take_standing(standing(4, "7", "PENDING"))
    seen.take_event(event(6, "job.started", "7", "RUNNING"), now=0)
    assert seen.take_standing(standing(5, "7", "PENDING")) == []
    assert seen.waited[0].state == "RUNNING"


def test_a_requeue_is_no_end() -> None:
    seen = watch("7")
    seen.take_standing(standing(1, "7", "RUNNING"))
    assert texts(seen.take_event(event(2, "job.requeued", "7", "REQUEUED"), now=0)) == ["job.requeued"]
    later = "2026-07-01T10:05:00Z"
    assert texts(seen.take_event(event(3, "job.submitted", "7", "PENDING", submit=later), now=0)) == ["job.submitted"]
    assert seen.take_event(event(4, "job.ended", "7", "CANCELLED"), now=0) == []  # of the stretch before
    assert seen.status is None
    seen.take_event(event(5, "job.ended", "7", "COMPLETED", submit=later), now=0)
    assert seen.status == 0


def test_a_lost_node_is_no_end_before_slurm_had_time_to_put_the_job_back() -> None:
    seen = watch("7")
    seen.take_standing(standing(1, "7", "RUNNING"))
    assert texts(seen.take_event(event(2, "job.ended", "7", "NODE_FAIL"), now=100)) == ["job.ended"]
    assert (seen.status, seen.ask_at) == (None, 131)
    seen.take_standing(standing(3, "7", "NODE_FAIL", over=True, status=204))
    assert seen.status == 204


@pytest.mark.parametrize(("asked", "told"), [("7", "7_3"), ("7_[1-5]", "7_3"), ("7_3", "7_3"), ("9", "9+1")])
def test_of_what_has_several_records_or_none_yet_the_portal_is_asked(asked: str, told: str) -> None:
    seen = watch(asked)
    assert seen.take_event(event(1, "job.started", told, "RUNNING"), now=5) == []
    assert seen.ask_at == 5


@pytest.mark.parametrize("asked", ["7", "7_3", "7_[1-5]"])
def test_of_an_array_that_changed_the_portal_is_asked(asked: str) -> None:
    seen = watch(asked)
    assert seen.take_event({"seq": 1, "name": "job.array", "payload": {"job_id": "7", "cluster": "aster"}}, now=5) == []
    assert seen.ask_at == 5


def test_a_whole_array_goes_by_its_counts_and_its_end_is_the_portal_s_word() -> None:
    seen = watch("7")
    seen.take_standing(standing(1, "7", "PENDING", counts={"PENDING": 30}, job_id="7_[1-30]"))
    facts = {"job_id": "7", "cluster": "aster", "state": "RUNNING", "over": False, "counts": {"RUNNING": 30}}
    assert texts(seen.take_event({"seq": 2, "name": "job.array", "payload": facts}, now=5)) == ["30 running"]
    assert seen.ask_at is None
    over = facts | {"state": "COMPLETED", "over": True, "counts": {"COMPLETED": 30}}
    assert seen.take_event({"seq": 3, "name": "job.array", "payload": over}, now=6) == []
    assert (seen.status, seen.ask_at) == (None, 6)


def test_one_task_that_is_known_is_not_the_array() -> None:
    seen = watch("7")
    seen.take_standing(standing(1, "7", "RUNNING", job_id="7_1"))
    assert seen.take_event(event(2, "job.ended", "7_1", "COMPLETED"), now=5) == []
    assert (seen.status, seen.ask_at) == (None, 5)


def test_events_of_others_are_nothing() -> None:
    seen = watch("7", cluster="aster")
    for told in (
        event(1, "job.ended", "8", "FAILED"),
        event(2, "job.ended", "77", "FAILED"),
        event(3, "job.ended", "7", "FAILED", cluster="boreas"),
        {"seq": 4, "name": "hold.placed", "payload": {}},
    ):
        assert seen.take_event(told, now=0) == []
    assert seen.ask_at is None and seen.unknown == seen.waited


def test_an_array_says_its_counts_and_ends_with_the_worst() -> None:
    seen = watch("7")
    first = standing(1, "7", "RUNNING", counts={"RUNNING": 2, "PENDING": 8})
    assert texts(seen.take_standing(first)) == ["2 running, 8 pending"]
    last = standing(2, "7", "FAILED", over=True, status=3, counts={"COMPLETED": 9, "FAILED": 1}, job_id="7_4")
    assert texts(seen.take_standing(last)) == ["9 completed, 1 failed; worst 7_4: failed"]
    assert seen.status == 3


def test_all_is_the_worst_and_any_is_the_first() -> None:
    ended = [event(3, "job.ended", "2", "COMPLETED"), event(4, "job.ended", "1", "FAILED", exit_code=2)]
    for any_is_enough, after_one, after_both in ((True, 0, None), (False, None, 2)):
        seen = watch("1", "2", any_is_enough=any_is_enough)
        for each in ("1", "2"):
            seen.take_standing(standing(1, each, "RUNNING"))
        seen.take_event(ended[0], now=0)
        assert seen.status == after_one
        if not any_is_enough:
            seen.take_event(ended[1], now=0)
            assert seen.status == after_both


SACCT = """\
7_1|COMPLETED|0:0|2026-07-01T10:00:00|2026-07-01T10:01:00
7_2|CANCELLED by 1000|0:15|2026-07-01T10:00:00|2026-07-01T10:01:00
7_[3-5]|PENDING|0:0|2026-07-01T10:00:00|Unknown
what is this
"""


def test_accounting_is_read_the_same_way() -> None:
    seen = watch("7", "7_2", "7_4", "8")
    changes = seen.take_records(list(read_records(SACCT)), now_s=AT_S)
    assert {change.waited.text: change.text for change in changes} == {
        "7": "3 pending, 1 cancelled, 1 completed",
        "7_2": "cancelled, ended by SIGTERM (15)",
        "7_4": "3 pending",
    }
    assert [each.status for each in seen.waited] == [None, 201, None, None]
    assert seen.take_records(list(read_records(SACCT)), now_s=AT_S) == []
    assert [each.text for each in seen.unknown] == ["8"]


def test_a_stream_is_read_as_the_standard_says() -> None:
    lines = (
        b'retry: 2000\nevent: hello\nid: 4\ndata: {"type": "hello", "seq": 4}\n\n: \n\n'
        b'data: nonsense\n\ndata: {"type":\ndata:  "event"}\r\n\r\ndata: {"type": "cut"'
    ).splitlines(keepends=True)
    assert list(read_messages(lines)) == [{"type": "hello", "seq": 4}, {"type": "event"}]


def test_what_a_job_is_named_cannot_drive_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    seen = watch("7")
    waiting = Waiting(seen, cluster="", deadline=None, as_json=False)
    told_of = "failed; stdout /tmp/out\x1b[2J\u202e\n12:00:00 8: completed"
    waiting._print([Change(seen.waited[0], told_of, "events", {})])
    waiting._say("sacct: \x1b]0;gone\x07")
    told = capsys.readouterr()
    assert told.out.endswith(" 7: failed; stdout /tmp/out\\x1b[2J\\u202e\\n12:00:00 8: completed\n")
    assert told.err == "sacct: \\x1b]0;gone\\x07\n"


def test_who_knows_its_job_hears_of_no_other() -> None:
    seen = watch("7", "8")
    assert seen.topics == ""
    seen.take_standing(standing(4, "7", "RUNNING"))
    assert seen.topics == ""  # of the other one nobody knows where it is
    seen.take_standing(standing(5, "8", "RUNNING"))
    assert (seen.topics, seen.seq) == ("job:aster:7,job:aster:8", 5)
    seen.take_standing(standing(6, "7", "COMPLETED", over=True, status=0))
    assert seen.topics == "job:aster:8"
    array = watch("9")
    array.take_standing(standing(7, "9", "RUNNING", counts={"RUNNING": 3}))
    assert array.topics == ""


def test_what_is_over_takes_one_question_and_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = standing(4, "7", "FAILED", over=True, status=3)
    monkeypatch.setattr("portal.cli.client.get", lambda path, timeout_s: answer)
    monkeypatch.setattr("portal.cli.event_stream.EventStream.start", lambda stream: 1 / 0)
    assert Waiting(watch("7"), cluster="", deadline=None, as_json=True).run() == 3
    monkeypatch.setattr("portal.cli.client.get", lambda path, timeout_s: standing(4, "7", "RUNNING"))
    waiting = Waiting(watch("7"), cluster="", deadline=None, as_json=True)
    with pytest.raises(ZeroDivisionError):
        waiting.run()
    assert (waiting.stream.cursor, waiting.stream.topics) == (4, "job:aster:7")
