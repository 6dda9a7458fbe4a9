"""`gatehouse wait` against a portal under uvicorn: told of changes, ended as the job ended, whatever it does."""

import contextlib
import json
import queue
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.capabilities import ROOT
from tests.support.web import Web, serving

PATIENCE_S = 60
TIMES = "2026-07-01T10:00:00|2026-07-01T10:01:00"
# Fills the server's database, then stores the rows of each line that it reads: as a reader in another process does.
FEED = """
import json, sys
from datetime import timedelta
from portal.core import clock
from tests import factories
from telemetry.models import SlurmReader
from tests.telemetry.logs import ingest, iso, live_row, text
from principals.models import AgentToken
from principals.services.tokens import issuing as tokens
owner, other, cluster = factories.make_user("colleague"), factories.make_user("other"), factories.make_cluster("aster")
lab = factories.make_lab("okafor", pi=owner, member=other)
factories.make_cluster_user(cluster, owner)
factories.make_cluster_user(cluster, other)
factories.make_account(cluster, lab)
agent = factories.make_agent(lab, owner, "okafor-docking")
print(factories.make_token(agent), flush=True)
mine, submitted = {"User": "colleague", "Account": "okafor_lab"}, {}
def row_of(number, state, values):
    return live_row(number, state, **mine | {"Submit": submitted.setdefault(number, iso(60))} | values)
for line in sys.stdin:
    rows = json.loads(line)
    if rows == "silence":
        SlurmReader.objects.update_or_create(cluster=cluster, defaults={"looked": clock.now() - timedelta(minutes=9)})
    elif rows == "speech":
        SlurmReader.objects.update(looked=clock.now())
    elif rows == "revoke":
        tokens.revoke_agent_token(actor=factories.actor_of(owner), token=AgentToken.objects.get())
    else:
        ingest(cluster, text(*(row_of(*row) for row in rows)))
    print("done", flush=True)
"""
SOON = """
import sys
from portal.cli import accounting, wait
from portal.cli.main import main
wait.UNKNOWN_S, wait.AWAY_S, wait.UNKNOWN_EVERY_S, accounting.EVERY_S = 6.0, 3.0, 1.0, 6.0
sys.exit(main())
"""


@dataclass
class Portal:
    web: Web
    feeding: "subprocess.Popen[str]"
    token: str = ""
    number: int = 0

    def feed(self, *rows: tuple[Any, ...] | str) -> None:
        """Store rows: (number, state) or (number, state, columns of sacct)."""
        full = [(*row, {})[:3] for row in rows if not isinstance(row, str)] or rows[0]
        assert self.feeding.stdin is not None and self.feeding.stdout is not None
        self.feeding.stdin.write(json.dumps(full) + "\n")
        self.feeding.stdin.flush()
        assert self.feeding.stdout.readline() == "done\n"

    def new(self) -> int:
        """A number that no test used."""
        self.number += 100
        return self.number


