"""Where no room is left, what would be written is answered with 507, a code and a remedy; reading goes on."""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.management import CommandError
from django.db import connection
from django.test import Client
from pytest_django import Settings

from memory.models import Lesson
from portal.core import disk
from portal.core.idempotency import IdempotencyKey
from portal.management.commands import run
from tests import factories
from tests.conftest import Api, Cast, sign_in

pytestmark = pytest.mark.django_db
# More than the last page of any table has room for.
LESSON = {"error_text": "error: no such pin\n" * 400, "cause": "old", "fix": "new\n" * 950}


@pytest.fixture
def writer(cast: Cast) -> Api:
    """The lab's agent, allowed to write lessons."""
    return Api(factories.make_token(cast.agent, "me:read", "lessons:write"))


@contextmanager
def no_room() -> Iterator[None]:
    """Let the database refuse to grow, as its own code does where its disk is full."""
    if connection.vendor == "postgresql":
        with connection.execute_wrapper(_refuse_to_insert):
            yield
        return
    with connection.cursor() as cursor:
        free, size = (_ask(cursor, name) for name in ("freelist_count", "page_size"))
        cursor.execute("CREATE TABLE filler (bytes BLOB)")
        cursor.execute("INSERT INTO filler VALUES (zeroblob(%s))", [free * size])
        cursor.execute("PRAGMA max_page_count = 1")  # that many as there are, then
        try:
            yield
        finally:
            cursor.execute("PRAGMA max_page_count = 1073741823")


def _ask(cursor: Any, name: str) -> int:
    return int(cursor.execute(f"PRAGMA {name}").fetchone()[0])


def _refuse_to_insert(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
    if sql.startswith("INSERT"):
        full = "DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$"
        return execute(full, None, False, context)
    return execute(sql, params, many, context)


def test_the_api_says_that_no_room_is_left_and_keeps_nothing(writer: Api) -> None:
    with no_room():
        refused = writer.post("/lessons", LESSON, headers={"idempotency-key": "a"})
    problem = refused.json()
    assert (refused.status_code, problem["code"], problem["title"]) == (507, "disk_full", "No room left")
    assert "room" in problem["remedy"]
    assert not Lesson.objects.exists()
    assert not IdempotencyKey.objects.exists()
    assert writer.post("/lessons", LESSON, headers={"idempotency-key": "a"}).status_code == 201


def test_a_page_says_so_too(cast: Cast) -> None:
    browser = sign_in(cast.colleague)
    browser.raise_request_exception = False
    form = LESSON | {"check_words": "", "conditions": "", "job_key": "", "source": "user", "place": "lab:okafor"}
    with no_room():
        refused = browser.post("/lessons/record/", form)
    assert refused.status_code == 507
    assert "No room left" in refused.text and "operators" in refused.text
    assert not Lesson.objects.exists()


def test_reading_goes_on(writer: Api, cast: Cast) -> None:
    browser = sign_in(cast.colleague)
    with no_room():
        assert writer.get("/me").status_code == 200
        assert browser.get("/lessons/").status_code == 200


def test_an_error_of_another_kind_is_still_a_fault(writer: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("memory.services.record_lesson", fail)
    assert writer.post("/lessons", LESSON).status_code == 500


@pytest.mark.parametrize(("number", "full"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EACCES, False)])
def test_a_file_that_could_not_be_written_counts_by_its_reason(number: int, full: bool) -> None:
    try:
        try:
            raise OSError(number, "of the system")
        except OSError as error:
            raise ValueError("of ours") from error
    except ValueError as error:
        assert disk.is_full(error) is full
    assert not disk.is_full(None)


def test_a_portal_whose_reserve_is_gone_is_not_ready_and_says_why(settings: Settings) -> None:
    settings.DISK_RESERVE_BYTES = 2**70
    response = Client().get("/readyz")
    assert response.status_code == 503
    assert "make room" in response.json()["checks"]["disk"]


def test_the_services_profile_knows_no_disk_of_its_own(settings: Settings) -> None:
    settings.EMBEDDED, settings.DISK_RESERVE_BYTES = False, 2**70
    response = Client().get("/readyz")
    assert response.status_code == 200
    assert "disk" not in response.json()["checks"]


def test_a_start_without_room_says_so_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(run, "collect_static", fail)
    with pytest.raises(CommandError, match=r"^No room is left where .* lies"):
        run.Command()._prepare()
