"""The controller's counters become what each user asked between two looks, whenever they start anew."""

import json

import pytest

from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.statistics import (
    Asked,
    Statistics,
    asked_between,
    read_statistics,
    read_statistics_dump,
    read_statistics_json,
)
from tests.support.capabilities import SHARED_DATA

VERSIONS = [("slurm-22.05.8", 4), ("slurm-24.11.5", 5), ("slurm-25.11.7", 4)]


@pytest.mark.shared_data
@pytest.mark.parametrize(("version", "calls"), VERSIONS)
def test_each_version_is_read(version: str, calls: int) -> None:
    found = read_statistics((SHARED_DATA / "slurm" / version / "sdiag.txt").read_text())
    assert found.since_s > 1_790_000_000
    assert found.by_user["games"].calls == calls
    assert found.by_user["root"].calls > 50
    assert set(found.by_user) == {"root", "games"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sdiag: error: Unable to contact slurm controller\n",
        "Data since x (5)\n",
        "Data since x (5)\nRemote Procedure Call statistics by user\n\troot 7\n",
    ],
)
def test_what_is_no_sdiag_is_refused(text: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_statistics(text)
    assert caught.value.code == "not_sdiag"


def test_no_user_asked_anything_yet() -> None:
    text = "Data since Sun (5)\n\nRemote Procedure Call statistics by user\n\nPending RPC statistics\n\tNo pending\n"
    assert read_statistics(text) == Statistics(5, {})


def test_users_without_a_name_are_summed() -> None:
    lines = "".join(
        f"\tnobody          ( {uid}) count:{n} ave_time:9   total_time:90\n" for uid, n in ((7, 50), (8, 40))
    )
    text = f"Data since Sun (5)\n\nRemote Procedure Call statistics by user\n{lines}\nPending RPC statistics\n"
    assert read_statistics(text).by_user == {"nobody": Asked(90, 180)}


@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [
        (None, Statistics(5, {"ada": Asked(7, 70)}), {}),
        (Statistics(5, {"ada": Asked(7, 70)}), Statistics(5, {"ada": Asked(9, 95)}), {"ada": Asked(2, 25)}),
        (Statistics(5, {}), Statistics(5, {"bob": Asked(1, 9)}), {"bob": Asked(1, 9)}),
        (Statistics(5, {"ada": Asked(7, 70)}), Statistics(8, {"ada": Asked(9, 95)}), {"ada": Asked(9, 95)}),
        (Statistics(5, {"ada": Asked(7, 70)}), Statistics(5, {"ada": Asked(3, 30)}), {"ada": Asked(3, 30)}),
        (Statistics(5, {"ada": Asked(7, 70)}), Statistics(5, {"ada": Asked(7, 70)}), {}),
        (Statistics(5, {"ada": Asked(7, 70)}), Statistics(5, {}), {}),
    ],
)
def test_what_was_asked_between_two_looks(
    before: Statistics | None, after: Statistics, asked: dict[str, Asked]
) -> None:
    assert asked_between(before, after) == asked


def as_json(since: object, *users: object) -> str:
    meta = {"plugin": {"data_parser": "data_parser/v0.0.44"}}
    return json.dumps({"statistics": {"req_time_start": since, "rpcs_by_user": users}, "meta": meta})


SINCE = {"set": True, "infinite": False, "number": 5}
USER = {"user": "ada", "count": 2, "total_time": 9}


def test_users_of_one_name_are_summed_in_json_too() -> None:
    assert read_statistics_json(as_json(SINCE, USER, USER)) == Statistics(5, {"ada": Asked(4, 18)})


@pytest.mark.parametrize(
    "text",
    [
        as_json(5, USER), as_json({**SINCE, "number": 0}, USER), as_json(SINCE, {"user": "ada"}), as_json(SINCE, 7),
        as_json(SINCE, {**USER, "count": -1}), as_json(SINCE, {**USER, "user": "a b"}),
        as_json(SINCE).replace("[]", "{}"),
    ],
)  # fmt: skip
def test_json_that_tells_of_no_counters_is_refused(text: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_statistics_json(text)
    assert caught.value.code == "not_sdiag"


def test_an_answer_without_statistics_is_refused() -> None:
    with pytest.raises(FormatError) as caught:
        read_statistics_json(as_json(SINCE).replace('"statistics"', '"jobs"'))
    assert caught.value.code == "no_record"
    with pytest.raises(FormatError):
        read_statistics_dump({"data_since": 5, "rpcs_by_user": 7})
