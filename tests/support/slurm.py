"""A private Slurm on loopback: MUNGE, MariaDB, slurmdbd, one controller, one node, in a temporary folder.

Ports are free ones, pid files, sockets and logs stand in the folder, and everything ends with the block. The programs
are Debian's: slurm-wlm, slurmdbd, munge, mariadb-server. It must run as root, for jobs run as other users.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.services import find_program, free_port, wait_for_port

PROGRAMS = ("munged", "mariadbd", "mariadb-install-db", "slurmdbd", "slurmctld", "slurmd", "sbatch")
CLUSTER, ACCOUNT, USERS = "aster", "chem", ("daemon", "games")  # login names that every Debian has
CGROUPS = Path("/sys/fs/cgroup")
DEPLOYED = Path(__file__).parents[2] / "deploy/slurm"
LABEL = DEPLOYED / "gatehouse_label.lua"
# The hooks that a site may switch on, and what switches each on.
HOOKS = {
    "gatehouse-jobcomp.sh": "JobCompType=jobcomp/script\nJobCompLoc={path}",
    "gatehouse-epilog-slurmctld.sh": "EpilogSlurmctld={path}",
    "gatehouse-mail.sh": "MailProg={path}",
}
PATIENCE_S = 60

CGROUP_CONF = """
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
ConstrainRAMSpace=yes
ConstrainSwapSpace=yes
AllowedSwapSpace=0
"""
SLURM_CONF = """
ClusterName={cluster}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdParameters=config_overrides
{tracking}
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=100000,batch_sched_delay=0
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd_port}
AccountingStoragePass={folder}/munge.socket
AccountingStorageEnforce=associations,limits,qos
AccountingStoreFlags=job_comment
KillWait=1
MinJobAge=60
MpiDefault=none
JobSubmitPlugins=lua
DefMemPerCPU=50
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={slurmd_port} CPUs=8 RealMemory=4000 State=UNKNOWN
PartitionName=shared Nodes=n1 Default=YES DefaultTime=5 MaxTime=60 State=UP
PartitionName=test Nodes=n1 DefaultTime=5 MaxTime=10 State=UP
"""
TRUE_CGROUPS = "ProctrackType=proctrack/cgroup\nTaskPlugin=task/cgroup"
NO_CGROUPS = "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none"
JOB_SUBMIT = """
local loaded, gatehouse = pcall(dofile, "{label}")
function slurm_job_submit(job, partitions, uid)
    if loaded then
        gatehouse.off_file = "{folder}/label.off"
        pcall(gatehouse.label, job)
    end
    return slurm.SUCCESS
end
function slurm_job_modify(job, before, partitions, uid)
    return slurm.SUCCESS
