"""A secret is kept nowhere, not even where a name belongs: in accounting text, sessions and lessons."""

import json

from django.db import connection

from tests import factories
from tests.conftest import Api, Cast
from tests.telemetry.logs import ingest, job_row, text

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
COLUMNS = ("User", "Account", "JobName", "SubmitLine", "Comment", "WorkDir", "Reason", "Partition", "QOS", "NodeList")


def places_of(secret: str) -> list[str]:
    """Return every table and column that holds a text."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - names of our own tables
            names = [column[0] for column in cursor.description]
            for row in cursor.fetchall():
                for name, value in zip(names, row, strict=True):
                    told = bytes(value).decode("utf-8", "replace") if isinstance(value, bytes | memoryview) else value
                    if secret in str(told):
                        found.append(f"{table}.{name}")
    return found


def test_no_column_of_a_job_keeps_a_secret(cast: Cast) -> None:
    for number, column in enumerate(COLUMNS, start=1):
        ingest(cast.cluster, text(job_row(number, **{"User": "colleague"} | {column: SECRET})))
    assert places_of(SECRET) == []


def test_no_name_of_a_session_keeps_a_secret(cast: Cast, service_api: Api) -> None:
    session = {"host": "login01", "user": "pi", "harness": "claude-code", "start": "2026-07-01T00:00:00Z"}
    sent = [session | {name: SECRET} for name in ("host", "user", "campaign")]
    answer = service_api.post("/ingest/sessions", json.dumps({"cluster": "aster", "sessions": sent}))
    assert [each["outcome"] for each in answer.json()["results"]] == ["rejected"] * 3
    assert places_of(SECRET) == []


def test_a_lesson_names_no_secret_as_its_job(cast: Cast) -> None:
    api = Api(factories.make_token(cast.agent, "lessons:write"))
    said = {"error_text": "Out Of Memory", "cause": "little", "fix": "more", "job_key": SECRET}
    assert api.post("/lessons", json.dumps(said)).json()["code"] == "job_malformed"
    assert places_of(SECRET) == []
