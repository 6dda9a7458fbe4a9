"""Job events to thousands of sockets: `make bench-events [SUBSCRIBERS=5000] [RATE=500] [SECONDS=60]` prints JSON lines.

The services profile on servers of its own in a temporary folder. Subscribers are spread over labs of twenty: ten people
who hear their lab's jobs by session, ten agents who hear their owner's by token. Jobs are written as the Slurm reader
writes them; each change goes to its lab's twenty. Then the same with one lab of 500, with 50 sockets that hear all jobs
and stop reading, and, for comparison, with a bare tail of the table that checks no right. One client, one server
process, one writer: all share this machine.

Lag is from when a record was due to be handed to ingest until a subscriber read the event: where the machine keeps the
writer waiting, that counts too. `after_hand_over_ms` and `after_commit_ms` say what of it ingest and delivery took.
"""

import argparse
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.services import Postgres, free_port, make_postgres, wait_for_port
from tests.support.services import redis as private_redis

ROOT = Path(__file__).resolve().parent.parent.parent
LAB_SIZE, BIG_SIZE, STALLED = 20, 500, 50
GOAL_P99_MS = 1000
CLOSED_WITHIN_S = 5.0
OPEN_PATIENCE_S = 600.0
STOPPED_S = 17.0  # whoever answers no ping for twenty is closed
SETTLE_S = 3.0  # after the last write
SLURM_COMMANDS = ("sacct", "sacctmgr", "scontrol", "sdiag", "sinfo", "squeue", "sbatch", "scancel")
VARIANTS = ("labs of 20", "one lab of 500", "50 stop reading", "bare tail")
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass
class Bench:
    """What all runs share: the folder, where the servers are, and how the portal is asked to run."""

    folder: Path
    options: argparse.Namespace
    environment: dict[str, str]
    postgres: subprocess.Popen[bytes]
    subscribers: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    runs: int = 0

    def child(self, module: str, *arguments: str, **how: Any) -> subprocess.Popen[bytes]:
        """Start a Python module in the portal's environment."""
        command = [sys.executable, "-W", "ignore", *module.split(), *arguments]
        return subprocess.Popen(command, cwd=ROOT, env=self.environment, **how)

    def calls(self) -> int:
        """Return how many commands of Slurm anybody called."""
        log = self.folder / "slurm-commands.log"
        return len(log.read_text().splitlines()) if log.exists() else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subscribers", type=int, default=5000)
    parser.add_argument("--rate", type=int, default=500, help="job events a second")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=VARIANTS)
    parser.add_argument("--server", default="", help="more arguments for uvicorn")
    parser.add_argument("--profile", type=Path, help="a py-spy program: profiles of server and writer are kept")
    parser.add_argument("--deflate", action="store_true", help="offer compression; measures idle sockets only")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # for the children
    with bench(options) as made:
        if made is None:
            print("PostgreSQL or Redis is not installed: nothing was measured.", file=sys.stderr)  # noqa: T201
            return 1
        results = [_run(made, variant) for variant in options.variants]
    ours = [each for each in results if each["variant"] != VARIANTS[3]]
    return 0 if all(each.get("goal_met", True) for each in ours) else 1


@contextmanager
def bench(options: argparse.Namespace) -> Iterator[Bench | None]:
    """Start the servers and fill the database; yield None where a program is missing."""
    with services() as started:
        if started is None:
            yield None
            return
        folder, postgres, redis_url = started
        assert postgres.server is not None
        made = Bench(folder, options, environment(folder, postgres, redis_url), postgres.server)
        _prepare(made)
        yield made


@contextmanager
def services() -> Iterator[tuple[Path, Postgres, str] | None]:
    """Start PostgreSQL and Redis in a folder of their own; yield None where a program is missing."""
    with tempfile.TemporaryDirectory(prefix="gatehouse-events-") as name:
        folder = Path(name)
        postgres = make_postgres(folder)
        with private_redis(folder) as redis_url:
            if postgres is None or redis_url is None:
                yield None
                return
            postgres.start()
            try:
                yield folder, postgres, redis_url
            finally:
                postgres.stop()


