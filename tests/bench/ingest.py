"""How fast accounting text comes in: `make bench` prints JSON lines.

Rounds alternate between our ingest and the plain way (the same reader, model instances, `bulk_create`), each in a
process and database of its own, so that memory and caches of one do not flatter the other. The plain way takes the
file's first rows only, or most of the time would be its; smaller tables are in its favour.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from tests.telemetry.engine.sacct_texts import many_rows

ROWS = 200_000
PLAIN_ROWS = 40_000
ROUNDS = 3
WAYS = ("ingest", "bulk_create")
GOAL_ROWS_PER_S = 10_000
GOAL_PEAK_MB = 300
GOAL_LOCK_MS = 250  # of SQLite's write lock


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--child", choices=WAYS)
    parser.add_argument("--file", type=Path)
    options = parser.parse_args()
    if options.child:
        return _child(options.child, options.file)
    with tempfile.TemporaryDirectory(prefix="gatehouse-bench-") as folder:
        path = Path(folder) / "jobs.sacct"
        with path.open("wb") as file:
            file.writelines(many_rows(options.rows))
        results = []
        for way in WAYS * options.rounds:
            results.append(_run(way, path))
            print(json.dumps(results[-1]), flush=True)  # noqa: T201
    print(json.dumps(_summary(results)))  # noqa: T201
    return 0


def _run(way: str, path: Path) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="gatehouse-bench-") as data:
        environment = os.environ | {"GATEHOUSE_DATA": data, "GATEHOUSE_PROFILE": "embedded", "LOG_LEVEL": "ERROR"}
        command = [sys.executable, "-m", "tests.bench.ingest", "--child", way, "--file", str(path)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _summary(results: list[dict[str, object]]) -> dict[str, object]:
    def middle(way: str, name: str) -> float:
        return statistics.median(float(str(each[name])) for each in results if each["way"] == way)

    rate, peak = middle("ingest", "rows_per_s"), middle("ingest", "peak_rss_mb")
    locks = [round(middle("ingest", name)) for name in ("longest_lock_ms", "longest_rollup_lock_ms")]
    return {
        "benchmark": "ingest",
        "python": platform.python_version(),
        "interpreter": platform.python_compiler(),
        "rows": results[0]["rows"],
        "rows_per_s": round(rate),
        "peak_rss_mb": round(peak),
        "longest_lock_ms": locks[0],
        "rollups_s": round(middle("ingest", "rollups_s"), 1),
        "longest_rollup_lock_ms": locks[1],
        "bulk_create_rows_per_s": round(middle("bulk_create", "rows_per_s")),
        "ratio_to_bulk_create": round(rate / middle("bulk_create", "rows_per_s"), 2),
        "goal_met": rate >= GOAL_ROWS_PER_S and peak < GOAL_PEAK_MB and max(*locks) <= GOAL_LOCK_MS,
    }


def _child(way: str, path: Path) -> int:
    os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
    import django

    django.setup()
    from django.core.management import call_command

    from principals.services import ensure_cluster

    call_command("migrate", verbosity=0)
    cluster = ensure_cluster("bench")
    result = (_ingest if way == "ingest" else _bulk_create)(cluster, path)
    result |= {"way": way, "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)}
    print(json.dumps(result))  # noqa: T201
    return 0


def _ingest(cluster: object, path: Path) -> dict[str, object]:
    from django.db import transaction

    from principals.actors import SYSTEM_ACTOR
    from telemetry import services
    from telemetry.services import rollups
    from telemetry.services.ingest import chunks

    services.declare_sessions(actor=SYSTEM_ACTOR, cluster=cluster, sessions=list(declared_sessions()))  # type: ignore[arg-type]
    locks: dict[str, list[float]] = {"ingest": [], "rollups": []}
    after, catch_up, atomic = [], rollups.catch_up, transaction.atomic

    class Timed(transaction.Atomic):
        def __enter__(self) -> None:
            super().__enter__()
            self.since = time.perf_counter()

        def __exit__(self, *args: object) -> None:
            super().__exit__(*args)
            locks["rollups" if after else "ingest"].append(time.perf_counter() - self.since)

    class Proxy:
        def atomic(self, function: Callable[..., object] | None = None) -> object:
            return Timed(None, True, False) if function is None else Timed(None, True, False)(function)

    def timed_catch_up(**kwargs: object) -> bool:
        after.append(time.perf_counter())
        return catch_up(**kwargs)  # type: ignore[arg-type]

    chunks.transaction, rollups.catch_up = Proxy(), timed_catch_up  # type: ignore[assignment]
    rollups._replace = Proxy().atomic(rollups._replace.__wrapped__)  # type: ignore[attr-defined]
    start = time.perf_counter()
    with path.open("rb") as stream:
        batch = services.ingest_file(actor=SYSTEM_ACTOR, cluster=cluster, stream=stream, format="sacct")  # type: ignore[arg-type]
    end = time.perf_counter()
    assert atomic is transaction.atomic
    assert batch.created_rows == batch.total_rows, batch.error
    spent = after[0] - start
    return {
        "rows": batch.total_rows, "rows_per_s": round(batch.total_rows / spent), "rollups_s": round(end - after[0], 2),
        "longest_lock_ms": round(max(locks["ingest"]) * 1000), "chunks": len(locks["ingest"]),
        "longest_rollup_lock_ms": round(max(locks["rollups"]) * 1000),
    }  # fmt: skip


def declared_sessions(users: int = 60) -> Iterator[object]:
    """Yield the agent sessions of every third user of `many_rows`."""
    from principals.services import DeclaredSession

    start = datetime(2026, 6, 1, tzinfo=UTC)
    width = 2 if users == 60 else 4
    for user in range(0, users, 3):
        for day in range(0, 28, 2):
            began = start + timedelta(days=day, hours=user % 24)
            yield DeclaredSession(
                login=f"u{user:0{width}}", host="login1", kind="agent", harness="claude-code", started=began,
                ended=began + timedelta(hours=9),
            )  # fmt: skip


def _bulk_create(cluster: object, path: Path) -> dict[str, object]:
    from django.db import transaction

    from portal.core import clock
    from principals.services import Directory
    from telemetry.engine.slurm.sacct_text import SacctReader
    from telemetry.models import Job

    directory, total, start = Directory(cluster), 0, time.perf_counter()  # type: ignore[arg-type]
    with path.open("rb") as stream:
        reader = islice(SacctReader(stream, now_s=clock.now_s()), PLAIN_ROWS)
        while records := list(islice(reader, 2000)):
            with transaction.atomic():
                Job.objects.bulk_create(_job(cluster, directory, record) for record in records)
            total += len(records)
    return {"rows": total, "rows_per_s": round(total / (time.perf_counter() - start))}


def _job(cluster: object, directory: object, record: object) -> object:
    from telemetry.models import Job

    account_id, lab_id = directory.account_ids(record.account)  # type: ignore[attr-defined]
    same = (
        "job_id array_job_id array_tasks partition qos state reason elapsed_s timelimit_s nodes cpus gpus mem_bytes "
        "exit_code exit_signal cancelled_by_uid restarts job_name node_list submit_line work_dir campaign"
    )
    return Job(
        cluster=cluster, raw_id=record.raw_job_id, submit=record.submit_s, account_id=account_id, lab_id=lab_id,  # type: ignore[attr-defined]
        cluster_user_id=directory.user_id(record.user), eligible=record.eligible_s, start=record.start_s,  # type: ignore[attr-defined]
        end=record.end_s, usage_end=record.end_s, extra=dict(record.extra), digest=0, changed=0,  # type: ignore[attr-defined]
        **{name: getattr(record, name) for name in same.split()},
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
