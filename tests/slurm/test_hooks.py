"""Hooks, eventd, portal and reader on a real Slurm: each change is told once, whatever is killed on its way."""

import contextlib
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import demo
from tests.support.capabilities import ROOT
from tests.support.slurm import CLUSTER, HOOKS, Slurm, slurm

pytestmark = [pytest.mark.slurm, pytest.mark.outside, pytest.mark.one_database]

JOBCOMP, EPILOG, MAIL = HOOKS
LONG = "sleep 600"
PATIENCE_S = 240
MAILS = "--mail-type=ALL,ARRAY_TASKS"
_PREPARE = (
    "from tests import factories; from principals.services import ensure_cluster; "
    f"cluster = ensure_cluster({CLUSTER!r}); print(factories.make_service_token('ingest:events', cluster=cluster))"
)


@dataclass
class Site:
    """A Slurm with hooks, a portal with its reader, and eventd between them."""

    facility: Slurm
    data: Path
    settings: Path
    eventd: "subprocess.Popen[bytes]"

    def start_eventd(self) -> None:
        command = [sys.executable, "-m", "portal.cli.main", "eventd", "--config", str(self.settings)]
        self.eventd = subprocess.Popen(command, cwd=ROOT, env=demo.environment_of(self.data))

    def kill_eventd(self) -> None:
        self.eventd.kill()
        self.eventd.wait()

    def told(self, *jobs: int) -> dict[int, list[dict[str, Any]]]:
        """Return what was told of some jobs: payloads with the names of their events."""
        found: dict[int, list[dict[str, Any]]] = defaultdict(list)
        with contextlib.closing(sqlite3.connect(self.data / "gatehouse.sqlite3", timeout=30)) as database:
            rows = database.execute("SELECT name, payload FROM core_liveevent ORDER BY id")
            for name, payload in rows:
                said = json.loads(payload)
                if said.get("raw_id") in jobs:
                    found[said["raw_id"]].append({"name": name, **said})
        return found

    def wait_for_ends(self, *jobs: int) -> dict[int, list[dict[str, Any]]]:
        """Wait until the end of each job was told."""

        def are_told() -> bool:
            told = self.told(*jobs)
            return all(any(event["name"] == "job.ended" for event in told[job]) for job in jobs)

        self.wait_until(are_told, f"the ends of {jobs}")
        return self.told(*jobs)

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for the reader, which takes a tenth of the time at most: on a busy machine it is not soon."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, f"waited for {what}:\n{self.facility.logs()}"
            time.sleep(0.2)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with (
        tempfile.TemporaryDirectory(prefix="gatehouse-hooks-") as name,
        slurm(Path(name), hooks=True) as facility,
        contextlib.ExitStack() as stack,
    ):
        data = demo.empty_folder(facility.folder / "var")
        token = demo.manage(data, "shell", "--no-imports", "-c", _PREPARE).stdout.split()[-1]
        portal = stack.enter_context(demo.portal(data, DEMO="0"))
        portal.wait_for(portal.ready_line)
        key, settings = facility.folder / "eventd.token", facility.folder / "eventd.toml"
        key.write_text(token)
        key.chmod(0o600)
        settings.write_text(
            f'portal = "{portal.url}"\ncluster = "{CLUSTER}"\ntoken_file = "{key}"\nspool = "{facility.events}"\n'
        )
        reading = [sys.executable, "manage.py", "slurm_reader", "--cluster", CLUSTER, "--every", "5"]
        reader = subprocess.Popen(
            reading, cwd=ROOT, env=demo.environment_of(data) | facility.environment, stderr=subprocess.DEVNULL
        )
        stack.callback(reader.wait)
        stack.callback(reader.kill)
        running = Site(facility, data, settings, reader)
        running.start_eventd()
        stack.callback(running.kill_eventd)
        facility.wait_until(lambda: (facility.events / "new").is_dir(), "eventd to make its spool")
        running.wait_for_ends(facility.submit(script="true"))  # by then all of them are at work
        yield running


def names_of(events: list[dict[str, Any]]) -> Counter[str]:
    return Counter(event["name"] for event in events)


def print_lags(what: str, told: dict[int, list[dict[str, Any]]]) -> float:
    """Print and return the median from a job's end to its event, in seconds."""
    by_source = defaultdict(list)
    for events in told.values():
        for event in events:
            if event["name"] == "job.ended":
                by_source[event["source"]].append(event["lag_s"])
    lags = [lag for each in by_source.values() for lag in each]
    shares = ", ".join(
        f"{name} {len(each)} (median {statistics.median(each):.1f} s)" for name, each in by_source.items()
    )
    print(  # noqa: T201 - the figure is what the test is for
        f"\n{what}: {len(lags)} ends, median {statistics.median(lags):.1f} s, most {max(lags)} s; {shares}"
    )
    return statistics.median(lags)


