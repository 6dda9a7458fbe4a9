"""From a kill switch to closed sockets, 403 and a `gatehouse` that refuses: `make bench-suspension` prints JSON lines.

PostgreSQL and Redis of its own, two server processes, and a thousand agents, each with one open socket and a token.
One kill switch stops them all: each agent of a lab, of a harness, of the site, in turn. Time runs from before it is
pulled. Server processes, sockets, askers and the switch share this machine.
"""

import argparse
import contextlib
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench import events
from tests.support.services import free_port, wait_for_port

GOAL_S = 5.0
PATIENCE_S = 60.0
LAB = "revoked"  # of `events_portal`: its agents hold the sockets
KINDS = ("lab", "harness", "all")
ADDRESS = "127.0.0.1"
CLOSED_WITH = 4403


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sockets", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--switch", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--prepare", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.prepare:
        return _prepare(options)
    if options.switch:
        return _switch(options.switch)
    with events.services() as made:
        if made is None:
            print("PostgreSQL or Redis is not installed: nothing was measured.", file=sys.stderr)  # noqa: T201
            return 1
        environment = events.environment(*made)
        everybody = made[0] / "everybody"
        asked = ["--prepare", str(everybody), "--sockets", str(options.sockets)]
        subprocess.run(_own(*asked), cwd=events.ROOT, env=environment, check=True)
        people = [json.loads(line) for line in everybody.read_text().splitlines()]
        tokens = [each for each in people if "token" in each]
        results = [_run(kind, made[0], environment, tokens, options.processes) for kind in options.kinds]
    return 0 if all(each["goal_met"] for each in results) else 1


def _own(*arguments: str) -> list[str]:
    return [sys.executable, "-W", "ignore", "-m", "tests.bench.suspension", *arguments]


# --- in the portal's environment -----------------------------------------------------------------------------
def _prepare(options: argparse.Namespace) -> int:
    """Make one lab of as many agents, over ten owners, and one person of staff."""
    import django

    django.setup()
    from django.core.management import call_command

    from principals.models import Agent, Cluster, LabMembership, User
    from tests.bench.events_portal import make_lab

    call_command("migrate", verbosity=0)
    with options.prepare.open("w") as file:
        make_lab(Cluster.objects.create(name="bench"), LAB, 10, options.sockets, file)
    owners = list(LabMembership.objects.order_by("pk").values_list("user", flat=True))
    agents = list(Agent.objects.order_by("pk"))
    for number, agent in enumerate(agents):
        agent.owner_id = owners[number % len(owners)]
    Agent.objects.bulk_update(agents, ["owner"], batch_size=500)
    User.objects.create(username="staff", password="!", is_research_computing=True)
    return 0


def _switch(kind: str) -> int:
    """Pull a switch when a line comes in, and end it with the next: this process is the page's, already warm."""
    import django

    django.setup()
    from datetime import timedelta

    from django.conf import settings

    from portal.core import clock
    from principals import permissions
    from principals.models import User
    from principals.services import kill_switches

    settings.KILL_SWITCH_ALONE = 1_000_000  # that a second person agrees is no part of what is measured
    actor = permissions.actor_for_user(User.objects.get(username="staff"))
    target = kill_switches.find_target(kind, {"lab": LAB, "harness": "codex", "all": ""}[kind])
    _tell(event="ready")
    sys.stdin.readline()
    began = time.monotonic()
    switch = kill_switches.pull(
        actor=actor, target=target, reason="A bench.", until=clock.now() + timedelta(hours=1)
    )  # fmt: skip
    _tell(event="pulled", began=began, done=time.monotonic())
    sys.stdin.readline()
    kill_switches.end(actor=actor, switch=switch, reason="Over.")
    _tell(event="ended")
    return 0


