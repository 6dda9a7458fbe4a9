"""`kill -9` of a reader of Slurm, or of the database, amid an ingest: nothing is lost, nothing comes twice."""

import contextlib
import json
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support import demo, services
from tests.support.capabilities import ROOT
from tests.telemetry.engine.sacct_texts import many_rows
from tests.telemetry.logs import CONFIG

pytestmark = [pytest.mark.outside, pytest.mark.one_database, pytest.mark.soak]

HOURS, ROWS_AN_HOUR = 24, 500
# Slurm's accounting of one day: what is asked for an hour gives that hour's jobs, whenever it is asked.
_SACCT = """#!/bin/sh
for word; do [ "$before" = --starttime ] && asked=$word; before=$word; done
cat {folder}/header
[ -z "$asked" ] || {{ hour=${{asked#*T}}; cat {folder}/hour-${{hour%%:*}}; }}
"""
_LET_GO = "from portal.core.models import Lease; Lease.objects.all().delete()"


def wait_until(holds: Callable[[], bool], victim: "subprocess.Popen[str]") -> None:
    """Wait until something holds while a process runs."""
    deadline = time.monotonic() + demo.PATIENCE_S
    while not holds():
        assert victim.poll() is None, f"it ended before it could be killed: {victim.stderr and victim.stderr.read()}"
        assert time.monotonic() < deadline
        time.sleep(0.02)


def require_whole(data: Path, rows: int, **more: str) -> None:
    said = json.loads(demo.manage(data, "usage", "--cluster", "aster", "--json", **more).stdout)
    assert (said["rows"], said["job_count"], said["submissions"]) == (rows, rows, rows)
    demo.manage(data, "verify_audit", **more)


@pytest.fixture
def slurm(tmp_path: Path) -> str:
    """A PATH with commands of a Slurm that has run a day of jobs."""
    folder = tmp_path / "slurm"
    folder.mkdir()
    header, *lines = many_rows(HOURS * ROWS_AN_HOUR)
    (folder / "header").write_bytes(header)
    for hour in range(HOURS):
        (folder / f"hour-{hour:02}").write_bytes(b"".join(lines[hour::HOURS]))
    (folder / "config").write_text(CONFIG)
    sdiag = "Data since now (5)\\n\\nRemote Procedure Call statistics by user\\n\\nPending RPC statistics\\n"
    scripts = {
        "sacct": _SACCT.format(folder=folder), "squeue": "#!/bin/sh\n", "sacctmgr": "#!/bin/sh\n",
        "sdiag": f"#!/bin/sh\nprintf '{sdiag}'\n", "scontrol": f"#!/bin/sh\ncat {folder}/config\n",
    }  # fmt: skip
    for name, script in scripts.items():
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def _jobs_and_counted(data: Path) -> tuple[int, int]:
    with contextlib.closing(sqlite3.connect(f"file:{data / 'gatehouse.sqlite3'}?mode=ro", uri=True)) as database:
        jobs = database.execute("SELECT count(*) FROM telemetry_job").fetchone()[0]
        return jobs, database.execute("SELECT coalesce(sum(created_rows), 0) FROM telemetry_ingestbatch").fetchone()[0]


@pytest.mark.parametrize("seed", [0, 1])
def test_a_reader_that_is_killed_goes_on_where_it_was(tmp_path: Path, slurm: str, seed: int) -> None:
    data, rows = tmp_path / "var", HOURS * ROWS_AN_HOUR
    demo.empty_folder(data)
    wanted = random.Random(seed).randrange(500, rows // 2)
    command = [sys.executable, "manage.py", "slurm_reader", "--cluster", "aster"]
    environment = demo.environment_of(data, PATH=slurm)
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as victim:
        try:
            wait_until(lambda: _jobs_and_counted(data)[0] >= wanted, victim)
        finally:
            victim.send_signal(signal.SIGKILL)
    jobs, counted = _jobs_and_counted(data)
    assert wanted <= jobs == counted < rows
    demo.manage(data, "shell", "--no-imports", "-c", _LET_GO)  # three minutes later
    demo.manage(data, "slurm_reader", "--cluster", "aster", "--once", PATH=slurm)
    assert _jobs_and_counted(data) == (rows, rows)
    require_whole(data, rows)


@pytest.fixture
def server() -> Iterator[services.Postgres]:
    """A private PostgreSQL that may be killed and started again."""
    with tempfile.TemporaryDirectory(prefix="gatehouse-kill-") as folder:
        made = services.make_postgres(Path(folder))
        if made is None:
            pytest.skip("PostgreSQL is not installed")
        made.start()
        yield made
        made.stop()


def _count(server: services.Postgres) -> int:
    with psycopg.connect(server.url) as connection:
        found = connection.execute("SELECT count(*) FROM telemetry_job").fetchone()
    return found[0] if found else 0


@pytest.mark.parametrize("seed", [0, 1])
def test_a_database_that_is_killed_under_a_load_loses_and_doubles_nothing(
    tmp_path: Path, server: services.Postgres, seed: int
) -> None:
    data, log, rows = tmp_path / "var", tmp_path / "jobs.sacct", 60_000
    log.write_bytes(b"".join(many_rows(rows)))
    given = {"DATABASE_URL": server.url, "LOG_LEVEL": "ERROR"}
    demo.manage(data, "migrate", "-v0", **given)
    load = ("ingest_jobs", str(log), "--cluster", "aster")
    wanted = random.Random(seed).randrange(1, 30_000)
    command = [sys.executable, "manage.py", *load]
    environment = demo.environment_of(data, **given)
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as victim:
        wait_until(lambda: _count(server) >= wanted, victim)
        server.kill()
        _, said = victim.communicate(timeout=demo.PATIENCE_S)
    assert victim.returncode == 1 and "Traceback" not in said, said
    server.start()
    assert _count(server) < rows
    demo.manage(data, *load, **given)
    assert _count(server) == rows
    require_whole(data, rows, **given)