end
"""
DBD_CONF = """
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost=localhost
DbdPort={dbd_port}
SlurmUser=root
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={sql_port}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct
"""


@dataclass(frozen=True)
class Slurm:
    """A running Slurm; `has_cgroups` says whether it sees a job that runs out of memory as such."""

    folder: Path
    environment: dict[str, str]
    has_cgroups: bool
    controller_port: int
    daemons: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def events(self) -> Path:
        """Where the hooks write to."""
        return self.folder / "events"

    def use_hooks(self, *names: str) -> None:
        """Let these hooks of `HOOKS` do their work, and the others nothing."""
        (self.folder / "hooks").mkdir(exist_ok=True)
        for name in ("gatehouse-hook.sh", *HOOKS):
            text = (DEPLOYED / name).read_text().replace("/var/spool/gatehouse-events", str(self.events))
            text = text.replace("/etc/slurm/gatehouse-mailprog", "/dev/null")
            made = self.folder / "hooks" / f".{name}"
            _write(made, text if name in ("gatehouse-hook.sh", *names) else "#!/bin/sh\n", mode=0o755)
            made.rename(made.with_name(name))

    def wait_until_saved(self) -> None:
        """Wait until all that was submitted is in the state that the controller saves within seconds of a change.

        What is not is forgotten where it is killed: those jobs never run, and their numbers are given again. Call it
        once the last job is submitted and while jobs run: a file of before, or of in between, does not hold them all.
        """
        state, submitted_s = self.folder / "state/job_state", time.time()
        self.wait_until(lambda: state.exists() and state.stat().st_mtime > submitted_s + 1, "the jobs to be saved")

    def kill_controller(self) -> None:
        """End the controller as a crash would."""
        self.daemons["slurmctld"].kill()
        self.daemons["slurmctld"].wait()

    def restart_controller(self) -> None:
        """Start the controller again, with the state that it saved."""
        _start(self, ["slurmctld", "-D"], self.controller_port)

    def run(
        self, *command: str, user: str = "root", check: bool = True, environment: Mapping[str, str] | None = None
    ) -> str:
        """Run a command of Slurm as a user, with some variables more, return what it prints."""
        ran = subprocess.run(
            command, env=self.environment | dict(environment or {}), user=user, cwd="/tmp",  # noqa: S108 - where every user may write
            capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        assert not (check and ran.returncode), f"{command} ended with {ran.returncode}: {ran.stderr}"
        return ran.stdout

    def submit(
        self, *options: str, script: str, user: str = USERS[0], environment: Mapping[str, str] | None = None
    ) -> int:
        """Submit a batch script, return the job id."""
        given = ["sbatch", "--parsable", "--output=/dev/null", *options, f"--wrap={script}"]
        return int(self.run(*given, user=user, environment=environment).split(";")[0])

    def states(self, job: int) -> set[str]:
        """Return the states of a job's records, as accounting knows them."""
        given = ("sacct", "-X", "-D", "-n", "-P", "-o", "State", "-j", str(job))
        return {line.split(" ")[0] for line in self.run(*given).split("\n") if line}

    def wait_for(self, job: int, *states: str) -> None:
        """Wait until accounting knows a record of a job in each of some states."""
        self.wait_until(lambda: set(states) <= self.states(job), f"job {job} to be {states}")

    def wait_for_queue(self, job: int, state: str) -> None:
        """Wait until the controller says that a job is in a state: accounting follows a little later."""
        asked = ("squeue", "-h", "-o", "%T", "-j", str(job))
        self.wait_until(lambda: self.run(*asked).strip() == state, f"job {job} to be {state}")

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds; fail with the daemons' logs."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, f"waited for {what}:\n{self.logs()}"
            time.sleep(0.2)

    def logs(self) -> str:
        """Return the ends of the daemons' logs."""
        return "\n".join(f"--- {path.name}\n{path.read_text()[-3000:]}" for path in sorted(self.folder.glob("*.log")))


def find_missing() -> str:
    """Say what a private Slurm lacks on this machine; "" where it can run."""
    if os.geteuid():
        return "root's rights"
    return ", ".join(name for name in PROGRAMS if not find(name))


