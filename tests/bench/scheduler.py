"""What listening costs Slurm: `make bench-scheduler [SUBSCRIBERS=5000] [SECONDS=60]` prints JSON lines.

A real Slurm with hooks, the services profile and its reader, all started here. Jobs run and end at a steady pace while
one socket listens, then as many as are asked for, then one again, for the reader looks less often in its first minutes;
each hears every job of the cluster. The controller's own counters (sdiag, by user) say how often the reader asked: it
is a user of its own. As root.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from telemetry.engine.slurm.statistics import read_statistics
from tests.support.services import find_program
from tests.support.site import READER, ROOT, Site, services_site, wait_for_all
from tests.support.slurm import CLUSTER, find_missing, slurm

PER_PERSON = 190  # below what one may open
AT_ONCE = 20  # sockets that open
JOB_S, PACE_S = 3, 2.0
TOLERANCE = 0.2  # of calls: a look more or less in a minute
PEOPLE = """
import json, sys
from tests import factories
from tests.conftest import sign_in
people = [factories.make_user(f"staff{number}", is_research_computing=True) for number in range(int(sys.argv[1]))]
print(json.dumps([sign_in(each).cookies["sessionid"].value for each in people]))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subscribers", type=int, default=5000)
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    if missing := find_missing() or next((name for name in ("initdb", "redis-server") if not find_program(name)), ""):
        print(f"{missing} is missing here: nothing was measured.", file=sys.stderr)  # noqa: T201
        return 1
    with (
        tempfile.TemporaryDirectory(prefix="gatehouse-scheduler-") as name,
        slurm(Path(name), hooks=True) as facility,
        services_site(facility) as site,
    ):
        wait_for_all(site, [site.submit(1)], 600)  # by then all of them are at work
        cookies = _people(site, -(-options.subscribers // PER_PERSON))
        results = [asyncio.run(_run(site, cookies, count, options.seconds)) for count in (1, options.subscribers, 1)]
    one, many, again = (result["reader_rpcs_a_minute"] for result in results)
    is_met = many <= max(one, again) * (1 + TOLERANCE) and all(result["deaf"] == 0 for result in results)
    _tell(what="calls to the controller a minute", with_one=one, with_many=many, one_again=again, goal_met=is_met)
    return 0 if is_met else 1


def _people(site: Site, count: int) -> list[str]:
    code = f"import django; django.setup()\n{PEOPLE}"
    made = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(count)], cwd=ROOT, env=site.environment, check=True, text=True,
        stdout=subprocess.PIPE, timeout=300,
    )  # fmt: skip
    cookies: list[str] = json.loads(made.stdout.splitlines()[-1])
    return cookies


async def _run(site: Site, cookies: list[str], count: int, seconds: int) -> dict[str, Any]:
    """Let `count` listen for so long; say what the controller was asked meanwhile."""
    began, gate = time.monotonic(), asyncio.Semaphore(AT_ONCE)
    async with AsyncExitStack() as stack:
        heard = [0] * count
        opening = (_open(site, cookies[number // PER_PERSON], gate, stack) for number in range(count))
        sockets = await asyncio.gather(*opening)
        listening = [asyncio.create_task(_listen(socket, heard, number)) for number, socket in enumerate(sockets)]
        opened_s, stop = time.monotonic() - began, threading.Event()
        submitting = asyncio.create_task(asyncio.to_thread(_submit, site, stop))
        before, since = await asyncio.to_thread(_asked, site), time.monotonic()
        await asyncio.sleep(seconds)
        asked, took_s = await asyncio.to_thread(_asked, site) - before, time.monotonic() - since
        stop.set()
        jobs = await submitting
        for task in listening:
            task.cancel()
        await asyncio.gather(*listening, return_exceptions=True)
    result = {
        "subscribers": count, "opened_s": round(opened_s, 1), "seconds": round(took_s, 1), "jobs": jobs,
        "events_read": sum(heard), "deaf": sum(not each for each in heard), "reader_rpcs": asked,
        "reader_rpcs_a_minute": round(asked / took_s * 60, 1),
    }  # fmt: skip
    _tell(**result)
    return result


async def _open(site: Site, cookie: str, gate: asyncio.Semaphore, stack: AsyncExitStack) -> ClientConnection:
    url, headers = f"ws://127.0.0.1:{site.port}/ws/events/?topics=all-jobs:{CLUSTER}", {"Cookie": f"sessionid={cookie}"}
    async with gate:
        opening = connect(
            url, additional_headers=headers, origin=site.url, open_timeout=120, ping_interval=None, close_timeout=1,  # type: ignore[arg-type]
            compression=None,
        )  # fmt: skip
        socket = await stack.enter_async_context(opening)
        assert json.loads(await socket.recv())["type"] == "hello"
        return socket


async def _listen(socket: ClientConnection, heard: list[int], number: int) -> None:
    async for _ in socket:
        heard[number] += 1


def _submit(site: Site, stop: threading.Event) -> int:
    """Submit a job at a steady pace; return how many."""
    jobs = 0
    while not stop.is_set():
        site.submit(JOB_S)
        jobs += 1
        stop.wait(PACE_S)
    return jobs


def _asked(site: Site) -> int:
    """Return how often the reader asked the controller."""
    by_user = read_statistics(site.facility.run("sdiag")).by_user
    return by_user[READER].calls if READER in by_user else 0


def _tell(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