def environment(folder: Path, postgres: Postgres, redis_url: str) -> dict[str, str]:
    """Return the services profile's variables, and a PATH on which Slurm's commands only note that they were called."""
    commands = folder / "slurm"
    commands.mkdir()
    for name in SLURM_COMMANDS:
        script = commands / name
        script.write_text(f'#!/bin/sh\necho {name} >> "{folder}/slurm-commands.log"\n')
        script.chmod(0o755)
    return os.environ | {
        "GATEHOUSE_PROFILE": "services", "DATABASE_URL": postgres.url, "REDIS_URL": redis_url,
        "GATEHOUSE_DATA": str(folder / "var"), "DJANGO_SETTINGS_MODULE": "portal.settings", "LOG_LEVEL": "WARNING",
        "SECRET_KEY": "bench-" * 8, "TOKEN_PEPPERS": "1:" + "pepper" * 8,
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
    }  # fmt: skip


def _prepare(made: Bench) -> None:
    labs = max(1, made.options.subscribers // LAB_SIZE)
    path = made.folder / "everybody"
    arguments = ["prepare", "--labs", str(labs), "--file", str(path)]
    if made.child("-m tests.bench.events_portal", *arguments).wait():
        raise RuntimeError("the database could not be filled")
    for line in path.read_text().splitlines():
        facts = json.loads(line)
        made.subscribers.setdefault(facts["lab"], []).append(facts)


# --- one run -------------------------------------------------------------------------------------------------
def _run(made: Bench, variant: str) -> dict[str, Any]:
    options, folder = made.options, made.folder / variant.replace(" ", "-")
    folder.mkdir()
    is_big, stops = variant == VARIANTS[1], variant == VARIANTS[2]
    total = max(1, options.subscribers // LAB_SIZE)
    labs = max(1, total - BIG_SIZE // LAB_SIZE) if is_big else total
    names = [f"l{number:04}" for number in range(labs)] + ["big"] * is_big
    people = [facts for name in names for facts in made.subscribers[name]]
    revoked = [facts for facts in made.subscribers["revoked"] if "token" in facts] if variant == VARIANTS[0] else []
    everybody = people + revoked + made.subscribers["watchers"] * stops
    (folder / "subscribers").write_text("".join(json.dumps(facts) + "\n" for facts in everybody))

    port = free_port()
    application = "tests.bench.events_bare" if variant == VARIANTS[3] else "portal.asgi"
    made.environment["BENCH_SUBSCRIBERS"] = str(folder / "subscribers")
    command = f"-m uvicorn {application}:application --lifespan off --no-proxy-headers"
    if not made.options.deflate:
        command += " --ws-per-message-deflate false"
    command += f" --log-level warning --port {port}"
    server = made.child(command, *options.server.split())
    started = [server]
    try:
        wait_for_port(port, server)
        before_mb = _rss_mb(server.pid)
        deflate = ["--deflate"] if options.deflate else []
        client = made.child(
            "-m tests.bench.events_client", "--port", str(port), "--subscribers", str(folder / "subscribers"),
            "--folder", str(folder), *deflate, stdout=subprocess.PIPE,
        )  # fmt: skip
        started.append(client)
        before = _cpu_s(server.pid)
        opened = hear(client, "open", OPEN_PATIENCE_S)
        result = {"benchmark": "events", "variant": variant, "python": platform.python_version()} | {
            "subscribers": len(everybody), "open_s": opened["seconds"],
            "server_cpu_s_to_open": round(_cpu_s(server.pid) - before, 1),
        }  # fmt: skip
        result |= _idle(server.pid, before_mb, len(everybody))
        if not options.deflate:
            result |= _load(made, folder, server, client, names, revoked, everybody)
    finally:
        for process in reversed(started):
            if process.poll() is None:
                process.terminate()
                process.wait(60)
    print(json.dumps(result), flush=True)  # noqa: T201
    return result


def _idle(server: int, before_mb: float, sockets: int) -> dict[str, Any]:
    """Say what sockets cost while nothing happens: memory, and the server's CPU with its rounds of rights."""
    time.sleep(5)
    cpu = _cpu_s(server)
    time.sleep(10)
    now = _rss_mb(server)
    return {
        "server_mb": round(now), "kb_per_idle_socket": round((now - before_mb) * 1024 / sockets, 1),
        "idle_server_cores": round((_cpu_s(server) - cpu) / 10, 3),
    }  # fmt: skip


def _load(
    made: Bench, folder: Path, server: subprocess.Popen[bytes], client: subprocess.Popen[bytes], names: list[str],
    revoked: list[dict[str, str]], everybody: list[dict[str, str]],
) -> dict[str, Any]:  # fmt: skip
    options, stops = made.options, any(facts["lab"] == "watchers" for facts in everybody)
    before = {"server": _cpu_s(server.pid), "client": _cpu_s(client.pid), "postgres": _cpu_s(made.postgres.pid)}
    made.runs += 1
    keys = ",".join(facts["token"].split("_")[1].split(".")[0] for facts in revoked)
    arguments = [
        "write", "--labs", str(len(set(names) - {"big"})), "--file", str(folder / "written"), "--rate",
        str(options.rate), "--seconds", str(options.seconds), "--revoke", keys, "--first", str(made.runs * 10_000_000),
    ]  # fmt: skip
    profiler = _profile(made, server.pid, folder.name)
    writer = made.child(
        "-m tests.bench.events_portal", *arguments, *["--big"] * ("big" in names), stdout=subprocess.PIPE
    )
    if stops:
        client.send_signal(signal.SIGUSR1)
    assert writer.stdout is not None
    if stops:
        time.sleep(min(STOPPED_S, options.seconds / 2))
        client.send_signal(signal.SIGUSR2)
    written = json.loads(writer.stdout.read().splitlines()[-1])
    if writer.wait():
        raise RuntimeError("the writer failed")
    time.sleep(SETTLE_S)
    spent = {name: round(_cpu_s(pid) - before[name], 1) for name, pid in
             (("server", server.pid), ("client", client.pid), ("postgres", made.postgres.pid))}  # fmt: skip
    peak = _peak_mb(server.pid)
    if profiler is not None:
        profiler.wait()
    client.terminate()
    left = hear(client, "left", 120)
    result = {
        "rate": options.rate, "seconds": options.seconds, "cpu_s": spent | {"writer": round(written["cpu_s"], 1)},
        "cores": round((sum(spent.values()) + written["cpu_s"]) / written["wall_s"], 2),
        "written_in_s": round(written["wall_s"], 1), "server_peak_mb": round(peak),
        "slurm_commands_called": made.calls(),
    }  # fmt: skip
    result |= _count(folder, everybody)
    if revoked:
        shut = [at for at, code in left["closed"].values() if code == 4401]
        latest = max(shut, default=float("inf")) - written["revoked_at"]
        result |= {"revoked": len(revoked), "closed_by_right": len(shut), "closed_after_s": round(latest, 2)}
        result["goal_met"] = result["goal_met"] and len(shut) == len(revoked) and latest < CLOSED_WITHIN_S
    if stops:
        result |= {"stopped_reading": STALLED, "got_resync": len(left["resyncs"])}
        result["goal_met"] = result["goal_met"] and len(left["resyncs"]) == STALLED
    ended = {int(number) for number, (_, code) in left["closed"].items() if code != 4401}
    result["closed_otherwise"] = len(ended - {int(number) for number in left["resyncs"]})
    return result


def _profile(made: Bench, pid: int, name: str) -> "subprocess.Popen[bytes] | None":
    program = made.options.profile
    if program is None:
        return None
    return subprocess.Popen(
        [program, "record", "-p", str(pid), "-d", str(made.options.seconds), "-r", "50", "-f", "raw", "-o",
         f"{program.parent}/{name}.raw"], stdout=subprocess.DEVNULL,
    )  # fmt: skip


# --- what was heard ------------------------------------------------------------------------------------------
def _count(folder: Path, everybody: list[dict[str, str]]) -> dict[str, Any]:
    """Hold what was heard against what was written: lags, losses, repeats, and what reached the wrong lab."""
    heard_by: dict[str, int] = {}
    for facts in everybody:
        heard_by[facts["lab"]] = heard_by.get(facts["lab"], 0) + 1
    written: dict[int, tuple[str, float, float, float]] = {}
    for line in (folder / "written").read_text().splitlines():
        key, lab, due, began, committed, _ = line.split(",")
        written[int(key)] = lab, float(due), float(began), float(committed)
    who, what, when = (_read(folder / name, kind) for name, kind in (("who", "i"), ("what", "q"), ("when", "d")))
    lags, after_hand_over, after_commit = array("d"), array("d"), array("d")
    seen, double, strange = set[int](), 0, 0
    for number, key, at in zip(who, what, when, strict=True):
        lab = everybody[number]["lab"]
        found = written.get(key)
        if lab == "watchers" or found is None:
            continue  # theirs is the resync; what opened the writer's batch is not counted
        strange += found[0] != lab
        pair = number << 40 | key
        double += pair in seen
        seen.add(pair)
        lags.append(at - found[1])
        after_hand_over.append(at - found[2])
        after_commit.append(at - found[3])
    expected = sum(heard_by[lab] for lab, *_ in written.values())
    result = {
        "events": len(written), "deliveries": expected, "lost": expected - len(seen), "double": double,
        "to_the_wrong_lab": strange, "lag_ms": percentiles(lags), "after_hand_over_ms": percentiles(after_hand_over),
        "after_commit_ms": percentiles(after_commit),
        "ingest_ms": percentiles(array("d", {found[3] - found[2] for found in written.values()})),
    }  # fmt: skip
    result["goal_met"] = not (result["lost"] or double or strange) and result["lag_ms"]["p99"] < GOAL_P99_MS
    return result


def _read(path: Path, kind: str) -> "array[Any]":
    found = array(kind)
    found.frombytes(path.read_bytes())
    return found


def percentiles(seconds: "array[float] | list[float]") -> dict[str, int]:
    ordered = sorted(seconds)
    if not ordered:
        return {"p50": 0, "p95": 0, "p99": 0, "max": 0}
    places = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
    return {name: round(1000 * ordered[int(share * (len(ordered) - 1))]) for name, share in places.items()} | {
        "max": round(1000 * ordered[-1])
    }


# --- processes -----------------------------------------------------------------------------------------------
def hear(client: "subprocess.Popen[bytes]", event: str, patience_s: float) -> dict[str, Any]:
    """Wait for a line that the client prints."""
    assert client.stdout is not None
    watchdog = subprocess.Popen(["sleep", str(patience_s)])
    try:
        for line in client.stdout:
            told: dict[str, Any] = json.loads(line)
            if told["event"] == event:
                return told
            if watchdog.poll() is not None:
                break
    finally:
        watchdog.kill()
        watchdog.wait()
    raise RuntimeError(f"the client did not tell: {event}")


def _cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process, of its children that run, and of those that ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    total = sum(int(each) for each in fields[11:15])
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for child in children:
        try:
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / TICKS_A_SECOND


def _rss_mb(pid: int) -> float:
    return _status_kb(pid, "VmRSS:") / 1024


def _peak_mb(pid: int) -> float:
    return _status_kb(pid, "VmHWM:") / 1024


def _status_kb(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


if __name__ == "__main__":
    sys.exit(main())
