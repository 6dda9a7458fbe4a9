"""How fast a whole facility's log comes into PostgreSQL: `make bench-facility [ROWS=] [FILE=]` prints JSON lines.

One run, one server of its own in a temporary folder: first the bare `COPY` of the same file into a table of one text
column without an index, then our ingest: attributed, indexed, and after it the rollups. On top of it comes what five
minutes bring, at the head of the log and in its middle.
"""

import argparse
import io
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.support.services import postgres
from tests.telemetry.engine.sacct_texts import MINUTES, five_minutes_rows, many_rows

ROWS = 500_000
GOAL_RATIO = {7_000_000: 4.0, 0: 7.0}  # by size: a small bare COPY is disproportionately fast
GOAL_PEAK_MB = 500
ROUNDS = 5
INCREMENT = 1000  # jobs of five minutes
GOAL_INCREMENT_S = {"head": 1.0, "middle": 5.0}
USERS = 1611  # as many as the measured cluster had
PARTITIONS = ("shared", "gpu", "test", "bigmem", "gpu_test", "serial_requeue")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--file", type=Path, help="a sacct -P file instead of a generated one")
    parser.add_argument("--child", type=Path)
    options = parser.parse_args()
    if options.child:
        return _child(options.child)
    with tempfile.TemporaryDirectory(prefix="gatehouse-facility-") as name:
        folder = Path(name)
        path = options.file or _write(folder / "jobs.sacct", options.rows)
        with postgres(folder) as url:
            if url is None:
                print("PostgreSQL is not installed: nothing was measured.", file=sys.stderr)  # noqa: T201
                return 1
            copied = _copy(url, path)
            environment = os.environ | {
                "DATABASE_URL": url, "GATEHOUSE_DATA": name, "GATEHOUSE_PROFILE": "embedded", "LOG_LEVEL": "ERROR",
            }  # fmt: skip
            command = [sys.executable, "-m", "tests.bench.facility", "--child", str(path)]
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    result = json.loads(done.stdout.splitlines()[-1])
    ratio = result["seconds"] / copied
    goal = next(limit for size, limit in GOAL_RATIO.items() if result["rows"] >= size)
    print(  # noqa: T201
        json.dumps(
            {"benchmark": "facility", "python": platform.python_version()}
            | result
            | {"copy_seconds": round(copied, 2), "ratio_to_copy": round(ratio, 1)}
            | {"goal_met": ratio <= goal and result["peak_mb"] < GOAL_PEAK_MB}
            | {"increments_met": all(result[f"{name}_s"] < goal for name, goal in GOAL_INCREMENT_S.items())}
        )
    )
    return 0


def _write(path: Path, rows: int) -> Path:
    with path.open("wb") as file:
        file.writelines(many_rows(rows, users=USERS, partitions=PARTITIONS))
    return path


def _copy(url: str, path: Path) -> float:
    import psycopg

    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE bare_copy (line text)")
        start = time.perf_counter()
        with path.open("rb") as file, cursor.copy("COPY bare_copy FROM STDIN (FORMAT csv, DELIMITER E'\\x01')") as copy:
            while part := file.read(1 << 20):
                copy.write(part)
        connection.commit()
        spent = time.perf_counter() - start
        cursor.execute("DROP TABLE bare_copy")
    return spent


def _child(path: Path) -> int:
    os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
    import django

    django.setup()
    from django.core.management import call_command

    from principals.actors import SYSTEM_ACTOR
    from principals.services import ensure_cluster
    from telemetry import services
    from telemetry.services import rollups
    from tests.bench.ingest import declared_sessions

    call_command("migrate", verbosity=0)
    cluster = ensure_cluster("bench")
    services.declare_sessions(actor=SYSTEM_ACTOR, cluster=cluster, sessions=list(declared_sessions(USERS)))
    at: list[float] = []
    peaks: list[int] = []
    catch_up = rollups.catch_up

    def timed(**kwargs: object) -> bool:
        at.append(time.perf_counter())
        peaks.append(_peak_mb())
        return catch_up(**kwargs)  # type: ignore[arg-type]

    rollups.catch_up = timed  # type: ignore[assignment]
    start = time.perf_counter()
    with path.open("rb") as stream:
        batch = services.ingest_file(actor=SYSTEM_ACTOR, cluster=cluster, stream=stream, format="sacct")
    seconds = time.perf_counter() - start
    result = {
        "rows": batch.total_rows, "created": batch.created_rows, "rejected": batch.rejected_rows,
        "seconds": round(seconds, 1), "ingest_seconds": round(at[0] - start, 1),
        "ingest_peak_mb": peaks[0], "peak_mb": _peak_mb(),
    }  # fmt: skip
    rollups.catch_up = catch_up
    for name, minute in (("head", MINUTES - 5), ("middle", MINUTES // 2)):
        result[f"{name}_s"] = _median_increment_s(cluster, name, minute, result["rows"])
    print(json.dumps(result))  # noqa: T201
    return 0


def _median_increment_s(cluster: Any, name: str, minute: int, rows: int) -> float:
    """Take what five minutes bring, some times, each time other jobs; return how long one took with its rollups."""
    from principals.actors import SYSTEM_ACTOR
    from telemetry import services

    spent = []
    for turn in range(ROUNDS):
        first = 2 * rows + INCREMENT * (turn + ROUNDS * (name == "head"))
        lines = five_minutes_rows(
            INCREMENT, first=first, minute=minute, seed=first, users=USERS, partitions=PARTITIONS
        )  # fmt: skip
        stream = io.BytesIO(b"".join(lines))
        start = time.perf_counter()
        batch = services.ingest_file(actor=SYSTEM_ACTOR, cluster=cluster, stream=stream, format="sacct")
        spent.append(time.perf_counter() - start)
        assert batch.created_rows == INCREMENT
    return round(statistics.median(spent), 2)


def _peak_mb() -> int:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    sys.exit(main())
