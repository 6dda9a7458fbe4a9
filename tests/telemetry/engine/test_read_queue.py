"""Two looks at a queue say whom to ask accounting about, and when its answer is good enough."""

import json

import pytest

from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.queue import (
    Standing,
    find_changed,
    find_unsettled,
    read_queue,
    read_queue_dump,
    read_queue_json,
)

RUNNING, PENDING = Standing("RUNNING", 0), Standing("PENDING", 0)


def test_a_queue_is_read_by_raw_job_id() -> None:
    text = "28|PENDING|0|\n10|RUNNING|2|\n\n"
    assert read_queue(text) == {28: PENDING, 10: Standing("RUNNING", 2)}
    assert read_queue("") == {}


@pytest.mark.parametrize(
    "text",
    ["slurm_load_jobs error: Unable to contact", "x|RUNNING|0|", "0|RUNNING|0|", "1|NO_STATE|0|", "1|RUNNING|-|"],
)
def test_what_is_no_queue_spoils_the_whole_look(text: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_queue(f"28|PENDING|0|\n{text}\n")
    assert caught.value.code == "not_a_queue"


def as_json(*jobs: dict[str, object], version: str = "v0.0.44", **members: object) -> str:
    meta = {"plugin": {"data_parser": f"data_parser/{version}"}, "slurm": {"release": "25.11.7"}}
    return json.dumps({"jobs": jobs, "meta": meta, "errors": [], "warnings": []} | members)


def job(number: object, *states: str, restarts: object = 0) -> dict[str, object]:
    return {"job_id": number, "job_state": list(states), "restart_cnt": restarts}


def test_of_a_state_and_its_flags_json_is_read_as_squeue_writes_it() -> None:
    text = as_json(job(7, "RUNNING", "COMPLETING"), job(8, "PENDING", "REQUEUED", restarts=2), job(9, "COMPLETED"))
    assert read_queue_json(text) == {7: Standing("COMPLETING", 0), 8: Standing("REQUEUED", 2)}
    assert read_queue_json(as_json()) == {}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (as_json(warnings=[{"description": "odd"}]), "slurm_error"),
        (as_json(job(7, "RUNNING"), errors=[{"error": "Unable to contact"}]), "slurm_error"),
        (as_json(job(7, "RUNNING"), version="none"), "no_meta"),
        (as_json(job(7, "RUNNING"), version="v0.0.38").replace('["RUNNING"]', "7"), "odd_record"),
        (as_json(job("7", "RUNNING")), "odd_record"),
        (as_json(job(7)), "odd_record"),
        (as_json(job(7, "RUNNING") | {"job_state": "RUNNING"}), "odd_record"),
        (as_json(job(7, "RUNNING", restarts={"set": True})), "odd_record"),
    ],
)
def test_json_that_is_no_queue_of_its_version_is_refused_and_never_guessed(text: str, code: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_queue_json(text)
    assert caught.value.code == code


@pytest.mark.parametrize("record", [{"id": 7}, {"id": None, "state": "RUNNING", "requeue_count": 0}, 7])
def test_a_dump_that_is_no_queue_is_refused(record: object) -> None:
    with pytest.raises(FormatError) as caught:
        read_queue_dump([record])
    assert caught.value.code == "odd_record"


def test_who_came_changed_was_requeued_or_left_is_asked_about() -> None:
    before = {1: RUNNING, 2: PENDING, 3: RUNNING, 4: RUNNING}
    after = {1: RUNNING, 2: RUNNING, 3: Standing("RUNNING", 1), 5: PENDING}
    assert find_changed(before, after) == {2, 3, 4, 5}


@pytest.mark.parametrize(
    ("standing", "states", "settled"),
    [
        (RUNNING, ["RUNNING"], True),
        (RUNNING, ["PENDING"], False),
        (RUNNING, ["REQUEUED", "RUNNING"], True),
        (PENDING, ["REQUEUED"], False),
        (Standing("COMPLETING", 0), ["RUNNING"], True),
        (Standing("COMPLETING", 0), ["COMPLETED"], True),
        (Standing("CONFIGURING", 0), ["PENDING"], True),
        (PENDING, [], False),
        (None, ["COMPLETED"], True),
        (None, ["RUNNING"], False),
        (None, ["REQUEUED"], False),
        (None, ["REQUEUED", "CANCELLED"], True),
        (None, [], False),
    ],
)
def test_accounting_is_asked_again_until_it_knows_what_the_queue_says(
    standing: Standing | None, states: list[str], settled: bool
) -> None:
    queue = {} if standing is None else {7: standing}
    assert find_unsettled({7}, queue, {7: states} if states else {}) == (set() if settled else {7})
