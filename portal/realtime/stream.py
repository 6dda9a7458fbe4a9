"""A live event as sockets and long-polls see it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from portal.core import clock
from portal.core.models import LiveEvent

# Cursors are BIGINT columns.
MAX_SEQ = 2**63 - 1


@dataclass(frozen=True)
class Event:
    """One numbered event, read once a process and shared by all its listeners."""

    seq: int
    name: str
    at: str  # as `clock.written` writes it
    topics: tuple[str, ...]
    payload: dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, row: LiveEvent) -> "Event":
        """Make the event of a numbered row."""
        return cls(row.seq or 0, row.name, clock.written(row.at), tuple(row.topics), row.payload)

    @cached_property
    def _body(self) -> str:
        # Made once, not once a socket: with many sockets this text is what delivery costs.
        return json.dumps({"seq": self.seq, "name": self.name, "at": self.at, "payload": self.payload})[1:-1]

    @cached_property
    def _texts(self) -> dict[tuple[str, ...], str]:
        return {}

    def seen_by(self, wanted: Iterable[str]) -> list[str]:
        """Return the event's topics that the listener asked for; the others are none of its business."""
        return [topic for topic in self.topics if topic in wanted]

    def text(self, wanted: Iterable[str]) -> str:
        """Return the socket message: made once for all who hear it by the same topics."""
        seen = tuple(self.seen_by(wanted))
        text = self._texts.get(seen)
        if text is None:
            text = self._texts[seen] = f'{{"type": "event", {self._body}, "topics": {json.dumps(seen)}}}'
        return text

    def as_dict(self, wanted: Iterable[str]) -> dict[str, Any]:
        """Return the long-poll form: the socket message without its type."""
        return {
            "seq": self.seq,
            "name": self.name,
            "at": self.at,
            "topics": self.seen_by(wanted),
            "payload": self.payload,
        }
