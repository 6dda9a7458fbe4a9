"""Ctrl-C ends a portal within five seconds though hundreds listen to it."""

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from tests.support import demo

pytestmark = [pytest.mark.outside, pytest.mark.one_database, pytest.mark.soak]
SOCKETS, POLLS = 200, 60
_CROWD = """
import json
from tests import factories
from tests.conftest import sign_in
staff = [factories.make_user(f"staff{n}", is_research_computing=True) for n in range(5)]
pi = factories.make_user("pi")
lab = factories.make_lab("okafor", pi=pi)
agents = [factories.make_agent(lab, pi, f"okafor-{n}") for n in range(2)]
print(json.dumps({
    "cookies": [sign_in(user).cookies["sessionid"].value for user in staff],
    "tokens": [factories.make_token(agent) for agent in agents],
}))
"""


async def test_ctrl_c_with_200_sockets_and_60_long_polls(tmp_path: Path) -> None:
    data = demo.empty_folder(tmp_path / "var")
    crowd = json.loads(demo.manage(data, "shell", "--no-imports", "-c", _CROWD).stdout.splitlines()[-1])
    with demo.portal(data, DEMO="0") as portal:
        await asyncio.to_thread(portal.wait_for, portal.ready_line)
        async with AsyncExitStack() as stack:
            for cookie in crowd["cookies"] * (SOCKETS // 5):
                socket = connect(
                    f"{portal.url.replace('http', 'ws')}/ws/events/?topics=facility:principals", origin=portal.url,
                    additional_headers={"Cookie": f"sessionid={cookie}"},
                )  # fmt: skip
                await (await stack.enter_async_context(socket)).recv()
            polls = await _long_polls(stack, portal.url, crowd["tokens"])
            took = await asyncio.to_thread(portal.end)
            await asyncio.gather(*polls, return_exceptions=True)
        assert took < 5, portal.said
        assert portal.process.returncode == 0 and portal.said.endswith("Stopped; nothing was lost.\n")
    demo.manage(data, "verify_audit")


async def _long_polls(stack: AsyncExitStack, url: str, tokens: list[str]) -> list[asyncio.Task[Any]]:
    """Ask for events that do not come; return once all these requests wait."""
    limits = httpx.Limits(max_connections=POLLS + 10)
    client = await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=60, limits=limits))
    polls = []
    for token in tokens:
        headers = {"Authorization": f"Bearer {token}"}
        start = (await client.get("/api/v1/events", headers=headers)).json()["next"]
        query = {"after": start, "wait": 30}
        polls += [
            asyncio.create_task(client.get("/api/v1/events", params=query, headers=headers))
            for _ in range(POLLS // len(tokens))
        ]
    done, _ = await asyncio.wait(polls, timeout=5)
    assert not done
    return polls
