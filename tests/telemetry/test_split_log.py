"""However a log is cut into batches, in whatever order and how often they come: the same rows and rollups in the end.

Jobs run through the nights on which clocks are put on and back, the leap day and the turn of a year, and people write
whatever they like into what is theirs.
"""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from portal.core import clock
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster
from principals.services import DeclaredSession
from telemetry import services, tasks
from telemetry.models import Job, RollupDirty, RollupHistogram, RollupHour, RollupUser
from telemetry.services.ingest import running
from tests import factories
from tests.telemetry.job_rows import expected_days, expected_hours
from tests.telemetry.logs import ingest, job_row, text
from tests.telemetry.test_ingest_blocks import rows_of
from tests.telemetry.test_refresh_rollups import stored_days, stored_hours

pytestmark = [pytest.mark.django_db, pytest.mark.sql]

NOW = datetime(2027, 1, 15, tzinfo=UTC)  # when all of it comes in
NIGHTS = (
    "2026-03-08T06:30:00", "2026-11-01T05:30:00",  # New York: an hour is left out, an hour comes twice
    "2026-03-29T00:30:00", "2026-10-25T00:30:00",  # the same in Europe
    "2024-02-28T23:30:00", "2024-02-29T12:00:00", "2025-12-31T23:59:59",
)  # fmt: skip
WRITTEN = (
    "train", "a|b", "|", "two\nlines", "a|b\nc|d", 'say "hi"', "it's", "\U0001f468\u200d\U0001f469", "caf\u00e9", "",
    "\u202eabc\u202c", "\u05e9\u05dc\u05d5\u05dd \u200f", "back\\slash \\N \\.", "\ttab", "a,b;c", "=1+1", "%s {}",
)  # fmt: skip
FREE = {"JobName": "job_name", "WorkDir": "work_dir", "SubmitLine": "submit_line"}
JOBS = st.fixed_dictionaries(
    {
        "night": st.sampled_from(NIGHTS), "later_s": st.integers(0, 7200), "wait_s": st.integers(0, 90_000),
        "span_s": st.integers(0, 200_000) | st.sampled_from([0, 3600, 86_400]), "cpus": st.integers(1, 64),
        "user": st.sampled_from(["ada", "bob"]), "partition": st.sampled_from(["gpu", "test"]),
        "state": st.sampled_from(["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 1001", "OUT_OF_MEMORY"]),
        "seen": st.sets(st.sampled_from(["PENDING", "RUNNING"])),
        "written": st.fixed_dictionaries({name: st.sampled_from(WRITTEN) for name in (*FREE, "Comment")}),
    }
)  # fmt: skip
SESSIONS = [
    DeclaredSession(
        login="ada", host="login1", kind="agent", harness="codex", campaign="screen",
        started=start, ended=start + timedelta(minutes=45),
    )
    for start in (datetime.fromisoformat(night).replace(tzinfo=UTC) for night in NIGHTS)
]  # fmt: skip


