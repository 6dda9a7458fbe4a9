"""Who told of changes of jobs, how soon, and how many ends the hooks missed."""

from datetime import timedelta

import pytest

from portal.core import clock, live
from portal.core.live import News
from principals.models import Cluster
from telemetry.metrics import intake_metrics
from telemetry.models import HookReport
from telemetry.selectors import hooks
from telemetry.selectors.hooks import Missed, Teller
from tests import factories
from tests.telemetry.job_rows import make_job

pytestmark = [pytest.mark.django_db, pytest.mark.sql]


@pytest.fixture
def cluster() -> Cluster:
    return factories.make_cluster("aster")


def tell(source: str, *lags: float) -> None:
    payloads = [{"cluster": "aster", "source": source, "lag_s": lag} for lag in lags]
    live.announce(News(name="job.ended", topics=(), payload=payload) for payload in payloads)


def report(cluster: Cluster, raw_id: int, *, ago: timedelta = timedelta(hours=1), **others: object) -> None:
    given = {"kind": "jobcomp", "happened": "ended", "outcome": "applied"} | others
    at = clock.now() - ago
    HookReport.objects.create(cluster=cluster, digest=raw_id, raw_id=raw_id, fired=at, received=at, **given)


def test_without_news_there_is_nothing_to_tell() -> None:
    assert hooks.tellers() == [] and hooks.missed_ends() == []


def test_each_source_has_its_lags(cluster: Cluster) -> None:
    tell("jobcomp", *(number / 10 for number in range(1, 101)))
    tell("slurm_reader", 4.0)
    live.announce([News(name="job.ended", topics=(), payload={"cluster": "aster"})])  # of before there were sources
    report(cluster, 1, repeats=2)
    report(cluster, 2, kind="epilog", outcome="waiting")
    report(cluster, 3, kind="epilog", outcome="unanswered", ago=timedelta(days=2))
    assert hooks.tellers() == [
        Teller("aster", "epilog", received=1, waiting=1),
        Teller("aster", "jobcomp", 100, 5.0, 9.9, received=1, repeats=2),
        Teller("aster", "slurm_reader", 1, 4.0, 4.0),
    ]


def test_ends_that_no_hook_told_of_are_counted_since_hooks_were_heard(cluster: Cluster) -> None:
    user, lab = factories.make_cluster_user(cluster, factories.make_user("iris")), factories.make_lab("chem")
    now_s = clock.now_s()
    ends = {1: 1800, 2: 1500, 3: 1200, 4: 60, 5: 7200, 6: 900}  # raw id: so many seconds ago
    for raw_id, ago_s in ends.items():
        state = "REQUEUED" if raw_id == 6 else "COMPLETED"
        make_job(user, lab, raw_id=raw_id, submit=now_s - 9000, start=now_s - 8000, end=now_s - ago_s, state=state)
    for raw_id in (1, 2):
        report(cluster, raw_id)
    report(cluster, 3, kind="mail", happened="began")
    # 3 was missed; 4 may still come, 5 ended before hooks were heard, 6 goes on.
    assert hooks.missed_ends() == [Missed("aster", ended=3, missed=1)]
    assert hooks.missed_ends()[0].share == pytest.approx(1 / 3)
    tell("jobcomp", 0.5)
    lag, missed = intake_metrics()
    assert [(sample.labels["quantile"], sample.value) for sample in lag.samples] == [("0.5", 0.5), ("0.99", 0.5)]
    assert [sample.value for sample in missed.samples] == [pytest.approx(1 / 3)]
