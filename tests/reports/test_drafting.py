"""A month is drafted behind the page: asked for in a row, done once, and what fails says why."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pytest
import time_machine

from portal.core import leases, stopping
from portal.core.errors import NotAllowed
from portal.reports import drafting, services, tasks
from portal.reports.models import Drafting, Report, digest_of
from principals.actors import SYSTEM_ACTOR
from telemetry import services as telemetry_services
from telemetry.engine.gpu_use import GpuReading
from telemetry.models import DataGeneration, Job, RollupDay, RollupHistogram, RollupHour, RollupUser, SchedulerCalls
from telemetry.selectors import Period
from tests import factories
from tests.conftest import Cast, sign_in
from tests.telemetry.facility import make_facility, make_session
from tests.telemetry.job_rows import DAY_0, make_job, mark

pytestmark = pytest.mark.django_db
JULY = Period.month(2026, 7)
AUGUST_1 = DAY_0 + 31 * 86_400 + 4 * 3600


@pytest.fixture(autouse=True)
def hints(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What the worker was told to look at."""
    told: list[int] = []
    monkeypatch.setattr(tasks.draft, "delay", told.append)
    return told


@pytest.fixture(autouse=True)
def _august() -> Iterator[None]:
    with time_machine.travel(AUGUST_1, tick=False):
        yield


@pytest.fixture
def staff(cast: Cast) -> Any:
    make_job(cast.cluster.cluster_users.first(), cast.lab, submit=DAY_0)
    return factories.actor_of(cast.staff)


def ask(actor: Any, cast: Cast) -> Drafting:
    return drafting.ask_for_draft(actor=actor, cluster=cast.cluster, period=JULY)


def test_staff_ask_in_the_browser_and_find_the_draft_when_it_is_there(
    cast: Cast, staff: Any, hints: list[int], django_capture_on_commit_callbacks: Any
) -> None:
    browser = sign_in(cast.staff)
    with django_capture_on_commit_callbacks(execute=True):
        page = browser.post("/reports/draft/", {"cluster": "aster", "period": "2026-07"}, follow=True).content.decode()
    assert "July 2026 of aster is being drafted." in page
    assert 'hx-trigger="every 3s"' in page and not Report.objects.exists()
    (told,) = hints
    assert tasks.draft(told)
    page = browser.get("/reports/").content.decode()
    assert Report.objects.get().digest[:12] in page
    assert "being drafted" not in page and 'hx-trigger="every' not in page
    assert (Report.objects.get().built_by, Drafting.objects.count()) == (cast.staff.username, 0)


@pytest.mark.parametrize("role", ["pi", "infosec", "auditor"])
def test_others_may_not_ask_and_are_told_of_nothing(cast: Cast, staff: Any, role: str) -> None:
    with pytest.raises(NotAllowed):
        ask(factories.actor_of(getattr(cast, role)), cast)
    ask(staff, cast)
    assert b"being drafted" not in sign_in(getattr(cast, role)).get("/reports/").content


def test_days_that_have_not_begun_are_not_asked_for(cast: Cast) -> None:
    browser = sign_in(cast.staff)
    for days, status in (({"from": "2200-12-31", "to": "2200-12-31"}, 422), ({"period": "2026-08"}, 302)):
        assert browser.post("/reports/draft/", {"cluster": "aster"} | days).status_code == status
    assert [asked.period.name for asked in Drafting.objects.all()] == ["2026-08"]


def test_what_is_asked_for_twice_is_done_once(cast: Cast, staff: Any) -> None:
    first, second = ask(staff, cast), ask(staff, cast)
    assert first.pk == second.pk
    assert drafting.work_off(first.pk)
    assert not drafting.work_off(first.pk)
    assert Report.objects.get().version == 1


