"""Idempotency keys: the first answer is given again, and the write is done once."""

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import IntegrityError, connections
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.template.response import ContentNotRenderedError, SimpleTemplateResponse
from django.test import RequestFactory

from portal.core import clock, idempotency
from portal.core.errors import Conflict, Invalid
from portal.core.models import IdempotencyKey

pytestmark = pytest.mark.django_db


def request(key: str = "k1", body: str = '{"n": 1}', path: str = "/api/v1/trials") -> HttpRequest:
    headers = {"idempotency-key": key} if key else {}
    return RequestFactory().post(path, body, content_type="application/json", headers=headers)


class Act:
    """A write that counts how often it was done."""

    def __init__(self, make: Callable[[], HttpResponse] = lambda: JsonResponse({"id": 7}, status=201)) -> None:
        self.done, self.make = 0, make

    def __call__(self) -> HttpResponse:
        self.done += 1
        return self.make()


def test_without_a_key_every_call_acts() -> None:
    act = Act()
    for _ in range(2):
        idempotency.run_once(request(""), "t1", act)
    assert act.done == 2
    assert not IdempotencyKey.objects.exists()


def test_a_retry_gets_the_first_answer_and_changes_nothing() -> None:
    act = Act()
    first = idempotency.run_once(request(), "t1", act)
    again = idempotency.run_once(request(), "t1", act)
    assert act.done == 1
    assert (again.status_code, again.content, again["Content-Type"]) == (201, first.content, "application/json")
    assert again["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first


def test_what_was_sent_as_a_key_is_not_stored() -> None:
    idempotency.run_once(request("hunter2-hunter2"), "t1", Act())
    (row,) = IdempotencyKey.objects.values_list("owner", "key", "path", "content_type")
    assert "hunter2" not in str(row)
    assert len(row[1]) == 64


def test_keys_of_two_callers_never_meet() -> None:
    act = Act()
    idempotency.run_once(request(), "t1", act)
    idempotency.run_once(request(), "t2", act)
    assert act.done == 2


def test_a_retry_while_the_first_runs_is_refused_with_the_time_to_wait() -> None:
    def while_running() -> HttpResponse:
        with pytest.raises(Conflict) as caught:
            idempotency.run_once(request(), "t1", Act())
        assert (caught.value.code, caught.value.retry_after_s) == ("in_progress", 1)
        return HttpResponse("done")

    assert idempotency.run_once(request(), "t1", while_running).content == b"done"


@pytest.mark.parametrize("other", [{"body": '{"n": 2}'}, {"path": "/api/v1/lessons"}])
def test_a_key_used_for_another_request_is_refused(other: dict[str, str]) -> None:
    act = Act()
    idempotency.run_once(request(), "t1", act)
    with pytest.raises(Invalid) as caught:
        idempotency.run_once(request(**other), "t1", act)
    assert caught.value.code == "idempotency_key_reused"
    assert act.done == 1


def test_a_failure_is_forgotten_so_that_the_retry_is_tried() -> None:
    def fail() -> HttpResponse:
        raise Conflict("not now")

    with pytest.raises(Conflict, match="not now"):
        idempotency.run_once(request(), "t1", fail)
    assert idempotency.run_once(request(), "t1", Act()).status_code == 201


@pytest.mark.parametrize("status", sorted(idempotency.FORGOTTEN))
def test_an_answer_that_says_later_is_forgotten(status: int) -> None:
    idempotency.run_once(request(), "t1", Act(lambda: HttpResponse(status=status)))
    assert not IdempotencyKey.objects.exists()


def test_a_refusal_that_stays_is_kept() -> None:
    act = Act(lambda: JsonResponse({"code": "invalid"}, status=422))
    for _ in range(2):
        assert idempotency.run_once(request(), "t1", act).status_code == 422
    assert act.done == 1


def test_a_stream_is_not_kept() -> None:
    act = Act(lambda: StreamingHttpResponse([b"x"]))  # type: ignore[arg-type,return-value]
    idempotency.run_once(request(), "t1", act)
    assert not IdempotencyKey.objects.exists()


def test_an_answer_that_fails_while_it_is_written_is_forgotten() -> None:
    act = Act(lambda: SimpleTemplateResponse("no such template", status=201))
    with pytest.raises(ContentNotRenderedError):
        idempotency.run_once(request(), "t1", act)
    assert not IdempotencyKey.objects.exists()
    assert idempotency.run_once(request(), "t1", Act()).status_code == 201


def test_a_refusal_that_is_raised_is_forgotten_too() -> None:
    def refuse() -> HttpResponse:
        raise Invalid("wrong")

    for _ in range(2):
        with pytest.raises(Invalid, match="wrong"):
            idempotency.run_once(request(), "t1", refuse)
    assert not IdempotencyKey.objects.exists()


def test_a_first_call_that_ends_between_two_looks_is_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row is there when the retry claims it, and gone when it looks who has it."""

    def create(**values: object) -> IdempotencyKey:
        raise IntegrityError("key exists")

    monkeypatch.setattr(IdempotencyKey.objects, "create", create)
    act = Act()
    with pytest.raises(Conflict) as caught:
        idempotency.run_once(request(), "t1", act)
    assert (caught.value.code, caught.value.retry_after_s) == ("in_progress", 1)
    assert act.done == 0
    monkeypatch.undo()
    assert idempotency.run_once(request(), "t1", act).status_code == 201


def test_a_first_call_that_comes_back_after_it_was_given_up_changes_no_kept_answer() -> None:
    def slow() -> HttpResponse:
        IdempotencyKey.objects.update(created=clock.now() - idempotency.ABANDONED - timedelta(seconds=1))
        idempotency.run_once(request(), "t1", Act(lambda: HttpResponse("retry")))
        return HttpResponse("first")

    assert idempotency.run_once(request(), "t1", slow).content == b"first"
    act = Act()
    assert idempotency.run_once(request(), "t1", act).content == b"retry"
    assert act.done == 0


def test_the_query_and_the_whole_of_a_long_path_belong_to_a_request() -> None:
    long = "/api/v1/ingest/jobs?cluster=" + "a" * 400
    for first, other in (("/api/v1/trials?lab=a", "/api/v1/trials?lab=b"), (long + "x", long + "y")):
        act = Act()
        assert idempotency.run_once(request(path=first), "t1", act).status_code == 201
        assert idempotency.run_once(request(path=first), "t1", act)["Idempotency-Replayed"] == "true"
        with pytest.raises(Invalid) as caught:
            idempotency.run_once(request(path=other), "t1", act)
        assert (caught.value.code, act.done) == ("idempotency_key_reused", 1)
        IdempotencyKey.objects.all().delete()


def test_another_method_is_another_request() -> None:
    idempotency.run_once(request(), "t1", Act())
    put = RequestFactory().put(
        "/api/v1/trials", '{"n": 1}', content_type="application/json", headers={"idempotency-key": "k1"}
    )
    with pytest.raises(Invalid, match="another request"):
        idempotency.run_once(put, "t1", Act())


def test_an_abandoned_first_call_lets_the_retry_run() -> None:
    def die() -> HttpResponse:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        idempotency.run_once(request(), "t1", die)
    IdempotencyKey.objects.create(
        owner="t1", key="k2", method="POST", path="/api/v1/trials", body_digest="x",
        created=clock.now() - idempotency.ABANDONED - timedelta(seconds=1),
    )  # fmt: skip
    act = Act()
    idempotency.run_once(request("k2"), "t1", act)
    assert act.done == 1


def test_a_key_is_forgotten_after_a_day() -> None:
    act = Act()
    idempotency.run_once(request(), "t1", act)
    IdempotencyKey.objects.update(created=clock.now() - idempotency.KEPT - timedelta(seconds=1))
    idempotency.run_once(request(), "t1", act)
    assert act.done == 2
    IdempotencyKey.objects.update(created=clock.now() - idempotency.KEPT - timedelta(seconds=1))
    assert idempotency.prune() == 1


def test_a_key_that_is_too_long_or_holds_a_null_is_refused() -> None:
    for key in ("k" * 201, "a\x00b"):
        with pytest.raises(Invalid):
            idempotency.run_once(request(key), "t1", Act())


@pytest.mark.django_db(transaction=True)
def test_of_many_at_the_same_time_one_acts() -> None:
    acted: list[int] = []
    outcomes: list[object] = []
    start = threading.Barrier(5)

    def act() -> HttpResponse:
        acted.append(1)
        return HttpResponse("done")

    def run() -> None:
        start.wait(10)
        try:
            outcomes.append(idempotency.run_once(request(), "t1", act).content)
        except Conflict as error:
            outcomes.append(error.code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(acted) == 1
    assert len(outcomes) == 5
    assert set(outcomes) <= {b"done", "in_progress"}
