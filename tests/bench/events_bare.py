"""What the same deliveries cost without a portal: a bare tail of the table over channels, for `make bench-events`.

It asks nobody who they are, checks no right, keeps no backlog and serves no cursor: a socket hears its lab, and what is
committed is read every 100 ms and sent. What our server spends beyond it is the price of those.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import psycopg
from channels.generic.websocket import AsyncWebsocketConsumer

POLL_S = 0.1
_ASKED = """SELECT id, name, at, payload FROM core_liveevent WHERE id > %s ORDER BY id LIMIT 500"""


class Tail:
    """Sockets by lab, and one reader of the table for all of them."""

    def __init__(self) -> None:
        self.of_lab: dict[str, set[Bare]] = {}
        self.lab_of: dict[str, str] = {}
        self.task: asyncio.Task[None] | None = None
        for line in Path(os.environ["BENCH_SUBSCRIBERS"]).read_text().splitlines():
            facts = json.loads(line)
            self.lab_of[facts.get("token") or facts["cookie"]] = facts["lab"]

    async def run(self) -> None:
        url = os.environ["DATABASE_URL"]
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            found = await (await connection.execute("SELECT max(id) FROM core_liveevent")).fetchone()
            last = (found and found[0]) or 0
            while True:
                rows = await (await connection.execute(_ASKED, [last])).fetchall()
                for last, name, at, payload in rows:
                    text = json.dumps(
                        {"type": "event", "seq": last, "name": name, "at": at.isoformat(), "payload": payload}
                    )
                    for consumer in list(self.of_lab.get(payload["lab"], ())):
                        await consumer.send(text)
                await asyncio.sleep(POLL_S if len(rows) < 500 else 0)


class Bare(AsyncWebsocketConsumer):  # type: ignore[misc]
    channel_layer_alias = None

    async def connect(self) -> None:
        await self.accept()
        headers = dict(self.scope["headers"])
        who = headers.get(b"authorization", b"").removeprefix(b"Bearer ") or headers[b"cookie"].partition(b"=")[2]
        self.lab = tail.lab_of[who.decode()]
        tail.of_lab.setdefault(self.lab, set()).add(self)
        if tail.task is None:
            tail.task = asyncio.create_task(tail.run())
        await self.send(json.dumps({"type": "hello"}))

    async def disconnect(self, code: int) -> None:
        tail.of_lab[self.lab].discard(self)


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await consumer(scope, receive, send)


tail = Tail()
consumer = Bare.as_asgi()
