"""The stream that `gatehouse wait` hears, while there is no portal."""

import pytest

from portal.cli import client, event_stream
from portal.cli.event_stream import EventStream


def test_a_portal_that_is_away_for_hours_is_tried_on(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 1100
    errors = iter([client.PortalUnreachable("away")] * tries + [client.PortalRefused({"detail": "over"}, 401)])

    def connect(_: EventStream) -> None:
        raise next(errors)

    monkeypatch.setattr(EventStream, "_connect", connect)
    monkeypatch.setattr(event_stream, "LONGEST_PAUSE_S", 0.0)
    stream = EventStream()
    stream.start()
    told = [stream.next(5) for _ in range(tries + 1)]
    assert [each and each["type"] for each in told] == ["lost"] * tries + ["refused"]