@contextlib.contextmanager
def fed(folder: Path) -> Iterator[Portal]:
    with serving(folder) as web:
        command = [sys.executable, "-W", "ignore", "-c", f"import django; django.setup()\n{FEED}"]
        feeding = subprocess.Popen(
            command, cwd=ROOT, env=web.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert feeding.stdout is not None
            yield Portal(web, feeding, feeding.stdout.readline().strip())
        finally:
            feeding.kill()
            feeding.communicate()


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    with fed(tmp_path_factory.mktemp("portal") / "var") as made:
        yield made


@dataclass
class Wait:
    """A running `gatehouse wait --json`; its changes are read as they are printed."""

    process: "subprocess.Popen[str]"
    told: "queue.SimpleQueue[str]" = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.told.put(line)

    def next(self) -> tuple[str, str, bool]:
        """The next change: of which job, its state, whether it is over."""
        change = json.loads(self.told.get(timeout=PATIENCE_S))
        return change["job"], change["state"], change["over"]

    def end(self) -> tuple[int, str]:
        """The exit status and what stands on stderr; every change was read."""
        status = self.process.wait(PATIENCE_S)
        assert self.process.stderr is not None
        said = self.process.stderr.read()
        assert self.told.empty()
        return status, said


@dataclass
class Waits:
    portal: Portal
    programs: Path
    started: list[Wait] = field(default_factory=list)

    def __call__(self, *arguments: object, soon: bool = False, **environment: str) -> Wait:
        """Start one; `soon`: what takes a minute takes some seconds."""
        program = ["-c", SOON] if soon else ["-m", "portal.cli.main"]
        command = [sys.executable, *program, "wait", *map(str, arguments), "--json"]
        own = {
            "PATH": str(self.programs), "PYTHONPATH": str(ROOT), "GATEHOUSE_URL": self.portal.web.url,
            "GATEHOUSE_TOKEN": self.portal.token,
        }  # fmt: skip
        process = subprocess.Popen(
            command, cwd=ROOT, env=own | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.started.append(Wait(process))
        return self.started[-1]

    def fake_sacct(self, *lines: str) -> Path:
        """A sacct that prints lines and notes each call; return where it notes them."""
        program, calls = self.programs / "sacct", self.programs / "calls"
        printed = "\\n".join(lines)
        program.write_text(f"#!/bin/sh\necho \"$@\" >> '{calls}'\nprintf '{printed}\\n'\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        calls.touch()
        return calls


@pytest.fixture
def waits(portal: Portal, tmp_path: Path) -> Iterator[Waits]:
    (tmp_path / "programs").mkdir()
    made = Waits(portal, tmp_path / "programs")
    yield made
    for each in made.started:
        if each.process.poll() is None:
            each.process.kill()
        each.process.communicate()


def test_it_tells_each_change_and_ends_as_the_job_ended(portal: Portal, waits: Waits) -> None:
    job = portal.new()
    name = str(job)
    portal.feed((job, "PENDING"))
    wait = waits(job)
    assert wait.next() == (name, "PENDING", False)
    portal.feed((job, "RUNNING"))
    assert wait.next() == (name, "RUNNING", False)
    portal.feed((job, "FAILED", {"ExitCode": "3:0"}))
    assert wait.next() == (name, "FAILED", True)
    assert wait.end() == (3, "")


@pytest.mark.parametrize(
    ("state", "code", "status"),
    [("COMPLETED", "0:0", 0), ("FAILED", "0:9", 137), ("CANCELLED", "0:15", 201), ("TIMEOUT", "0:0", 202),
     ("OUT_OF_MEMORY", "0:125", 203)],
)  # fmt: skip
def test_a_job_that_is_over_answers_at_once(portal: Portal, waits: Waits, state: str, code: str, status: int) -> None:
    job = portal.new()
    portal.feed((job, state, {"ExitCode": code}))
    wait = waits(job)
    assert wait.next() == (str(job), state, True)
    assert wait.end() == (status, "")


def test_an_array_says_its_counts_and_ends_with_its_worst_task(portal: Portal, waits: Waits) -> None:
    array = portal.new()

    def task(number: int, state: str, **values: str) -> tuple[int, str, dict[str, str]]:
        raw = array if number == 3 else array + number
        return raw, state, {"JobID": f"{array}_{number}", **line, **values}

    line = {"SubmitLine": "sbatch --array=1-3 job.sh"}
    portal.feed((array, "PENDING", {"JobID": f"{array}_[1-3]", **line}))
    whole, last = waits(array), waits(f"{array}_3")
    assert whole.next() == (str(array), "PENDING", False)
    assert last.next() == (f"{array}_3", "PENDING", False)
    portal.feed(task(1, "RUNNING"), task(2, "RUNNING"), (array, "PENDING", {"JobID": f"{array}_[3]", **line}))
    assert whole.next() == (str(array), "RUNNING", False)
    portal.feed(task(1, "FAILED", ExitCode="4:0"), task(2, "COMPLETED"), task(3, "RUNNING"))
    assert whole.next() == (str(array), "RUNNING", False)
    portal.feed(task(3, "COMPLETED"))
    assert whole.next() == (str(array), "FAILED", True)
    assert whole.end() == (4, "")
    heard = [last.next() for _ in range(last.told.qsize() or 1)]
    assert (heard[-1], last.end()[0]) == ((f"{array}_3", "COMPLETED", True), 0)


def test_any_returns_with_the_first_and_all_with_the_worst(portal: Portal, waits: Waits) -> None:
    one, two = portal.new(), portal.new()
    portal.feed((one, "RUNNING"), (two, "RUNNING"))
    first, both = waits(one, two, "--any"), waits(one, two)
    for wait in (first, both):
        assert {wait.next()[:2] for _ in range(2)} == {(str(one), "RUNNING"), (str(two), "RUNNING")}
    portal.feed((two, "FAILED", {"ExitCode": "2:0"}))
    assert first.next()[0] == both.next()[0] == str(two)
    assert first.end() == (2, "")
    portal.feed((one, "COMPLETED"))
    assert (both.next()[0], both.end()) == (str(one), (2, ""))


def test_a_job_that_is_not_known_yet_is_waited_for(portal: Portal, waits: Waits) -> None:
    job = portal.new()
    wait = waits(job)
    assert wait.process.stderr is not None
    assert f"Not known yet: {job}." in wait.process.stderr.readline()
    portal.feed((job, "RUNNING"))
    assert wait.next() == (str(job), "RUNNING", False)
    portal.feed((job, "COMPLETED"))
    assert (wait.next()[1], wait.end()[0]) == ("COMPLETED", 0)


OLD = {
    "Submit": "2026-01-05T10:00:00", "Eligible": "2026-01-05T10:00:00", "Start": "2026-01-05T10:00:00",
    "End": "2026-01-05T10:01:00", "ExitCode": "9:0",
}  # fmt: skip


def test_a_number_that_is_given_again_is_not_taken_for_the_old_job(portal: Portal, waits: Waits) -> None:
    job = portal.new()
    portal.feed((job, "FAILED", OLD))
    now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - 60))
    waits.fake_sacct(f"{job}|FAILED|9:0|{OLD['Submit']}|{OLD['End']}", f"{job}|RUNNING|0:0|{now}|Unknown")
    wait = waits(job)
    assert wait.process.stderr is not None
    assert "ended more than a day ago" in wait.process.stderr.readline()
    portal.feed((job, "RUNNING", {"Submit": now}))
    assert wait.next() == (str(job), "RUNNING", False)
    portal.feed((job, "FAILED", {"Submit": now, "ExitCode": "4:0"}))
    assert (wait.next(), wait.end()[0]) == ((str(job), "FAILED", True), 4)


def test_a_job_that_ended_long_ago_is_believed_where_nobody_knows_a_newer_one(portal: Portal, waits: Waits) -> None:
    job = portal.new()
    portal.feed((job, "FAILED", OLD))
    wait = waits(job, soon=True)
    assert wait.next() == (str(job), "FAILED", True)
    status, said = wait.end()
    assert (status, "Is there a newer job of that number?" in said) == (9, True)


def test_its_own_time_limit_has_its_own_status(portal: Portal, waits: Waits) -> None:
    job = portal.new()
    portal.feed((job, "RUNNING"))
    wait = waits(job, "--timeout", 8)
    assert wait.next()[1] == "RUNNING"
    assert wait.end() == (124, f"Not over in time: {job}.\n")


def test_a_portal_that_is_killed_and_comes_back_tells_all_that_was_missed_once(portal: Portal, waits: Waits) -> None:
    job = portal.new()
    calls = waits.fake_sacct(f"{job}|RUNNING|0:0|2026-07-01T10:00:00|Unknown")
    portal.feed((job, "PENDING"))
    wait = waits(job)
    assert wait.next()[1] == "PENDING"
    portal.web.kill()
    portal.feed((job, "RUNNING"))
    portal.feed((job, "FAILED", {"ExitCode": "7:0"}))
    portal.web.start()
    assert [wait.next()[1:] for _ in range(2)] == [("RUNNING", False), ("FAILED", True)]
    assert wait.end() == (7, "")
    assert calls.read_text() == ""  # a restart is no reason to ask anybody


def test_without_a_portal_accounting_is_asked_once_for_all_jobs_and_it_says_so(portal: Portal, waits: Waits) -> None:
    calls = waits.fake_sacct(
        f"1|COMPLETED|0:0|{TIMES}", f"2_1|FAILED|6:0|{TIMES}", f"2_2|COMPLETED|0:0|{TIMES}"
    )  # fmt: skip
    began = time.monotonic()
    wait = waits("1", "2", "2_2", "--cluster", "aster", GATEHOUSE_URL="http://127.0.0.1:1")
    assert [wait.next() for _ in range(3)] == [
        ("1", "COMPLETED", True),
        ("2", "FAILED", True),
        ("2_2", "COMPLETED", True),
    ]
    status, said = wait.end()
    assert status == 6
    assert said.startswith("http://127.0.0.1:1 does not answer") and "sacct is asked once a minute" in said
    assert time.monotonic() - began < 30
    assert calls.read_text().splitlines() == ["-X -n -P --clusters=aster -o JobID,State,ExitCode,Submit,End -j 1,2"]


def test_a_portal_that_stays_away_is_replaced_until_it_is_back(portal: Portal, waits: Waits) -> None:
    job = portal.new()
    waits.fake_sacct(f"{job}|PENDING|0:0|2026-07-01T10:00:00|Unknown")
    portal.feed((job, "PENDING"))
    wait = waits(job, soon=True)
    assert wait.next()[1] == "PENDING"
    calls = waits.fake_sacct(f"{job}|RUNNING|0:0|2026-07-01T10:00:00|Unknown")
    portal.web.kill()
    assert wait.next()[1] == "RUNNING"
    portal.feed((job, "COMPLETED"))
    portal.web.start()
    assert wait.next()[1] == "COMPLETED"
    status, said = wait.end()
    assert status == 0
    assert "sacct is asked once a minute until it can tell." in said and said.endswith("The portal is back.\n")
    assert "-X -n -P --clusters=aster" in calls.read_text()


def test_accounting_ends_a_wait_that_the_portal_cannot(portal: Portal, waits: Waits) -> None:
    """Its reader is silent; or it never saw the job."""
    job, unseen = portal.new(), portal.new()
    waits.fake_sacct(f"{job}|FAILED|0:9|{TIMES}", f"{unseen}|COMPLETED|0:0|{TIMES}")
    portal.feed((job, "RUNNING"))
    portal.feed("silence")
    try:
        wait = waits(job)
        assert [wait.next()[1] for _ in range(2)] == ["RUNNING", "FAILED"]
        status, said = wait.end()
        assert (status, "The portal has not looked at aster since" in said) == (137, True), said
    finally:
        portal.feed("speech")
    wait = waits(unseen, soon=True)
    assert wait.next()[1] == "COMPLETED"
    status, said = wait.end()
    assert (status, f"The portal does not know of {unseen}." in said) == (0, True), said


def test_a_job_that_nobody_knows_is_refused_after_the_reader_had_its_time(portal: Portal, waits: Waits) -> None:
    waits.fake_sacct()
    status, said = waits(7_000_001, soon=True).end()
    assert status == 125
    assert said.startswith("Not known yet: 7000001.") and "Nobody knows of 7000001. [job_unknown]" in said


def test_without_portal_and_accounting_it_cannot_wait(waits: Waits) -> None:
    status, said = waits("1", GATEHOUSE_URL="http://127.0.0.1:1").end()
    assert status == 125
    assert said.endswith("sacct is not in PATH.\n")


@pytest.mark.parametrize(
    ("arguments", "environment", "told"),
    [
        (("7.batch",), {}, "job_id_malformed"),
        (("7",), {"GATEHOUSE_TOKEN": "", "GATEHOUSE_TOKEN_FILE": "/nowhere"}, "No token"),
        (("7",), {"GATEHOUSE_TOKEN": "gha_nonsense"}, "token_malformed"),
        (("7",), {"GATEHOUSE_URL": "nowhere"}, "GATEHOUSE_URL"),
    ],
)
def test_what_cannot_be_waited_for_is_refused_at_once(
    waits: Waits, arguments: tuple[str, ...], environment: dict[str, str], told: str
) -> None:
    status, said = waits(*arguments, **environment).end()
    assert (status, told in said) == (125, True), said


def test_a_token_that_is_revoked_ends_the_wait_with_the_reason(tmp_path: Path) -> None:
    with fed(tmp_path / "var") as portal:
        (tmp_path / "programs").mkdir()
        waits = Waits(portal, tmp_path / "programs")
        portal.feed((1, "RUNNING"))
        wait = waits(1)
        try:
            assert wait.next()[1] == "RUNNING"
            portal.feed("revoke")
            status, said = wait.end()
            assert (status, "The token is revoked." in said) == (125, True), said
        finally:
            wait.process.kill()
            wait.process.communicate()


def test_ctrl_c_ends_it_quietly(portal: Portal, waits: Waits) -> None:
    job = portal.new()
    portal.feed((job, "RUNNING"))
    wait = waits(job)
    wait.next()
    wait.process.send_signal(2)
    assert wait.end() == (130, "")
