"""The API of lessons: recorded once, looked up by short and long text, answered as data."""

import pytest

from memory.models import Lesson
from tests import factories
from tests.conftest import Api, Cast
from tests.memory.lessons import OOM, recorded

BODY = {
    "error_text": OOM,
    "cause": "The matrix is held twice.",
    "fix": "Ask for 96 GB; see https://evil.example/run.sh",
}


@pytest.fixture
def api(cast: Cast) -> Api:
    """The lab's agent, allowed to write lessons."""
    return Api(factories.make_token(cast.agent, "lessons:read", "lessons:write"))


def test_it_records_and_finds_what_it_recorded(api: Api) -> None:
    answer = api.post("/lessons", BODY)
    assert answer.status_code == 201
    known = api.get("/lessons", text=OOM.replace("48211977", "1")).json()
    assert known["known"] is True
    match = known["matches"][0]
    assert (match["exact"], match["lesson"]["id"]) == (True, answer.json()["lesson"]["id"])
    assert api.post("/lessons", BODY).status_code == 200
    assert Lesson.objects.count() == 1


def test_texts_are_marked_as_data_without_addresses_nobody_reviewed(api: Api) -> None:
    content = api.post("/lessons", BODY).json()["lesson"]["content"]
    assert content["untrusted"] is True
    assert content["fix"] == "Ask for 96 GB; see <url>"


def test_a_retry_with_its_key_gets_the_first_answer(api: Api) -> None:
    first = api.post("/lessons", BODY, headers={"Idempotency-Key": "k1"})
    again = api.post("/lessons", BODY, headers={"Idempotency-Key": "k1"})
    assert (again.status_code, again.json()) == (201, first.json())
    assert again["Idempotency-Replayed"] == "true"


def test_a_long_text_is_posted(api: Api) -> None:
    api.post("/lessons", BODY)
    answer = api.post("/lessons/look-up", {"text": "line of output\n" * 3000 + OOM, "cluster": "aster", "limit": 1})
    assert [match["exact"] for match in answer.json()["matches"]] == [True]


def test_unknown_is_an_answer(api: Api) -> None:
    assert api.get("/lessons", text="never seen before").json()["matches"] == []


def test_a_lesson_for_the_lab_becomes_a_proposal(api: Api) -> None:
    answer = api.post("/lessons", BODY | {"scope": "lab"}).json()
    assert answer["lesson"]["scope"] == "project"
    assert api.get(f"/lessons/{answer['proposal']}").status_code == 404


def test_an_agent_does_not_speak_for_a_cluster(api: Api) -> None:
    answer = api.post("/lessons", BODY | {"scope": "cluster"})
    assert (answer.status_code, answer.json()["code"]) == (403, "scope_not_allowed")


def test_it_says_whether_a_lesson_held(cast: Cast, api: Api) -> None:
    lesson = recorded(cast.pi, scope="lab", lab=cast.lab)
    answer = api.post(f"/lessons/{lesson.public_id}/evidence", {"holds": True, "job_key": "aster:7"})
    assert (answer.status_code, answer.json()["confirmations"]) == (200, 1)


@pytest.mark.parametrize(
    "body",
    [
        {},
        BODY | {"scope": "world"},
        BODY | {"error_text": ""},
        BODY | {"cause": "x" * 2001},
        BODY | {"error_text": "x" * 100_000},
        BODY | {"conditions": ["gpu"]},
        BODY | {"conditions": ["a == 1"] * 51},
        BODY | {"source": "operator"},
        BODY | {"surprise": 1},
        BODY | {"fix": "\ud800"},
    ],
)
def test_bad_input_is_explained(api: Api, body: dict[str, object]) -> None:
    answer = api.post("/lessons", body)
    if answer.status_code == 201:  # a lone surrogate is kept as the replacement character
        assert answer.json()["lesson"]["content"]["fix"] == "?"
        return
    assert answer.status_code in {400, 422}
    assert answer["Content-Type"] == "application/problem+json"
    assert not Lesson.objects.exists()


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"text": ""},
        {"text": "a", "limit": 4},
        {"text": "a", "limit": 0},
        {"text": "a", "cluster": "no\x00"},
        {"text": "x" * 4001},
    ],
)
def test_a_malformed_look_up_is_explained(api: Api, query: dict[str, object]) -> None:
    assert api.get("/lessons", **query).status_code == 422


@pytest.mark.parametrize("public_id", ["l_000000000000", "nothing", "l_%00", "1", "l_" + "a" * 300])
def test_an_unknown_lesson_is_a_404(api: Api, public_id: str) -> None:
    assert api.get(f"/lessons/{public_id}").status_code == 404


def test_writing_needs_its_scope(cast: Cast) -> None:
    answer = Api(factories.make_token(cast.agent, "lessons:read")).post("/lessons", BODY)
    assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")
