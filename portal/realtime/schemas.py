"""Live events as the API describes them."""

from datetime import datetime
from typing import Any

from ninja import Schema


class EventOut(Schema):
    """One piece of news."""

    seq: int
    name: str
    at: datetime
    topics: list[str]
    payload: dict[str, Any]


class EventsOut(Schema):
    """Events past the cursor; ask again with `after=next`. `resync`: some were lost to you, load the state again."""

    events: list[EventOut]
    next: int
    resync: bool