# --- one switch ----------------------------------------------------------------------------------------------
def _run(
    kind: str, folder: Path, environment: dict[str, str], tokens: list[dict[str, str]], processes: int
) -> dict[str, Any]:
    """Open every socket, pull the switch, and note when each part of its promise is kept."""
    with contextlib.ExitStack() as stack:
        ports = [stack.enter_context(_server(environment)) for _ in range(processes)]
        crowds = []
        for number, port in enumerate(ports):
            place = folder / f"{kind}-{number}"
            place.mkdir()
            (place / "subscribers").write_text("".join(json.dumps(each) + "\n" for each in tokens[number::processes]))
            command = ["-m", "tests.bench.events_client", "--port", str(port), "--folder", str(place)]
            command += ["--subscribers", str(place / "subscribers")]
            crowds.append(stack.enter_context(_child(environment, *command, stdout=subprocess.PIPE)))
        for crowd in crowds:
            events.hear(crowd, "open", PATIENCE_S * 5)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        switch = stack.enter_context(_child(environment, "-m", "tests.bench.suspension", "--switch", kind, **pipes))
        events.hear(switch, "ready", PATIENCE_S)
        refused = dict[str, float]()
        askers = [
            threading.Thread(target=_ask, args=(port, tokens[at]["token"], f"http_{at}", refused))
            for at, port in enumerate(ports)
        ]
        askers.append(threading.Thread(target=_call, args=(environment, ports[0], tokens[0]["token"], refused)))
        for asker in askers:
            asker.start()
        time.sleep(2)  # all of them ask, and are answered
        _next(switch)
        pulled = events.hear(switch, "pulled", PATIENCE_S)
        for asker in askers:
            asker.join()
        time.sleep(max(0.0, pulled["began"] + 2 * GOAL_S - time.monotonic()))
        closed = list[tuple[float, int]]()
        for crowd in crowds:
            crowd.terminate()
            closed += [(at, code) for at, code in events.hear(crowd, "left", PATIENCE_S)["closed"].values()]
        _next(switch)
        events.hear(switch, "ended", PATIENCE_S)
    spent = sorted(at - pulled["began"] for at, code in closed if code == CLOSED_WITH)
    result = {
        "benchmark": "suspension", "switch": kind, "sockets": len(tokens), "server_processes": processes,
        "closed": len(spent), "to_close_ms": events.percentiles(spent) if spent else None,
        "pull_ms": round(1000 * (pulled["done"] - pulled["began"])),
        "to_refusal_ms": {name: round(1000 * (at - pulled["began"])) for name, at in sorted(refused.items())},
        "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip
    p99 = spent[int(0.99 * (len(spent) - 1))] if len(spent) == len(tokens) else float("inf")
    is_met = len(refused) == processes + 1 and max(p99, *(at - pulled["began"] for at in refused.values())) < GOAL_S
    result["goal_met"] = is_met
    _tell(**result)
    return result


@contextmanager
def _server(environment: dict[str, str]) -> Iterator[int]:
    port = free_port()
    command = ["-m", "uvicorn", "portal.asgi:application", "--lifespan", "off", "--no-proxy-headers", "--port"]
    with _child(environment, *command, str(port), "--log-level", "error", "--no-access-log") as server:
        wait_for_port(port, server)
        yield port


@contextmanager
def _child(environment: dict[str, str], *arguments: str, **how: Any) -> Iterator["subprocess.Popen[bytes]"]:
    child = subprocess.Popen([sys.executable, "-W", "ignore", *arguments], cwd=events.ROOT, env=environment, **how)
    try:
        yield child
    finally:
        child.terminate()
        child.wait(PATIENCE_S)


def _next(switch: "subprocess.Popen[bytes]") -> None:
    assert switch.stdin is not None
    switch.stdin.write(b"\n")
    switch.stdin.flush()


def _ask(port: int, token: str, name: str, refused: dict[str, float]) -> None:
    """Ask one server process who one is until it answers 403, and note when that was."""
    connection = http.client.HTTPConnection(ADDRESS, port, timeout=PATIENCE_S)
    gives_up = time.monotonic() + PATIENCE_S
    while time.monotonic() < gives_up:
        connection.request("GET", "/api/v1/me", headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status == http.HTTPStatus.FORBIDDEN and json.loads(body)["code"] == "kill_switch":
            refused[name] = time.monotonic()
            return
        time.sleep(0.05)


def _call(environment: dict[str, str], port: int, token: str, refused: dict[str, float]) -> None:
    """Call `gatehouse me` until it refuses with the switch's reason, and note when that was."""
    command = [sys.executable, "-c", "import sys; from portal.cli.main import main; sys.exit(main(['me']))"]
    environment = environment | {"GATEHOUSE_URL": f"http://{ADDRESS}:{port}", "GATEHOUSE_TOKEN": token}
    gives_up = time.monotonic() + PATIENCE_S
    while time.monotonic() < gives_up:
        done = subprocess.run(command, cwd=events.ROOT, env=environment, capture_output=True, text=True, check=False)
        if done.returncode and "A bench." in done.stdout + done.stderr:
            refused["gatehouse"] = time.monotonic()
            return


def _tell(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