def test_each_change_is_told_once(site: Site) -> None:
    submit, facility = site.facility.submit, site.facility
    pending = submit("--begin=now+1hour", MAILS, script=LONG)
    running, requeued = submit(MAILS, script=LONG), submit("--requeue", MAILS, script=LONG)
    ok = submit(MAILS, "--job-name=a|b\n\"x'", script="sleep 4")
    short, failed, killed = submit(script="true"), submit(script="sleep 3; exit 3"), submit(script="kill -9 $$")
    first = submit("--array=1-3", MAILS, script="sleep 2")
    for job in (running, requeued):
        facility.wait_for_queue(job, "RUNNING")
    facility.run("scancel", str(pending), str(running))
    facility.run("scontrol", "requeue", str(requeued))
    facility.wait_for_queue(requeued, "PENDING")
    site.wait_until(lambda: names_of(site.told(requeued)[requeued])["job.requeued"] == 1, "the requeue")
    facility.run("scancel", str(requeued))
    asked = ("sacct", "-X", "-n", "-P", "-o", "JobIDRaw", "-j", str(first))
    facility.wait_until(lambda: len(facility.run(*asked).split()) == 3, "the tasks")
    tasks = [int(task) for task in facility.run(*asked).split()]
    states = {
        pending: "CANCELLED", running: "CANCELLED", requeued: "CANCELLED", ok: "COMPLETED", short: "COMPLETED",
        failed: "FAILED", killed: "FAILED", **dict.fromkeys(tasks, "COMPLETED"),
    }  # fmt: skip
    told = site.wait_for_ends(*states)
    for job, state in states.items():
        counted = names_of(told[job])
        assert counted["job.ended"] == 1 and max(counted[name] for name in ("job.started", "job.requeued")) <= 1
        assert [event["state"] for event in told[job] if event["name"] == "job.ended"] == [state]
    (end,) = (event for event in told[failed] if event["name"] == "job.ended")
    assert (end["exit_code"], end["exit_signal"]) == (3, 0)
    (end,) = (event for event in told[killed] if event["name"] == "job.ended")
    assert (end["exit_code"], end["exit_signal"]) == (0, 9)
    assert names_of(told[requeued])["job.requeued"] == 1
    print_lags("All hooks, jobs that were new", told)
    assert not list((site.facility.events / "bad").iterdir())


def test_the_end_of_a_known_job_is_told_at_once(site: Site) -> None:
    jobs = [site.facility.submit(MAILS, script="sleep 15") for _ in range(8)]
    site.wait_until(lambda: len(site.told(*jobs)) == len(jobs), "their starts")
    told = site.wait_for_ends(*jobs)
    assert all(names_of(told[job])["job.ended"] == 1 for job in jobs)
    # Slurm's clock ticks whole seconds, and this machine may do other things, too.
    assert print_lags("All hooks, jobs that were known", told) < 3


@pytest.mark.parametrize("hooks", [(EPILOG, MAIL), (MAIL,), ()], ids=["epilog and mail", "mail", "nothing"])
def test_a_site_that_allows_less_is_told_all_the_same(site: Site, hooks: tuple[str, ...]) -> None:
    site.facility.use_hooks(*hooks)
    try:
        # What comes and goes between two looks of the reader, only its sweep finds by itself.
        jobs = [site.facility.submit(MAILS, script=f"sleep {seconds}") for seconds in (12, 14, 16, 18)]
        told = site.wait_for_ends(*jobs)
    finally:
        site.facility.use_hooks(*HOOKS)
    assert all(names_of(told[job])["job.ended"] == 1 for job in jobs)
    print_lags(f"With {', '.join(hooks) or 'no hook'}", told)
    if not hooks:
        assert {event["source"] for events in told.values() for event in events} == {"slurm_reader"}


def test_whatever_is_killed_each_end_is_told_once(site: Site) -> None:
    facility = site.facility
    jobs = [facility.submit(MAILS, script=f"sleep {seconds}") for seconds in (20, 21, 22, 23, 24, 25)]
    for job in jobs:
        facility.wait_for_queue(job, "RUNNING")
    # Slurm forgets what it has not saved: then the jobs are gone, and their numbers are given again.
    began_s, state = time.time(), facility.folder / "state/job_state"
    facility.wait_until(lambda: state.exists() and state.stat().st_mtime > began_s, "the controller to save its state")
    site.kill_eventd()
    facility.wait_for(jobs[0], "COMPLETED")
    facility.wait_until(lambda: bool(list((facility.events / "new").iterdir())), "a hook to write")
    facility.kill_controller()
    site.start_eventd()
    facility.restart_controller()
    more = [facility.submit(MAILS, script=f"sleep {seconds}") for seconds in (1, 2)]
    site.kill_eventd()
    site.start_eventd()
    told = site.wait_for_ends(*jobs, *more)
    facility.wait_until(lambda: not list((facility.events / "new").iterdir()), "the spool to be empty")
    told = site.told(*jobs, *more)
    assert all(names_of(told[job])["job.ended"] == 1 for job in (*jobs, *more))
    assert {event["state"] for events in told.values() for event in events if event["name"] == "job.ended"} == {
        "COMPLETED"
    }
    print_lags("With eventd and slurmctld killed", told)
