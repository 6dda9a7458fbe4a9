"""A client that is gone while much waits for it: nobody writes on to its socket."""

import asyncio
import logging
import socket
import struct

import pytest

from portal.realtime.listeners import Listener
from portal.realtime.stream import Event
from portal.realtime.viewers import Viewer


class Lost(asyncio.Protocol):
    """Notes that the connection is lost, as a server's protocol does, which then sends no more."""

    is_lost = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True


@pytest.mark.parametrize("before", [0, 1, 2, 3])
async def test_a_backlog_ends_with_its_connection(caplog: pytest.LogCaptureFixture, before: int) -> None:
    """asyncio logs a line for each write beyond the fifth to a transport that is lost; `before`: served until then."""
    listener = Listener(Viewer("token:1", "agent:1", lambda: 1 / 0), ["agent:1"])  # type: ignore[arg-type]
    for seq in range(1, 101):
        listener.offer(Event(seq, "agent.noted", "", ("agent:1",), {}))
    with socket.create_server(("127.0.0.1", 0)) as server:
        transport, protocol = await asyncio.get_running_loop().create_connection(Lost, *server.getsockname())
        client, _ = server.accept()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    for number in range(100):
        await listener.wait()
        if protocol.is_lost:
            break
        if number == before:
            client.close()  # with a reset: the next write finds out, the loop later
        assert listener.next() is not None
        transport.write(b"event")
    assert protocol.is_lost and number <= before + 6
    with caplog.at_level(logging.WARNING, logger="asyncio"):
        await asyncio.sleep(0)
    assert not [record for record in caplog.records if "send() raised" in record.getMessage()]
