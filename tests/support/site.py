"""A whole site in processes of its own, each of which can be killed and started again.

A real Slurm with hooks, eventd, reader and web; in the services profile worker, Redis and PostgreSQL, too.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.services import find_program, free_port, make_postgres, wait_for_port
from tests.support.slurm import ACCOUNT, CLUSTER, USERS, Slurm

ROOT = Path(__file__).parents[2]
OWNER, READER = USERS  # whose agent waits; as whom the reader asks, so that the controller counts it apart
# Runs in the site's database: who is who, and their keys.
SETUP = f"""
import json
from principals.models import SlurmAccount
from tests import factories
from tests.conftest import sign_in
owner, pi = factories.make_user({OWNER!r}), factories.make_user("pi")
staff = factories.make_user("staff", is_research_computing=True)
cluster = factories.make_cluster({CLUSTER!r})
lab = factories.make_lab("okafor", pi=pi, member=owner)
factories.make_cluster_user(cluster, owner)
SlurmAccount.objects.create(cluster=cluster, name={ACCOUNT!r}, lab=lab)
print(json.dumps({{
    "agent": factories.make_token(factories.make_agent(lab, owner)),
    "eventd": factories.make_service_token("ingest:events", cluster=cluster),
    "pi": sign_in(pi).cookies["sessionid"].value, "staff": sign_in(staff).cookies["sessionid"].value,
}}))
"""


@dataclass
class Site:
    """What runs, by name: `processes`; and the keys of those who listen: `agent` (token), `pi`, `staff` (sessions)."""

    facility: Slurm
    environment: dict[str, str]
    port: int
    redis_port: int = 0
    keys: dict[str, str] = field(default_factory=dict)
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def ends(self) -> Path:
        """Where jobs of `submit` write when their script ends, a file a job and a line a run."""
        return self.facility.folder / "ends"

    def submit(self, seconds: float) -> int:
        """Submit a job of the agent's owner that notes its end."""
        return self.facility.submit(script=f"sleep {seconds}; date +%s.%N >> {self.ends}/$SLURM_JOB_ID")

    def ended_at(self, job: int) -> float:
        """Return when the script of a job ended, in seconds of the epoch."""
        return float((self.ends / str(job)).read_text().split()[-1])

    def start(self, *names: str) -> None:
        """Start some of the processes, and wait for those that listen."""
        for name in names:
            if name == "slurmctld":
                self.facility.restart_controller()
                continue
            command, port, how = self._command(name)
            with (self.facility.folder / f"{name}.out.log").open("ab") as log:
                started = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, **how)  # type: ignore[call-overload]
            self.processes[name] = started
            if port:
                wait_for_port(port, started)

    def kill(self, name: str) -> None:
        """End one of them as `kill -9` does."""
        if name == "slurmctld":
            self.facility.kill_controller()
            return
        self.processes[name].kill()
        self.processes[name].wait()

    def close(self) -> None:
        """End them all."""
        for process in reversed(self.processes.values()):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _command(self, name: str) -> tuple[Sequence[str], int, Mapping[str, object]]:
        folder, python = self.facility.folder, [sys.executable, "-W", "ignore"]
        with_slurm = self.environment | self.facility.environment
        if name == "redis":
            program = find_program("redis-server") or find_program("valkey-server") or "redis-server"
            options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(folder)]
            return [program, "--port", str(self.redis_port), *options], self.redis_port, {}
        if name == "web":
            options = ["--port", str(self.port), "--log-level", "warning", "--lifespan", "off"]
            options += ["--ws-per-message-deflate", "false", "--timeout-graceful-shutdown", "2"]
            return [*python, "-m", "uvicorn", "portal.asgi:application", *options], self.port, {"env": self.environment}
        if name == "worker":
            options = ["-B", "-P", "threads", "-c", "2", "-l", "WARNING", "-s", str(folder / "beat")]
            return [*python, "-m", "celery", "-A", "portal.celery", "worker", *options], 0, {"env": self.environment}
        if name == "reader":
            # In the embedded profile it reads root's data folder.
            user = {"user": READER} if self.redis_port else {}
            return [*python, "manage.py", "slurm_reader", "--cluster", CLUSTER], 0, {"env": with_slurm, **user}
        settings = str(folder / "eventd.toml")
        return [*python, "-m", "portal.cli.main", "eventd", "--config", settings], 0, {"env": self.environment}

    def prepare(self) -> None:
        """Make people and their keys, and what eventd needs; start everything and wait until it is at work."""
        folder = self.facility.folder
        code = f"import django; django.setup()\n{SETUP}"
        made = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, env=self.environment, check=True, text=True,
            stdout=subprocess.PIPE, timeout=60,
        )  # fmt: skip
        self.keys = json.loads(made.stdout.splitlines()[-1])
        self.ends.mkdir()
        self.ends.chmod(0o777)
        key = folder / "eventd.token"
        key.write_text(self.keys["eventd"])
        key.chmod(0o600)
        (folder / "eventd.toml").write_text(
            f'portal = "{self.url}"\ncluster = "{CLUSTER}"\ntoken_file = "{key}"\nspool = "{self.facility.events}"\n'
        )
        self.start("web", "eventd", "reader", *(["worker"] if self.redis_port else []))
        self.facility.wait_until(lambda: (self.facility.events / "new").is_dir(), "eventd to make its spool")


@contextlib.contextmanager
def services_site(facility: Slurm) -> Iterator[Site]:
    """Run the services profile beside a Slurm. It asks for PostgreSQL and Redis."""
    folder = facility.folder
    postgres = make_postgres(folder)
    assert postgres is not None, "PostgreSQL is not installed"
    redis_port = free_port()
    own = {
        "GATEHOUSE_PROFILE": "services", "DATABASE_URL": postgres.url, "GATEHOUSE_DATA": str(folder / "var"),
        "REDIS_URL": f"redis://127.0.0.1:{redis_port}/0", "SECRET_KEY": "site-" * 8,
        "TOKEN_PEPPERS": "1:" + "pepper" * 8,
    }  # fmt: skip
    site = Site(facility, _environment(own), free_port(), redis_port)
    try:
        postgres.start()
        site.start("redis")
        migrate = [sys.executable, "-W", "ignore", "manage.py", "migrate", "-v", "0"]
        subprocess.run(migrate, cwd=ROOT, env=site.environment, check=True, timeout=120)
        site.prepare()
        yield site
    finally:
        site.close()
        postgres.stop()


@contextlib.contextmanager
def embedded_site(facility: Slurm, data: Path) -> Iterator[Site]:
    """Run the embedded profile on a prepared data folder beside a Slurm, without the worker: live events need none."""
    site = Site(facility, _environment({"GATEHOUSE_DATA": str(data)}), free_port())
    try:
        site.prepare()
        yield site
    finally:
        site.close()


def _environment(own: dict[str, str]) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return kept | own | {
        "DJANGO_SETTINGS_MODULE": "portal.settings", "LOG_LEVEL": "WARNING", "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
    }  # fmt: skip


def wait_for_all(site: Site, jobs: Sequence[int], patience_s: float) -> None:
    """Wait until the script of each job has ended."""
    deadline = time.monotonic() + patience_s
    while missing := [job for job in jobs if not (site.ends / str(job)).exists()]:
        assert time.monotonic() < deadline, f"{len(missing)} jobs do not end: {missing[:5]}\n{site.facility.logs()}"
        time.sleep(0.2)