def test_one_worker_at_a_time_and_the_sweep_leaves_it_alone(cast: Cast, staff: Any, hints: list[int]) -> None:
    asked = ask(staff, cast)
    with leases.held(f"report:{asked.pk}", seconds=60):
        assert not drafting.work_off(asked.pk)
        assert tasks.sweep_drafts() == 0
    assert tasks.sweep_drafts() == 1
    assert hints == [asked.pk]


def test_what_is_asked_for_again_meanwhile_is_done_again(
    cast: Cast, staff: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, build = ask(staff, cast), services.build_draft

    def slow(**kwargs: Any) -> Report:
        report = build(**kwargs)
        with time_machine.travel(AUGUST_1 + 5, tick=False):
            ask(staff, cast)
        return report

    monkeypatch.setattr(services, "build_draft", slow)
    drafting.work_off(asked.pk)
    assert Drafting.objects.get().pk == asked.pk


def test_a_fault_is_shown_and_not_tried_again_by_itself(
    cast: Cast, staff: Any, monkeypatch: pytest.MonkeyPatch, hints: list[int]
) -> None:
    asked = ask(staff, cast)
    cast.staff.is_research_computing = False
    cast.staff.save()
    assert not drafting.work_off(asked.pk)
    assert Drafting.objects.get().fault and tasks.sweep_drafts() == 0
    other = factories.make_user("successor", is_research_computing=True)
    page = sign_in(other).get("/reports/").content.decode()
    assert "July 2026 of aster could not be drafted." in page
    again = ask(factories.actor_of(other), cast)

    def broken(**kwargs: Any) -> Report:
        raise RuntimeError("a fault of ours, with words that nobody should read")

    with monkeypatch.context() as patched, pytest.raises(RuntimeError):
        patched.setattr(services, "build_draft", broken)
        drafting.work_off(again.pk)
    assert Drafting.objects.get().fault == drafting.UNEXPECTED
    assert drafting.work_off(ask(factories.actor_of(other), cast).pk)


def test_rollups_that_are_behind_are_waited_for(cast: Cast, staff: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ask(staff, cast)
    with monkeypatch.context() as patched:
        patched.setattr(telemetry_services, "catch_up", lambda **kwargs: False)
        assert not drafting.work_off(asked.pk)
    assert (Drafting.objects.get().fault, tasks.sweep_drafts()) == ("", 1)
    assert drafting.work_off(asked.pk)


def test_a_worker_that_is_to_end_leaves_the_draft_to_the_next(
    cast: Cast, staff: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ask(staff, cast)
    with monkeypatch.context() as patched:
        patched.setattr(stopping, "_asked", True)
        assert not drafting.work_off(asked.pk)
    assert (Drafting.objects.get().fault, tasks.sweep_drafts()) == ("", 1)
    assert drafting.work_off(asked.pk)


def test_the_first_of_the_month_drafts_the_last(cast: Cast, staff: Any) -> None:
    for _ in range(2):
        assert tasks.draft_last_month() == 1
        assert drafting.work_off(Drafting.objects.get().pk)
    report = Report.objects.get()
    assert (report.period, report.state, report.built_by) == (JULY, "draft", "gatehouse")
    services.approve(actor=staff, report=report, digest=report.digest)
    assert tasks.draft_last_month() == 0
    with pytest.raises(NotAllowed):
        drafting.ask_for_last_month(actor=factories.actor_of(cast.pi), today=date(2026, 8, 1))


def test_a_version_says_when_the_data_have_changed_since(cast: Cast, staff: Any) -> None:
    words = b"Data of these days have changed since this version was measured."
    browser = sign_in(cast.staff)

    def is_behind() -> bool:
        return words in browser.get("/reports/aster/2026-07/").content

    services.build_draft(actor=staff, cluster=cast.cluster, period=JULY)
    assert not is_behind()
    job = make_job(cast.cluster.cluster_users.first(), cast.lab, submit=DAY_0, start=DAY_0, end=DAY_0 + 60, gpus=1)
    assert telemetry_services.catch_up(cluster=cast.cluster)
    assert is_behind()
    services.build_draft(actor=staff, cluster=cast.cluster, period=JULY)
    assert not is_behind()
    reading = GpuReading(
        raw_job_id=job.raw_id, gpu="GPU-1", compute_percent=50.0, memory_percent=50.0, measured_s=DAY_0 + 60
    )
    telemetry_services.record_gpu_utilisation(actor=SYSTEM_ACTOR, cluster=cast.cluster, readings=[reading])
    assert is_behind()
    assert telemetry_services.catch_up(cluster=cast.cluster)
    assert is_behind()
    assert words not in sign_in(cast.pi).get("/reports/aster/2026-07/").content


def test_data_of_other_days_do_not_make_a_version_old(cast: Cast, staff: Any) -> None:
    user = cast.cluster.cluster_users.first()
    make_job(user, cast.lab, submit=DAY_0, start=DAY_0, end=DAY_0 + 60)
    report = services.build_draft(actor=staff, cluster=cast.cluster, period=JULY)
    june = make_job(user, cast.lab, submit=DAY_0 - 86_400, start=DAY_0 - 86_400, end=DAY_0 - 86_000)
    make_session(user, "agent", started=DAY_0 - 90_000, ended=DAY_0 - 80_000)
    assert telemetry_services.catch_up(cluster=cast.cluster)
    assert DataGeneration.objects.of(cast.cluster) != report.generation
    assert not services.is_behind(staff, report)
    june.end = june.usage_end = datetime(2026, 7, 1, 1, tzinfo=UTC)  # ran on into the first day
    june.save()
    mark(june)
    assert telemetry_services.catch_up(cluster=cast.cluster)
    assert services.is_behind(staff, report)
    report = services.build_draft(actor=staff, cluster=cast.cluster, period=JULY)
    make_session(user, "agent", started=DAY_0 + 60, ended=DAY_0 + 90)
    DataGeneration.objects.start(cast.cluster)
    assert services.is_behind(staff, report)


@pytest.mark.usefixtures("few_are_shown")
def test_what_is_stored_is_what_the_jobs_say_when_all_is_computed_anew() -> None:
    facility = make_facility()
    cluster, user = facility.cluster, facility.users[0]
    job = make_job(user, facility.big, submit=DAY_0, start=DAY_0, end=DAY_0 + 7200, gpus=1, actor="agent")
    reading = GpuReading(
        raw_job_id=job.raw_id, gpu="GPU-1", compute_percent=9.0, memory_percent=3.0, measured_s=DAY_0 + 60
    )
    telemetry_services.record_gpu_utilisation(actor=SYSTEM_ACTOR, cluster=cluster, readings=[reading])
    SchedulerCalls.objects.create(cluster=cluster, cluster_user=user, day=JULY.first, calls=99)
    make_session(user, "agent", started=DAY_0, ended=DAY_0 + 60)
    asked = drafting.ask_for_draft(actor=SYSTEM_ACTOR, cluster=cluster, period=JULY)
    assert drafting.work_off(asked.pk)
    for model in (RollupDay, RollupUser, RollupHour, RollupHistogram):
        model.objects.all().delete()
    for each in Job.objects.all():
        mark(each)
    telemetry_services.catch_up(cluster=cluster)

    fresh = services.current_content(actor=SYSTEM_ACTOR, cluster=cluster, period=JULY)

    stored = Report.objects.get()
    assert stored.content == fresh
    assert stored.digest == digest_of(fresh)
    values = [figure["value"] for section in fresh["sections"] for figure in section["figures"]]
    assert sum(value is not None for value in values) > 30, "hardly anything was there to be compared"


def test_generations_of_clusters_are_apart(cast: Cast, staff: Any) -> None:
    other = factories.make_cluster("birch")
    telemetry_services.catch_up(cluster=cast.cluster)
    assert (DataGeneration.objects.of(cast.cluster) > 0, DataGeneration.objects.of(other)) == (True, 0)
