"""What a client may say on its socket, read strictly."""

import json
from dataclasses import dataclass

from portal.core.errors import Invalid, TooLarge
from portal.realtime.stream import MAX_SEQ
from portal.realtime.viewers import within_limit

MAX_MESSAGE = 16 * 1024
_WITH_TOPICS = frozenset({"subscribe", "unsubscribe"})


@dataclass(frozen=True, slots=True)
class Message:
    """A message that can be followed: `subscribe` or `unsubscribe` with topics, or `ping`."""

    type: str
    topics: list[str]


def read_message(text: str | None) -> Message:
    """Read a client's message. Errors: `TooLarge`, and `Invalid` for all that is no message of ours."""
    if text is None:
        raise Invalid("Messages are text.", code="message_malformed")
    if len(text) > MAX_MESSAGE:
        raise TooLarge(f"The message is longer than {MAX_MESSAGE} characters.", code="message_too_large")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid("The message is not JSON.", code="message_malformed") from error
    kind = content.get("type") if isinstance(content, dict) else None
    if kind == "ping":
        return Message("ping", [])
    if not isinstance(kind, str) or kind not in _WITH_TOPICS:
        raise Invalid(
            "The message has no type of ours.", code="message_malformed", remedy="Send subscribe, unsubscribe or ping."
        )
    topics = content.get("topics")
    if not isinstance(topics, list) or not all(isinstance(topic, str) for topic in topics):
        raise Invalid("`topics` must be a list of texts.", code="message_malformed")
    return Message(kind, within_limit(list(dict.fromkeys(topics))))


def read_cursor(text: str) -> int | None:
    """Read `after`: a position, or nothing. Errors: `Invalid`."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) > MAX_SEQ:
        raise Invalid("`after` must be a position: a whole number.", code="cursor_malformed")
    return int(text)
