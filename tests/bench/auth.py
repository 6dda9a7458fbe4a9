"""What the token check costs, and how many authenticated requests a second are answered: `make bench-auth` prints JSON.

A portal of the embedded profile is started here, on a folder of its own. First the check alone, in this process, on a
table of ten thousand tokens with a thousand holds in force: time, queries, and whether the database goes by an index.
Then `GET /api/v1/me` by HTTP, by clients that keep their connections and share the machine's cores with the server.
"""

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.support.services import free_port, wait_for_port

ROOT = Path(__file__).parents[2]
TOKENS, HOLDS, CHECKS = 10_000, 1_000, 2_000
CLIENTS = 8
GOAL_MS, GOAL_RATE = 1.0, 200.0
ADDRESS = "127.0.0.1"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gatehouse-auth-") as name:
        os.environ |= {
            "GATEHOUSE_DATA": name, "DJANGO_SETTINGS_MODULE": "portal.settings", "LOG_LEVEL": "ERROR",
            "PYTHONPATH": str(ROOT),
        }  # fmt: skip
        import django

        django.setup()
        plain = _prepare()
        check = _check(plain)
        rate = _serve(plain, options.seconds, options.processes)
    is_met = bool(check["median_ms"] < GOAL_MS and check["queries"] == 1 and not check["scans"] and rate >= GOAL_RATE)
    _tell(what="goals", check_ms=GOAL_MS, queries=1, requests_a_second=GOAL_RATE, goal_met=is_met)
    return 0 if is_met else 1


def _prepare() -> list[str]:
    """Fill a database: tokens that nobody holds any more, holds on other agents, and tokens to ask with."""
    from datetime import timedelta

    from django.core.management import call_command

    from portal.core import clock
    from principals.models import AgentToken, Hold
    from tests import factories

    call_command("migrate", verbosity=0)
    owner = factories.make_user("owner")
    lab = factories.make_lab("okafor", member=owner)
    factories.make_account(factories.make_cluster("aster"), lab)
    agent = factories.make_agent(lab, owner)
    end = clock.now() + timedelta(days=30)
    AgentToken.objects.bulk_create(
        AgentToken(agent=agent, key=f"{number:012}", digest=f"{number:064}", pepper=1, scopes=["me:read"], expires=end)
        for number in range(TOKENS)
    )
    Hold.objects.bulk_create(
        Hold(subject_kind=kind, subject_id=100_000 + number, kind="flood", code="flood", reason="x", placed_by="bench")
        for kind in ("agent", "user", "lab", "owner")
        for number in range(HOLDS // 4)
    )
    return [factories.make_token(agent) for _ in range(100)]


def _check(plain: list[str]) -> dict[str, Any]:
    """Measure the check alone, as the API's door makes it."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from principals import auth

    for token in plain:  # notes their first use, which is written once a minute
        auth.actor_for_token(token, address=ADDRESS)
    with CaptureQueriesContext(connection) as caught:
        auth.actor_for_token(plain[0], address=ADDRESS)
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {caught.captured_queries[0]['sql']}")
        plan = [str(row[-1]) for row in cursor.fetchall()]
    spent = []
    for number in range(CHECKS):
        token = plain[number % len(plain)]
        began = time.perf_counter()
        auth.actor_for_token(token, address=ADDRESS)
        spent.append((time.perf_counter() - began) * 1000)
    spent.sort()
    result = {
        "checks": CHECKS, "tokens": TOKENS, "holds": HOLDS, "queries": len(caught),
        "median_ms": round(statistics.median(spent), 3), "p99_ms": round(spent[int(CHECKS * 0.99)], 3),
        "scans": [step for step in plan if step.startswith("SCAN")],
    }  # fmt: skip
    _tell(what="the token check alone", **result)
    return result


def _serve(plain: list[str], seconds: float, processes: int) -> float:
    """Ask a portal of some processes who one is, by several clients at once; return the answers a second."""
    ports = [free_port() for _ in range(processes)]
    quiet = ["--log-level", "error", "--lifespan", "off", "--no-access-log"]
    servers = []
    first: list[tuple[int, float]] = []
    spent: list[tuple[int, float]] = []
    try:
        for port in ports:
            command = [sys.executable, "-W", "ignore", "-m", "uvicorn", "portal.asgi:application", "--port", str(port)]
            servers.append(subprocess.Popen([*command, *quiet], cwd=ROOT))
        for port, server in zip(ports, servers, strict=True):
            wait_for_port(port, server)
            _ask(port, plain[:1], 1.0, first)
        share = len(plain) // CLIENTS
        clients = [
            threading.Thread(
                target=_ask, args=(ports[at % processes], plain[at * share : (at + 1) * share], seconds, spent)
            )
            for at in range(CLIENTS)
        ]
        began = time.perf_counter()
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        took = time.perf_counter() - began
    finally:
        for server in servers:
            server.terminate()
            server.wait()
    good = sorted(ms for status, ms in spent if status == 200)
    rate = len(good) / took
    _tell(
        what="GET /api/v1/me", processes=processes, clients=CLIENTS, seconds=round(took, 1), answers=len(good),
        others=len(spent) - len(good), a_second=round(rate, 1), median_ms=round(statistics.median(good), 1),
        p99_ms=round(good[int(len(good) * 0.99)], 1), cores=os.cpu_count(), load=round(os.getloadavg()[0], 1),
    )  # fmt: skip
    return rate


def _ask(port: int, plain: list[str], seconds: float, spent: list[tuple[int, float]]) -> None:
    """Ask one question after the other over one connection, with each of some tokens in turn."""
    connection = http.client.HTTPConnection(ADDRESS, port, timeout=30)
    ends, asked = time.perf_counter() + seconds, 0
    while time.perf_counter() < ends:
        began = time.perf_counter()
        connection.request("GET", "/api/v1/me", headers={"Authorization": f"Bearer {plain[asked % len(plain)]}"})
        answer = connection.getresponse()
        answer.read()
        spent.append((answer.status, (time.perf_counter() - began) * 1000))
        asked += 1
    connection.close()


def _tell(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
