"""What a first load rolls up from its own columns is what all its jobs say, whoever else writes meanwhile."""

import io
from collections.abc import Callable

import pytest
from django.db import connection

from principals.models import Cluster
from telemetry import services
from telemetry.engine.slurm.sacct_text import SacctReader
from telemetry.models import Job, RollupDay, RollupDirty
from telemetry.services import job_indexes, rollups
from telemetry.services.ingest import reading, running
from tests import factories
from tests.telemetry.logs import counts, ingest, job_row, many, stream_records, text
from tests.telemetry.test_ingest_blocks import ODD
from tests.telemetry.test_refresh_rollups import assert_exact

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.sql,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite keeps its indexes"),
]


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.make_cluster("aster")


@pytest.fixture(autouse=True)
def every_file_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_indexes, "FROM_BYTES", 1)
    monkeypatch.setattr(running, "MANY_BYTES", 0)
    monkeypatch.setitem(reading.BLOCK_ROWS, "postgresql", 50)


@pytest.fixture
def reread(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many marks the usual way worked off, each time that it did some."""
    done: list[int] = []
    refresh = rollups.refresh

    def noted(**kwargs: Cluster) -> int:
        done.append(refresh(**kwargs))
        return done[-1]

    monkeypatch.setattr(rollups, "refresh", noted)
    return done


def test_nothing_is_read_again(cluster: Cluster, reread: list[int]) -> None:
    during: list[int] = []
    ingest(cluster, many(600), progress=lambda _: during.append(RollupDay.objects.count()))
    assert during[-1] > during[0] == 0  # days that the load is past are written before its end
    assert not RollupDirty.objects.exists()
    assert reread == []
    assert_exact()


def test_single_records_count_too(cluster: Cluster) -> None:
    ingest(cluster, text(*ODD))
    assert_exact()


def test_new_records_one_by_one_are_not_read_again(cluster: Cluster, reread: list[int]) -> None:
    ran = job_row(90, State="RUNNING", End="Unknown", Elapsed="00:10:00")
    ingest(cluster, text(*(job_row(each) for each in range(1, 9)), ran))
    assert reread == []
    assert_exact()


@pytest.mark.parametrize("order", ["backwards", "one day twice", "halves"])
def test_any_order_of_the_file(cluster: Cluster, order: str) -> None:
    header, *lines = many(600).splitlines(keepends=True)
    ordered = {
        "backwards": lines[::-1], "one day twice": [*lines[30:], *lines[:30]], "halves": [*lines[::2], *lines[1::2]],
    }[order]  # fmt: skip
    assert counts(ingest(cluster, b"".join([header, *ordered]))) == {"created": 600}
    assert not RollupDirty.objects.exists()
    assert_exact()


def test_what_ran_for_long_is_left_to_the_usual_way(cluster: Cluster, reread: list[int]) -> None:
    long = job_row(
        9, Submit="2026-05-01T00:00:00", Eligible="2026-05-01T00:00:00", Start="2026-05-01T00:00:00",
        End="2026-06-20T00:00:00", Elapsed="50-00:00:00",
    )  # fmt: skip
    ingest(cluster, text(job_row(1), long))
    assert sum(reread) > 50
    assert_exact()


def once(happens: Callable[[], object], at: int) -> Callable[[object], None]:
    """Return what happens behind the chunk of that number."""
    seen: list[object] = []

    def progress(each: object) -> None:
        seen.append(each)
        if len(seen) == at:
            happens()

    return progress


def test_what_another_process_writes_meanwhile_is_not_overwritten(cluster: Cluster, reread: list[int]) -> None:
    def write() -> None:
        lines = (
            job_row(10**6 + each, User=f"u{each:02}", Submit=f"2026-06-{day:02}T10:00:00") for each in range(60)
            for day in (2, 12, 20)
        )  # fmt: skip
        stream_records(cluster, list(SacctReader(io.BytesIO(text(*lines)), now_s=1_790_000_000)))

    ingest(cluster, many(600), progress=once(write, 6))
    assert sum(reread) > 0
    assert not RollupDirty.objects.exists()
    assert_exact()


def test_once_somebody_else_recomputed_nothing_is_certain(
    cluster: Cluster, reread: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where this process was stopped for longer than its lease."""

    def refresh() -> None:
        monkeypatch.setattr(job_indexes, "is_loading", lambda: False)
        assert services.refresh(cluster=cluster)
        before.append(len(written))

    written, before = list[int](), list[int]()
    write = rollups.write_computed
    monkeypatch.setattr(rollups, "write_computed", lambda *args: written.append(1) or write(*args))
    ingest(cluster, many(600), progress=once(refresh, 4))
    assert before == [len(written)]
    assert sum(reread) > 0
    assert not RollupDirty.objects.exists()
    assert_exact()


def test_an_interrupted_load_leaves_the_rest_marked(cluster: Cluster) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest(cluster, many(600), progress=once(interrupt, 6))
    assert RollupDay.objects.exists()
    assert RollupDirty.objects.exists()
    ingest(cluster, many(600))
    assert Job.objects.count() == 600
    assert not RollupDirty.objects.exists()
    assert_exact()
