"""Logs say what happened and keep no secret."""

import io
import json
import logging
import logging.config
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from django.conf import settings
from django.test import Client

from portal.core.logs import drop_query, mask_tokens
from tests.security.engine.corpus import make_values

VALUES = make_values()


@pytest.fixture
def lines() -> Iterator[Callable[[], list[dict[str, object]]]]:
    """What is logged, line by line, in the form in which it is written."""
    stream, root = io.StringIO(), logging.getLogger()
    config = settings.LOGGING["formatters"]["json"]
    handler = logging.StreamHandler(stream)
    handler.setFormatter(config["()"](**{name: value for name, value in config.items() if name != "()"}))
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.removeHandler(handler)
    root.setLevel(level)


def test_a_token_never_reaches_a_line() -> None:
    token = "gha_0123456789ab." + "A" * 40
    event = mask_tokens(None, "", {"event": f"sent {token}", "n": 1})
    assert "A" * 20 not in event["event"] and "gha_0123456789ab.[REDACTED]" in event["event"]


def test_the_query_of_a_request_is_left_out() -> None:
    event = drop_query(None, "", {"request": "GET /lessons/?q=password+is+x", "event": "request_started"})
    assert event["request"] == "GET /lessons/"


def test_what_the_web_server_says_is_json_like_all_else() -> None:
    # As in the web process: uvicorn sets its logging up, then loads the portal.
    script = (
        "import logging.config; from uvicorn.config import LOGGING_CONFIG; from portal.core import logs\n"
        "logging.config.dictConfig(LOGGING_CONFIG); logs.configure()\n"
        "logging.config.dictConfig(logs.logging_config('WARNING'))\n"
        "logging.getLogger('uvicorn.error').info('Shutting down')\n"
        "logging.getLogger('uvicorn.error').warning('Invalid HTTP request received.')"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in ran.stderr.splitlines()]
    assert [(line["event"], line["level"]) for line in lines] == [("Invalid HTTP request received.", "warning")]
    assert ran.stdout == ""


@pytest.mark.parametrize("name", ["ghp", "databricks", "jwt", "gha"])
def test_what_a_client_says_of_itself_is_logged_without_its_secrets(name: str, lines: Callable[[], list]) -> None:
    secret = VALUES[name]
    Client().get(f"/nowhere/{secret}", headers={
        "user-agent": f"agent/1 {secret}", "x-request-id": secret[:64], "x-correlation-id": secret,
    })  # fmt: skip
    started = next(line for line in lines() if line["event"] == "request_started")
    assert started["user_agent"].startswith("agent/1 ") and "REDACTED" in started["user_agent"]
    assert secret[-20:] not in json.dumps(lines())
    assert str(started["request"]).startswith("GET /nowhere/")


def test_what_a_client_says_of_itself_is_bounded(lines: Callable[[], list]) -> None:
    split = "x " * 1990 + VALUES["hf"]  # what is looked at ends within the token
    Client().get("/nowhere/" + "a" * 5000, headers={"user-agent": split})
    started = next(line for line in lines() if line["event"] == "request_started")
    assert (len(started["user_agent"]), len(started["request"])) == (301, 301)
    assert "hf_" not in json.dumps(lines())


def test_a_cut_never_keeps_what_it_split(lines: Callable[[], list]) -> None:
    key = VALUES["age"]
    Client().get("/nowhere/", headers={"user-agent": f"{key} " * 58})  # 4000 characters hold 53 and a part
    assert key[:30] not in json.dumps(lines())


def test_the_query_of_a_socket_is_left_out(lines: Callable[[], list]) -> None:
    logging.getLogger("uvicorn.error").critical('%s - "WebSocket %s" [accepted]', "127.0.0.1:1", "/ws/?q=password+is+x")
    assert [line["event"] for line in lines()] == ['127.0.0.1:1 - "WebSocket /ws/" [accepted]']