def iso(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S")


def lines_of(number: int, job: dict[str, Any]) -> list[str]:
    """The record of a job that ended, and those of it that a dump made earlier would hold."""
    submit = datetime.fromisoformat(job["night"]) + timedelta(seconds=job["later_s"])
    start = submit + timedelta(seconds=job["wait_s"])
    end = start + timedelta(seconds=job["span_s"])
    days, rest = divmod(job["span_s"], 86_400)
    ended = {
        "User": job["user"], "Partition": job["partition"], "NCPUS": str(job["cpus"]), "State": job["state"],
        "Submit": iso(submit), "Eligible": iso(submit), "Start": iso(start), "End": iso(end),
        "Elapsed": f"{days}-{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}",
        "Timelimit": "9-00:00:00", "AllocTRES": f"cpu={job['cpus']},mem=1G,node=1",
    } | job["written"]  # fmt: skip
    earlier = {
        "PENDING": {"State": "PENDING", "Start": "Unknown", "End": "Unknown", "Elapsed": "00:00:00"},
        "RUNNING": {"State": "RUNNING", "End": "Unknown", "Elapsed": "00:00:00"},
    }
    return [job_row(number, **ended), *(job_row(number, **ended | earlier[state]) for state in sorted(job["seen"]))]


def send(cluster: Cluster, lines: list[str], way: str, patch: pytest.MonkeyPatch) -> None:
    """Send a batch as a file, read row by row or in columns, or over the API's service and the worker's task."""
    patch.setattr(running, "MANY_BYTES", 0 if way == "columns" else 10**9)
    body = text(*lines)
    if way == "upload":
        batch = services.accept_upload(actor=SYSTEM_ACTOR, cluster_name=cluster.name, body=body, format="sacct")
        tasks.run_ingest_batch(batch.pk)
        batch.refresh_from_db()
    else:
        batch = ingest(cluster, body)
    assert (batch.state, batch.rejected_rows) == ("done", 0)


def everything(cluster: Cluster) -> dict[str, Any]:
    """All that is stored of a cluster's jobs and rollups, but our own numbers."""
    found: dict[str, Any] = {"jobs": rows_of(cluster)}
    for model in (RollupUser, RollupHour, RollupHistogram):
        ours = {"id", "cluster", "lab", "cluster_user"}
        names = [field.name for field in model._meta.concrete_fields if field.name not in ours]
        names += [f"{name}__login" for name in ("cluster_user",) if name in {f.name for f in model._meta.fields}]
        found[model.__name__] = Counter(model.objects.filter(cluster=cluster).values_list(*names))
    return found


def require_sums(cluster: Cluster) -> None:
    """Hold the rollups against the jobs themselves, added up piece by piece in plain Python."""
    assert not RollupDirty.objects.exists()
    jobs = list(Job.objects.filter(cluster=cluster))
    assert stored_days() == expected_days(jobs)
    assert stored_hours() == expected_hours(jobs)


def outcome(batches: list[tuple[list[str], str]]) -> dict[str, Any]:
    """What stands after these batches came in this order; then all is taken back."""
    with pytest.MonkeyPatch.context() as patch, clock.at(NOW), transaction.atomic():
        patch.setattr(tasks.run_ingest_batch, "delay", lambda _: None)
        patch.setitem(running.BLOCK_ROWS, connection.vendor, 3)
        cluster = factories.make_cluster("aster")
        services.declare_sessions(actor=SYSTEM_ACTOR, cluster=cluster, sessions=SESSIONS)
        for lines, way in batches:
            send(cluster, lines, way, patch)
        require_sums(cluster)
        found = everything(cluster)
        transaction.set_rollback(True)
    return found


@settings(max_examples=8, deadline=None, phases=[Phase.generate])  # a smaller case would take minutes to find
@given(data=st.data(), jobs=st.lists(JOBS, min_size=1, max_size=8))
def test_any_split_order_overlap_and_repetition_gives_the_same_rows_and_rollups(
    data: st.DataObject, jobs: list[dict[str, Any]]
) -> None:
    lines = [line for number, job in enumerate(jobs, start=1) for line in lines_of(number, job)]
    whole = outcome([(lines, "rows")])
    dealt = data.draw(st.lists(st.sets(st.integers(0, 4), min_size=1), min_size=len(lines), max_size=len(lines)))
    batches = []
    for number in data.draw(st.permutations(range(5))):
        mine = [line for line, places in zip(lines, dealt, strict=True) if number in places]
        if mine:
            batches.append(
                (data.draw(st.permutations(mine)), data.draw(st.sampled_from(["rows", "columns", "upload"])))
            )
    batches += data.draw(st.lists(st.sampled_from(batches), max_size=2))  # and some once more

    assert outcome(batches) == whole


@pytest.mark.parametrize("way", ["rows", "columns", "upload"])
def test_what_people_write_is_stored_as_they_wrote_it(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks.run_ingest_batch, "delay", lambda _: None)
    monkeypatch.setitem(running.BLOCK_ROWS, connection.vendor, 3)
    cluster = factories.make_cluster("aster")
    columns = [*FREE, "Comment"]
    # Each text in each column, beside a different one in the others.
    rows = [
        {name: WRITTEN[(number + place * 5) % len(WRITTEN)] for place, name in enumerate(columns)}
        for number in range(len(WRITTEN))
    ]
    send(cluster, [job_row(number, **row) for number, row in enumerate(rows, start=1)], way, monkeypatch)
    jobs = Job.objects.order_by("raw_id")
    assert [
        {**{name: getattr(job, FREE[name]) for name in FREE}, "Comment": job.extra.get("Comment", "")} for job in jobs
    ] == rows
