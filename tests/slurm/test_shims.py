"""`gatehouse squeue` and `gatehouse sacct` print what Slurm's own commands print, byte for byte, on a real Slurm."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pytest_django.live_server_helper import LiveServer

from principals.actors import SYSTEM_ACTOR
from telemetry.engine.slurm.printing.times import read_duration
from telemetry.models import InventoryReading, Job, QueueSheet
from telemetry.services import Commands, Reader
from telemetry.services.shims import CALLS
from tests import factories
from tests.slurm.conftest import LONG
from tests.support.capabilities import ROOT
from tests.support.slurm import ACCOUNT, CLUSTER, USERS, Slurm

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slurm]

ME, OTHER = USERS
NAME = "a|b, “c” ünïcödé and much more of it"
TRIES = 10  # until nothing changes between two calls of the real command
DURATION = re.compile(rb"(?<![\w:.-])(?:\d+-)?\d+(?::\d\d)+(?!\d)")  # and no time of a day, which stands behind a T


@dataclass(frozen=True)
class Jobs:
    """Job ids by what they are."""

    running: int
    array: int
    begun: int
    completed: int
    failed: int
    cancelled: int
    foreign: int
    gone: int
    never: int  # cancelled before it could begin
    requeued: int

    def fill(self, line: str) -> list[str]:
        return line.format_map(vars(self) | {"year": time.gmtime().tm_year}).split("\t")


@pytest.fixture(scope="module")
def jobs(facility: Slurm) -> Iterator[Jobs]:
    """Jobs of every kind, of two users; all that can end has ended and nothing waits for room."""
    submit, run = facility.submit, facility.run
    running = submit(f"--job-name={NAME}", "--comment=one | more", script=LONG)
    array, cancelled = submit("--array=1-9%2", "--job-name=sweep", script=LONG), submit(script=LONG)
    made = Jobs(
        running=running, array=array, cancelled=cancelled,
        begun=submit("--begin=now+1hour", "--job-name=  two  words  ", script=LONG),
        completed=submit(script="true"), failed=submit(script="exit 3"), foreign=submit(script=LONG, user=OTHER),
        gone=4_000_000, never=submit("--begin=now+1hour", script=LONG), requeued=submit("--requeue", script=LONG),
    )  # fmt: skip
    waiting = [
        submit(f"--dependency=afterok:{running}", "--partition=shared,test", script="true"),
        submit("--time=1-00:00:00", script="true"),
        submit("--hold", "--job-name=new\nline", "--nice=5", script="true"),
        submit("--ntasks=800", script="true"),
    ]
    facility.wait_for(cancelled, "RUNNING")
    facility.wait_for(made.requeued, "RUNNING")
    run("scancel", str(cancelled), str(made.never))
    run("scontrol", "requeue", str(made.requeued))
    for job in (cancelled, made.never):
        facility.wait_for(job, "CANCELLED")
    facility.wait_for(made.requeued, "REQUEUED", "PENDING")
    for job in (made.completed,):
        facility.wait_for(job, "COMPLETED")
    facility.wait_until(lambda: run("squeue", "-h", "-t", "R", "-j", f"{array}").count("\n") == 2, "the array")
    facility.wait_until(lambda: not run("squeue", "-h", "-t", "CG,CF"), "everything to settle")
    yield made
    run("scancel", *map(str, (running, array, made.begun, made.foreign, made.requeued, *waiting)))


@pytest.fixture
def reader(facility: Slurm) -> Reader:
    cluster = factories.make_cluster(CLUSTER)
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=Commands(environment=facility.environment))
    reader.meet()
    reader.look()  # the owner has no agent yet: nothing of it is kept
    return reader


@pytest.fixture
def token(reader: Reader) -> str:
    owner = factories.make_user(ME)
    lab = factories.make_lab("okafor", pi=owner)
    cluster_user = factories.make_cluster_user(reader.cluster, owner)
    cluster_user.user = owner
    cluster_user.save()
    return factories.make_token(factories.make_agent(lab, owner))


def hide(printed: bytes) -> bytes:
    """Return what was printed with the digits of its durations hidden, which grow by the second: not how many."""
    return DURATION.sub(lambda found: re.sub(rb"\d", b"#", found[0]), printed)


@dataclass(frozen=True)
class Node:
    """A login node: the command as an agent's process runs it, and Slurm's own for the same user."""

    facility: Slurm
    reader: Reader
    url: str
    token: str
    folder: Path  # with nothing in it: what is left to the real command is not found

    def ours(self, *command: str, path: str = "", **environment: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "portal.cli.main", *command], user=ME, cwd="/tmp", check=False, timeout=60,  # noqa: S108
            env={
                "GATEHOUSE_URL": self.url, "GATEHOUSE_TOKEN": self.token, "PYTHONPATH": str(ROOT), "TZ": "UTC",
                "PATH": path or str(self.folder), "GATEHOUSE_NEW_S": "0", **environment,
            },
            capture_output=True,
        )  # fmt: skip

    def real(self, *command: str, **environment: str) -> tuple[bytes, int]:
        ran = subprocess.run(
            command, env=self.facility.environment | environment, user=ME, cwd="/tmp", capture_output=True, check=False,  # noqa: S108
        )  # fmt: skip
        return hide(ran.stdout), ran.returncode

    def rows(self) -> list[object]:
        """Look at the queue, return what is known of it."""
        self.reader.look()
        return list(QueueSheet.objects.values_list("rows", flat=True))

    def compare(self, *command: str, by: str = "s ago.\n", **environment: str) -> str:
        """Compare what both print of the same moment: the real command says the same before and after ours.

        Return what differs, "" where nothing does; `by` is what ours says of where it has it from.
        """
        for _ in range(TRIES):
            CALLS.forget()
            before = self.rows(), self.real(*command, **environment)
            ours = self.ours(*command, **environment)
            is_late = b"does not answer" in ours.stderr  # on a machine with much else to do
            if before == (self.rows(), self.real(*command, **environment)) and not is_late:
                is_same = (hide(ours.stdout), ours.returncode) == before[1] and by in ours.stderr.decode()
                return "" if is_same else f"{command}: {ours} \nis not {before[1]}"
        return f"{command} never stood still"


@pytest.fixture
def node(
    facility: Slurm, reader: Reader, token: str, live_server: LiveServer, jobs: Jobs, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, settings: object,
) -> Node:  # fmt: skip
    settings.SHARED_CALLS = [CLUSTER]  # type: ignore[attr-defined]
    for name, value in facility.environment.items():
        monkeypatch.setenv(name, value)
    reader.take_inventory(InventoryReading.Kind.PARTITIONS)
    reader.sweep()  # finds what ended before anybody looked
    facility.wait_until(lambda: _is_known(reader, jobs), "the portal to know the jobs")
    return Node(facility, reader, live_server.url, token, tmp_path)


def _is_known(reader: Reader, jobs: Jobs) -> bool:
    reader.look()
    return Job.objects.filter(raw_id__in=[jobs.running, jobs.completed, jobs.failed]).count() == 3


# One a line, words divided by tabs: what is answered from what the portal knows, without any command of Slurm.
PRINTED = """\
squeue	--me
squeue	-u	daemon
squeue	-hudaemon
squeue	--user=daemon	--noheader
squeue	-j	{running}
squeue	-j{running}
squeue	-h	-j	{running},{begun}
squeue	--jobs={array},{begun}
squeue	--jobs	{array}	-h	-t	PD
squeue	-hj{completed}
squeue	-j	{completed}	-t	all
squeue	-j	{failed}	-t	F,CD	-o	%i %T %r
squeue	-j	{cancelled}	--states=CA
squeue	--me	-t	all
squeue	--me	-t	PENDING
squeue	--me	-t	pd,r
squeue	--me	-t	running	-h	-o	%A
squeue	-u	daemon	-A	chem	-p	shared
squeue	-u	daemon	-A	CHEM,other
squeue	-u	daemon	-p	test
squeue	-u	daemon	-p	none
squeue	-u	daemon	-n	sweep
squeue	-u	daemon	-n	Sweep,wrap	-h
squeue	--me	-a
squeue	--me	-o	%i
squeue	--me	-h	-o	%.10i|%9P|%j|%.3t|%M
squeue	--me	-h	-o	job %A is %T because %r since %V
squeue	--me	-t	all	-o	%a %A %b %B %c %C %D %e %E %f %F %i
squeue	--me	-t	all	-o	%j#%k#%K#%l#%L#%m#%M#%N#%o#%P#%q#%Q
squeue	--me	-t	all	-o	%r_%R_%S_%t_%T_%u_%U_%v_%V_%y_%Z
squeue	--me	-t	all	-o	%.5j|%5j|%.30j|%30j|%.4R|%4R|%.2N|%2T|%.1M
squeue	--me	-O	JobID,Name,State,TimeUsed,TimeLimit
squeue	--me	-h	-O	JobArrayID:.20,UserName:5,ReasonList:.8,NodeList:.1
squeue	--me	-t	all	-O	JobID:|,Name:|,State:|,Reason:|,StartTime:|,EndTime:|
squeue	--me	-O	tres-alloc:60,NumCPUs:.4 ,numtasks:3,restartcnt:2x
squeue	--me	-t	all	-O	SubmitTime:.25 ,TimeLeft:12,timeleft:.2 ,Dependency:8
"""
ACCOUNTS = """\
sacct	-X
sacct	-Xn
sacct	-X	-P
sacct	-XPn	-o	jobid,state
sacct	--allocations	--parsable2	--noheader	--format=JobIDRaw,State
sacct	-X	-u	daemon	-S	today	-E	now	-o	JobID,Start,End,Elapsed,State%25
sacct	-X	-S	now-2hours	-o	jobid,submit,eligible,start,end
sacct	-X	-P	-S	now-1days	-E	now-1hours
sacct	-X	-j	{running}
sacct	-X	-j	{begun},{never}	-o	jobid,eligible,start,end,elapsed,state,exitcode
sacct	-X	-n	-P	-j	{completed}
sacct	-Xnj{completed}	-o	State
sacct	-X	-j	{completed},{failed}	-o	JobID,State%20,ExitCode,Elapsed,JobName%5
sacct	-X	-j	{failed},{failed},{completed}
sacct	-X	-j	{cancelled}	-o	jobid%3,state%-12,user%2,jobidraw%-3,account%1
sacct	-X	-P	-j	{cancelled},{never}	-o	JobID,State,ExitCode,Start,End
sacct	-X	-j	{requeued}	-o	jobid,state,submit,start
sacct	-X	-j	{array}	-o	jobid%20,jobidraw,state
sacct	-X	-j	{array}_1,{array}_2	-o	jobid,state
sacct	-X	-P	-j	{running}	-o	jobname,workdir,submitline,nodelist,nnodes,ncpus,qos,timelimit,timelimitraw
sacct	-X	-j	{running}	-o	jobname%-9,workdir%4,submitline,nodelist%2,nnodes%1,ncpus%1,qos,timelimit%4
sacct	-X	-j	{failed}	-o	elapsedraw,cputimeraw,cputime,timelimitraw%1,partition,alloccpus,account
sacct	-X	-j	{failed}	-S	now-2hours	-E	now+1hours
sacct	-X	-j	{failed}	-E	now-1days
sacct	-X	-P	-n	-S	{year}-01-01T00:00	-E	{year}-01-01T00:00:01	-j	{failed}
"""
SHARED = """\
squeue	--me	-l
squeue	-u	daemon	-r	-h
squeue	--me	-S	i	-o	%i %j
squeue	--me	-h	-o	%p %g
squeue	-j	{array}
squeue	-j	{array}_5
sacct	-X	-n	-P	-j	{completed}	-o	JobID,ReqMem,DerivedExitCode
sacct	-X	-j	{completed},{failed}	-D
sacct	-j	{failed}	-P	-o	JobID,State,ExitCode
sacct	-X	-n	-S	now-1hours	-E	now	-u	daemon	-A	chem	-s	F
sacct	--json	-X	-j	{failed}
"""
# What the portal neither knows nor runs for anybody.
NOT_OURS = """\
squeue
squeue	-j	{foreign}
squeue	-u	games
squeue	-u	daemon,games
squeue	--me	--json
squeue	-j	{gone}
squeue	-M	all	--me
squeue	--me	-i	5
sacct	-a
sacct	-X	-j	{gone}
sacct	-X	-j	{running},{foreign}
sacct	-X	-u	games
sacct	-j	{foreign}
sacct	-u	games
sacct	--json
sacct	--json	-u	daemon
"""


def test_squeue_prints_from_what_the_portal_knows(node: Node, jobs: Jobs) -> None:
    assert (ACCOUNT, ME, OTHER) == ("chem", "daemon", "games")  # as the command lines say
    wrong = [said for line in PRINTED.splitlines() if (said := node.compare(*jobs.fill(line)))]
    assert not wrong, "\n".join(wrong)


def test_sacct_prints_from_what_the_portal_knows(node: Node, jobs: Jobs) -> None:
    wrong = [said for line in ACCOUNTS.splitlines() if (said := node.compare(*jobs.fill(line)))]
    assert not wrong, "\n".join(wrong)
    # What is altered is asked about, also where the state of the job stays.
    node.facility.run("scontrol", "update", f"jobid={jobs.begun}", "timelimit=3", "partition=test")
    assert not node.compare("sacct", "-X", "-j", str(jobs.begun), "-o", "partition,timelimit")


def test_others_are_run_once_for_all(node: Node, jobs: Jobs) -> None:
    wrong = [said for line in SHARED.splitlines() if (said := node.compare(*jobs.fill(line), by="others share"))]
    assert not wrong, "\n".join(wrong)


def test_a_loop_asks_the_controller_nothing(node: Node, jobs: Jobs) -> None:
    def asked() -> int:
        return node.reader.source.count().by_user[ME].calls

    node.reader.look()
    before = asked()
    for _ in range(10):
        assert node.ours("squeue", "-j", str(jobs.running)).returncode == 0
    assert asked() == before
    node.real("squeue", "-j", str(jobs.running))
    assert asked() > before


def test_time_that_is_used_grows_as_squeue_says(node: Node, jobs: Jobs) -> None:
    asked = ("squeue", "-h", "-j", str(jobs.running), "-o", "%M")
    node.reader.look()
    before = node.facility.run(*asked)
    ours = node.ours(*asked).stdout.decode()
    after = node.facility.run(*asked)
    assert read_duration(before.strip()) <= read_duration(ours.strip()) <= read_duration(after.strip())


def test_times_are_of_the_zone_of_the_node(node: Node, jobs: Jobs) -> None:
    assert not node.compare("squeue", "-j", str(jobs.running), "-o", "%S %e %V", TZ="America/New_York")
    assert not node.compare("sacct", "-X", "-j", str(jobs.failed), "-o", "Submit,End", TZ="Asia/Tokyo")
    assert not node.compare("sacct", "-X", "-S", "today", "-o", "JobID,Submit", TZ="America/Caracas")


def test_what_is_nobodys_own_is_left_to_the_real_command(node: Node, jobs: Jobs) -> None:
    for line in NOT_OURS.splitlines():
        ours = node.ours(*jobs.fill(line))
        assert (ours.stdout, ours.returncode) == (b"", 127), (line, ours)
        assert b"no other" in ours.stderr
    path = f"{ROOT}/deploy/agent-path:{os.environ['PATH']}"
    passed = node.ours("squeue", "-u", OTHER, path=path, SLURM_CONF=node.facility.environment["SLURM_CONF"])
    assert (hide(passed.stdout), passed.returncode) == node.real("squeue", "-u", OTHER)
