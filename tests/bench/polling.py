"""Three ways to wait for jobs, side by side: `make bench-polling [JOBS=100]` prints JSON lines.

A real Slurm with hooks and the services profile, all started here. For as many jobs as are asked for, one process a job
waits (a) in a `while squeue -h -j ID; sleep 2` loop, (b) in `gatehouse wait ID`, (c) in the loop of (a), with the
portal's squeue first in PATH. The controller's own counters (sdiag, by user) say who asked it how much: those who wait
are one user and the reader another, so neither is guessed. What the reader asks of a quiet queue is measured first.
Those who wait are nice: at a site they do not share the servers' cores.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from telemetry.engine.slurm.statistics import read_statistics
from tests.support.services import find_program
from tests.support.site import OWNER, READER, ROOT, Site, services_site, wait_for_all
from tests.support.slurm import find_missing, slurm

SLEEP_S, JOB_S, BASELINE_S = 2, 5, 30
APART_S = 0.1  # between the starts of two who wait
GOAL = 0.99
PATIENCE_S = 900.0
LOOP = 'while [ -n "$(squeue -h -j {job} 2>/dev/null)" ]; do sleep {sleep}; done'
WAYS = ("squeue loop", "gatehouse wait", "squeue loop, shim first")


@dataclass
class Returned:
    """How a process that waited ended."""

    status: int
    at: float
    cpu_s: float
    peak_mb: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100)
    options = parser.parse_args()
    if missing := find_missing() or next(
        (name for name in ("initdb", "redis-server") if find_program(name) is None), ""
    ):
        print(f"{missing} is missing here: nothing was measured.", file=sys.stderr)  # noqa: T201
        return 1
    with (
        tempfile.TemporaryDirectory(prefix="gatehouse-polling-") as name,
        slurm(Path(name), hooks=True) as facility,
        services_site(facility) as site,
    ):
        commands = _install(site)
        wait_for_all(site, [site.submit(1)], PATIENCE_S)  # by then all of them are at work
        _tell(what="one waiter", **_cost_of_one(site, commands))
        quiet = _watch_quiet(site)
        _tell(what="a quiet queue", seconds=BASELINE_S, **quiet)
        results = [_run(site, commands, way, options.jobs, quiet["reader_rpcs"] / BASELINE_S) for way in WAYS]
    first = results[0]["rpcs_per_job"]
    saved = {result["way"]: round(1 - result["rpcs_per_job"] / first, 4) for result in results[1:]}
    is_met = all(share >= GOAL for share in saved.values())
    _tell(what="fewer calls than the squeue loop", goal=GOAL, **saved, goal_met=is_met)
    return 0 if is_met else 1


def _install(site: Site) -> str:
    """Put the `gatehouse` command where an agent finds it; return its folder."""
    folder = site.facility.folder / "bin"
    folder.mkdir()
    command = folder / "gatehouse"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m portal.cli.main "$@"\n')
    command.chmod(0o755)
    return str(folder)


def _start(site: Site, commands: str, way: str, job: int) -> "subprocess.Popen[bytes]":
    real = site.facility.environment
    path = f"{commands}:{real['PATH']}"
    if way == WAYS[2]:
        path = f"{ROOT}/deploy/agent-path:{path}"
    environment = real | {
        "PATH": path, "PYTHONPATH": str(ROOT), "GATEHOUSE_URL": site.url, "GATEHOUSE_TOKEN": site.keys["agent"],
    }  # fmt: skip
    script = f"exec gatehouse wait {job}" if way == WAYS[1] else LOOP.format(job=job, sleep=SLEEP_S)
    return subprocess.Popen(
        ["nice", "-n", "10", "/bin/sh", "-c", script], env=environment, user=OWNER, cwd="/", stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _await(process: "subprocess.Popen[bytes]", job: int, into: dict[int, Returned]) -> None:
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    into[job] = Returned(process.returncode, time.time(), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def _asked(site: Site) -> dict[str, int]:
    """Return how often the controller was asked, by login name."""
    return {name: asked.calls for name, asked in read_statistics(site.facility.run("sdiag")).by_user.items()}


def _since(site: Site, before: dict[str, int]) -> dict[str, int]:
    grown = {name: calls - before.get(name, 0) for name, calls in _asked(site).items()}
    # The rest is Slurm's own: its node says how jobs go, and this bench asks for the counters.
    return {"waiter_rpcs": grown.get(OWNER, 0), "reader_rpcs": grown.get(READER, 0), "other_rpcs": grown.get("root", 0)}


def _watch_quiet(site: Site) -> dict[str, int]:
    before = _asked(site)
    time.sleep(BASELINE_S)
    return _since(site, before)


def _cost_of_one(site: Site, commands: str) -> dict[str, Any]:
    """Say what one `gatehouse wait` takes for a job of a few seconds, CPU and memory, and a loop with the shim."""
    job = site.submit(JOB_S)
    into: dict[int, Returned] = {}
    _await(_start(site, commands, WAYS[1], job), job, into)
    wait = into[job]
    began = time.monotonic()
    shim = _start(site, commands, WAYS[2], job)  # which is over: it asks once
    _await(shim, job, into)
    return {
        "wait_status": wait.status, "wait_cpu_s": round(wait.cpu_s, 2), "wait_peak_mb": round(wait.peak_mb, 1),
        "shim_s": round(time.monotonic() - began, 2), "shim_cpu_s": round(into[job].cpu_s, 2),
        "shim_peak_mb": round(into[job].peak_mb, 1),
    }  # fmt: skip


def _run(site: Site, commands: str, way: str, count: int, quiet_rate: float) -> dict[str, Any]:
    """Let `count` jobs be waited for in one way; say what that cost."""
    jobs = [site.submit(JOB_S) for _ in range(count)]
    before, began = _asked(site), time.monotonic()
    into: dict[int, Returned] = {}
    threads = []
    for job in jobs:
        process = _start(site, commands, way, job)
        threads.append(threading.Thread(target=_await, args=(process, job, into)))
        threads[-1].start()
        time.sleep(APART_S)
    wait_for_all(site, jobs, PATIENCE_S)
    for thread in threads:
        thread.join(PATIENCE_S)
    seconds = time.monotonic() - began
    asked = _since(site, before)
    # What the reader asks anyway, for as long, is no cost of waiting.
    more_by_reader = max(0.0, asked["reader_rpcs"] - quiet_rate * seconds)
    lags = sorted(into[job].at - site.ended_at(job) for job in jobs)
    p95 = lags[int(0.95 * (count - 1))]
    result = {
        "way": way, "jobs": count, "seconds": round(seconds, 1), **asked,
        "reader_rpcs_if_quiet": round(quiet_rate * seconds), "rpcs_per_job": round(asked["waiter_rpcs"] / count, 3),
        "rpcs_per_job_with_reader": round((asked["waiter_rpcs"] + more_by_reader) / count, 3),
        "wrong_status": sum(each.status != 0 for each in into.values()),
        "early": sum(lag < 0 for lag in lags),
        "end_to_return_s": {"median": round(statistics.median(lags), 2), "p95": round(p95, 2)},
        "waiters_cpu_s": round(sum(each.cpu_s for each in into.values()), 1),
        "waiter_peak_mb": round(statistics.median(each.peak_mb for each in into.values()), 1),
        "load": os.getloadavg()[0],
    }  # fmt: skip
    _tell(**result)
    return result


def _tell(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
