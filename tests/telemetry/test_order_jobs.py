"""Merged from ranges of an index, a list of jobs is the list that sorting all of them would give."""

from random import Random

import pytest
from django.db.models import QuerySet

from principals.models import AgentSession, LabMembership
from telemetry.models import Job
from telemetry.selectors import MOST_COUNTED, JobFilter, OrderedJobs, job_lists, newest_first, ordered, ranges_of, total
from tests import factories
from tests.conftest import Cast, sign_in
from tests.telemetry.job_rows import DAY_0, make_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def jobs(cast: Cast) -> QuerySet[Job]:
    """Jobs on two clusters, of three people in two labs, several in the same second."""
    rng, birch = Random(1), factories.make_cluster("birch")
    users = list(cast.cluster.cluster_users.all())
    users += [factories.make_cluster_user(birch, person) for person in (cast.colleague, cast.outsider)]
    for _ in range(60):
        at = DAY_0 + rng.randrange(20)
        make_job(rng.choice(users), rng.choice((cast.lab, cast.other_lab)), submit=at, start=at, end=at + 5)
    session = AgentSession.objects.create(
        cluster=cast.cluster, cluster_user=users[0], host="login1", kind="agent", started=DAY_0, agent=cast.agent
    )
    Job.objects.filter(cluster_user=users[0]).update(session=session, agent=cast.agent, actor="agent")
    return Job.objects.all()


@pytest.mark.parametrize("role", ["staff", "auditor", "pi", "manager", "colleague", "outsider"])
@pytest.mark.parametrize("narrowed", ["", "cluster", "user", "lab", "agent"])
@pytest.mark.parametrize(("column", "falling"), [("submit", True), ("submit", False), ("usage_end", True)])
def test_every_page_is_that_of_the_sorted_list(
    cast: Cast, jobs: QuerySet[Job], role: str, narrowed: str, column: str, falling: bool
) -> None:
    actor = factories.actor_of(getattr(cast, role))
    login = cast.cluster.cluster_users.get(user=cast.colleague).login
    known = {"cluster": "aster", "user": login, "lab": "okafor", "agent": cast.agent.name}
    asked = JobFilter(**({narrowed: known[narrowed]} if narrowed else {}))
    seen = asked.apply(Job.objects.visible_to(actor), actor)
    sign = "-" if falling else ""
    expected = list(seen.order_by(f"{sign}{column}", f"{sign}pk"))
    ranges = ranges_of(actor, asked)
    assert ranges is not None
    found = OrderedJobs(seen, ranges, column=column, falling=falling)
    assert [found[at : at + 7] for at in range(0, 70, 7)] == [expected[at : at + 7] for at in range(0, 70, 7)]
    assert found.whole is None or list(found.whole) == expected


def test_whoever_sees_nothing_gets_nothing(cast: Cast, jobs: QuerySet[Job]) -> None:
    stranger = factories.actor_of(factories.make_user("stranger"))
    assert newest_first(Job.objects.visible_to(stranger), stranger, JobFilter())[:50] == []


def test_too_many_ranges_are_sorted(cast: Cast, jobs: QuerySet[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered, "MOST_RANGES", 1)
    actor = factories.actor_of(cast.staff)
    assert ranges_of(actor, JobFilter()) is None
    newest = newest_first(Job.objects.visible_to(actor), actor, JobFilter())
    assert list(newest[:3]) == list(jobs.order_by("-submit", "-pk")[:3])


def test_a_job_that_stops_being_visible_is_not_shown(cast: Cast, jobs: QuerySet[Job]) -> None:
    actor = factories.actor_of(cast.pi)
    LabMembership.objects.filter(user=cast.pi).delete()
    left = factories.actor_of(cast.pi)
    stale = OrderedJobs(
        Job.objects.visible_to(left), ranges_of(actor, JobFilter()) or [], column="submit", falling=True
    )
    assert {job.cluster_user.user for job in stale[:100]} == {cast.pi}


def test_what_rollups_know_to_be_many_is_not_counted(
    cast: Cast, jobs: QuerySet[Job], monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: object
) -> None:
    from telemetry import services

    services.catch_up(cluster=cast.cluster)
    monkeypatch.setattr(job_lists, "MOST_COUNTED", 5)
    actor = factories.actor_of(cast.staff)
    for asked in (JobFilter(), JobFilter(actor="others"), JobFilter(actor="agent")):
        seen = asked.apply(Job.objects.visible_to(actor), actor).filter(cluster=cast.cluster)
        with django_assert_num_queries(1):  # type: ignore[operator]
            found = total(actor, asked, seen)
        assert (found.records, found.exact, found.tasks) == (5, False, seen.count())


def test_the_page_is_in_order_and_names_others_to_nobody(cast: Cast, jobs: QuerySet[Job]) -> None:
    assert jobs.count() < MOST_COUNTED
    page = sign_in(cast.staff).get("/jobs/?page=2").content.decode()
    expected = list(jobs.order_by("-submit", "-pk")[50:60])
    places = [page.index(f"/jobs/{job.pk}/") for job in expected]
    assert places == sorted(places)
    rising = sign_in(cast.staff).get("/jobs/?sort=submit").content.decode()
    first = jobs.order_by("submit", "pk")[0]
    assert f"/jobs/{first.pk}/" in rising
