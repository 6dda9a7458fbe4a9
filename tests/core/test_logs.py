"""Logs say what happened and keep no secret."""

import json
import subprocess
import sys

from portal.core.logs import drop_query, mask_tokens


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