def find(name: str) -> str | None:
    """Return where a program of Slurm or MUNGE is."""
    return find_program(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


@contextlib.contextmanager
def slurm(folder: Path, *, hooks: bool = False) -> Iterator[Slurm]:
    """Run a private Slurm with one account and two users; `hooks`: with all of ours, which write to `Slurm.events`."""
    folder.chmod(0o755)
    ports = {name: free_port() for name in ("ctld_port", "dbd_port", "slurmd_port", "sql_port")}
    host = socket.gethostname().split(".")[0]
    # Hooks need none, and on a busy machine this Slurm fails to start some of many jobs in them.
    has_cgroups = not hooks and (CGROUPS / "memory").is_dir() and (CGROUPS / "freezer").is_dir()
    names = {"folder": folder, "host": host, "cluster": CLUSTER, **ports}
    tracking = TRUE_CGROUPS if has_cgroups else NO_CGROUPS
    switched_on = [line.format(path=folder / "hooks" / name) for name, line in HOOKS.items() if hooks]
    configured = SLURM_CONF.format(tracking=tracking, **names)
    _write(folder / "slurm.conf", "\n".join([configured, *switched_on, ""]))
    _write(folder / "slurmdbd.conf", DBD_CONF.format(**names), mode=0o600)
    _write(folder / "cgroup.conf", CGROUP_CONF)
    _write(folder / "job_submit.lua", JOB_SUBMIT.format(label=LABEL, **names))
    for name in ("state", "spool"):
        (folder / name).mkdir()
    path = f"/usr/sbin:{os.environ['PATH']}"
    environment = {"PATH": path, "SLURM_CONF": str(folder / "slurm.conf"), "TZ": "UTC"}
    made = Slurm(folder, environment, has_cgroups, ports["ctld_port"])
    if hooks:
        made.use_hooks(*HOOKS)
    with contextlib.ExitStack() as stack:
        sql = _prepare_sql(folder)
        stack.enter_context(munge(folder))
        stack.enter_context(_daemon(made, ["mariadbd", *sql, f"--port={ports['sql_port']}"], ports["sql_port"]))
        stack.enter_context(_daemon(made, ["slurmdbd", "-D"], ports["dbd_port"]))
        made.run("sacctmgr", "-i", "add", "cluster", CLUSTER)
        stack.enter_context(_daemon(made, ["slurmctld", "-D", "-c"], ports["ctld_port"]))
        stack.enter_context(_daemon(made, ["slurmd", "-D", "-N", "n1"], ports["slurmd_port"]))
        _admit_users(made)
        yield made


def _admit_users(made: Slurm) -> None:
    made.run("sacctmgr", "-i", "add", "account", ACCOUNT)
    made.run("sacctmgr", "-i", "add", "user", ",".join(USERS), f"account={ACCOUNT}")
    made.run("sacctmgr", "-i", "add", "qos", "tiny", "maxtresperjob=cpu=1", "flags=DenyOnLimit")
    made.run("sacctmgr", "-i", "modify", "user", ",".join(USERS), "set", "qos+=tiny")
    made.wait_until(lambda: "idle" in made.run("sinfo", "-h", "-o", "%T", check=False), "the node")


def _write(path: Path, text: str, *, mode: int = 0o644) -> None:
    path.write_text(text)
    path.chmod(mode)


def _prepare_sql(folder: Path) -> Sequence[str]:
    """Make an empty database that the accounting daemon may fill; return the server's options."""
    data, first = folder / "sql", folder / "first.sql"
    who = "slurm@'127.0.0.1'"
    _write(first, f"CREATE USER {who} IDENTIFIED BY 'slurm';\nGRANT ALL ON slurm_acct.* TO {who};\n")  # one a line
    options = ("--no-defaults", f"--datadir={data}", "--user=root")
    made = ["mariadb-install-db", *options, "--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
    return (
        *options, "--bind-address=127.0.0.1", f"--socket={folder}/sql.socket", f"--init-file={first}",
        "--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--skip-log-bin",
    )  # fmt: skip


@contextlib.contextmanager
def munge(folder: Path, *, key: bytes = b"", ahead_s: int = 0) -> Iterator[Path]:
    """Run a munged with its socket in a folder; `key`: another realm's or the same; `ahead_s`: its clock is wrong."""
    file, sockets = folder / "munge.key", folder / "munge.socket"
    file.write_bytes(key or os.urandom(128))
    file.chmod(0o400)
    wrong = ["faketime", "-f", f"{ahead_s:+d}s"] if ahead_s else []
    program = find("munged") or "munged"
    command = [*wrong, program, "--foreground", "--force", f"--key-file={file}", f"--socket={sockets}"]
    places = [f"--{name}={folder}/munged.{end}" for name, end in
              (("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed"))]  # fmt: skip
    with _ended(subprocess.Popen([*command, *places], stderr=subprocess.DEVNULL)) as server:
        deadline = time.monotonic() + PATIENCE_S
        while not sockets.exists():
            assert server.poll() is None and time.monotonic() < deadline, "munged does not start"
            time.sleep(0.02)
        yield sockets


@contextlib.contextmanager
def _daemon(made: Slurm, command: Sequence[str], port: int) -> Iterator[None]:
    _start(made, command, port)
    try:
        yield
    finally:
        with _ended(made.daemons[command[0]]):  # the one that runs by now
            pass


def _start(made: Slurm, command: Sequence[str], port: int) -> None:
    program = find(command[0])
    assert program is not None
    with (made.folder / f"{command[0]}.out.log").open("ab") as log:
        started = subprocess.Popen([program, *command[1:]], env=made.environment, stdout=log, stderr=log)
    made.daemons[command[0]] = started
    wait_for_port(port, started)


@contextlib.contextmanager
def _ended(server: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    try:
        yield server
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
