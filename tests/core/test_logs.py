"""Logs say what happened and keep no secret."""

from portal.core.logs import drop_query, mask_tokens


def test_a_token_never_reaches_a_line() -> None:
    token = "gha_0123456789ab." + "A" * 40
    event = mask_tokens(None, "", {"event": f"sent {token}", "n": 1})
    assert "A" * 20 not in event["event"] and "gha_0123456789ab.[REDACTED]" in event["event"]


def test_the_query_of_a_request_is_left_out() -> None:
    event = drop_query(None, "", {"request": "GET /lessons/?q=password+is+x", "event": "request_started"})
    assert event["request"] == "GET /lessons/"
