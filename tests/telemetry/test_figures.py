"""Figures: the same facility seen through each selector gives one set of numbers."""

from typing import Any

import pytest
import time_machine

from portal.core.errors import Invalid, NotAllowed
from principals.actors import SYSTEM_ACTOR
from principals.models import LabMembership
from telemetry import figures, selectors, services
from telemetry.engine import cells
from telemetry.figures import FIGURES, Readings, drill_query, measure
from telemetry.selectors import Definition, Period, Scope
from tests import factories
from tests.telemetry.facility import HOUR, Facility, make_facility, make_session
from tests.telemetry.job_rows import DAY_0, make_job

pytestmark = pytest.mark.django_db
JULY = Period.month(2026, 7)


@pytest.fixture
def facility(db: None) -> Facility:
    return make_facility()


@pytest.fixture
def scope(facility: Facility) -> Scope:
    return Scope(actor=SYSTEM_ACTOR, cluster=facility.cluster, period=JULY)


def test_shares_by_job_count_each_person_once(scope: Scope) -> None:
    found = selectors.shares(scope, Definition.JOB)
    assert found.users == selectors.Split(agent=3, human=5, unknown=1)
    assert found.submissions == selectors.Split(agent=12, human=8, unknown=4)
    assert found.gpu_s == selectors.Split(agent=8 * 30 + 2 * 2 * 2 * HOUR, human=0, unknown=0)
    assert found.submissions.share() == 0.5
    assert found.over_representation("submissions") == pytest.approx(0.5 / (3 / 9))


def test_shares_by_account_count_all_that_an_agent_user_does(facility: Facility, scope: Scope) -> None:
    make_session(facility.users[8], "agent", started=DAY_0 - 900, ended=DAY_0)
    make_session(facility.users[7], "interactive", started=DAY_0)
    found = selectors.shares(scope, Definition.ACCOUNT)
    assert found.users == selectors.Split(agent=4, human=5, unknown=0)
    assert found.submissions == selectors.Split(agent=12 + 1 + 4, human=7, unknown=0)


def test_sessions_outside_the_period_make_no_agent_user(facility: Facility, scope: Scope) -> None:
    make_session(facility.users[8], "agent", started=DAY_0 - 900, ended=DAY_0 - 1)
    make_session(facility.users[8], "agent", started=int(JULY.ends.timestamp()))
    assert selectors.shares(scope, Definition.ACCOUNT).users.unknown == 1


@pytest.mark.parametrize("definition", list(Definition))
def test_days_add_up_to_the_shares(scope: Scope, definition: Definition) -> None:
    whole, days = selectors.shares(scope, definition), selectors.by_day(scope, definition)
    assert len(days) == 31
    for measure_name in ("submissions", "core_s", "gpu_s"):
        for actor in ("agent", "human", "unknown"):
            parts = sum(getattr(day, measure_name).of(actor) for day in days)
            assert parts == getattr(whole, measure_name).of(actor)


def test_harnesses_add_up_to_agents(scope: Scope) -> None:
    loads = selectors.by_harness(scope)
    assert [(load.harness, load.users, load.submissions) for load in loads] == [("claude-code", 2, 10), ("codex", 1, 2)]
    whole = selectors.totals_by_actor(scope)["agent"]
    assert sum(load.core_s for load in loads) == whole.core_s
    assert sum(load.gpu_s for load in loads) == whole.gpu_s


def test_labs_of_fewer_than_five_stand_in_the_rest(scope: Scope) -> None:
    loads = selectors.by_lab(scope)
    # `small` and `mixed` together are three people: the only lab that could be shown goes with them.
    assert loads.rows == ()
    assert loads.rest is not None
    assert (loads.rest.members, loads.withheld, loads.rest.total.submissions) == (3, 2, 24)


def test_labs_are_shown_where_the_rest_is_about_five(facility: Facility, scope: Scope) -> None:
    for _ in range(2):
        make_job(factories.make_cluster_user(facility.cluster, factories.make_user()), facility.mixed, submit=DAY_0)
    services.catch_up(cluster=facility.cluster)
    loads = selectors.by_lab(scope)
    assert [(row.key, row.people, row.agent.submissions, row.daily[0]) for row in loads.rows] == [("big", 6, 10, 10)]
    assert loads.rows[0].agent_people_shown is None
    assert loads.rows[0].agent.cancelled_share == 0.2
    assert sum(row.total.submissions for row in loads.all_rows) == selectors.totals(scope).submissions


def test_partitions_are_compared_with_the_whole(scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "MIN_PEOPLE", 1)
    loads = {load.key: load for load in selectors.by_partition(scope).rows}
    agents = selectors.totals_by_actor(scope)["agent"]
    assert selectors.over_representation(loads["test"], selectors.totals(scope), agents) == 2.0


def test_the_week_is_the_facilitys_own(scope: Scope) -> None:
    week = selectors.hour_of_week(scope)
    assert week.counts["agent"][2][2] == 8  # Wednesday 02:00 in New York
    assert week.counts["human"][2][12] == 8
    assert week.outside_share("agent") == pytest.approx(8 / 12)
    assert week.outside_share("human") == 0
    assert sum(map(sum, week.shares("agent"))) == pytest.approx(1)


def test_the_week_follows_daylight_saving_time(facility: Facility) -> None:
    winter = DAY_0 + (31 + 31 + 30 + 31 + 10) * 86_400  # 11 November, a Wednesday, after the clocks went back
    make_job(facility.users[0], facility.big, submit=winter + 16 * HOUR, actor="agent")
    services.catch_up(cluster=facility.cluster)
    week = selectors.hour_of_week(Scope(SYSTEM_ACTOR, facility.cluster, Period.month(2026, 11)))
    assert week.counts["agent"][2][11] == 1


def test_run_times_by_actor(scope: Scope) -> None:
    found = selectors.runtimes(scope)
    assert found["agent"].share_within(60) == pytest.approx(8 / 12)
    assert found["human"].share_within(60) == 0
    assert found["agent"].jobs == 12
    assert found["agent"].cumulative()[-1][1] == 1.0
    assert found["unknown"].median_s is not None


def test_outcomes_and_waits_by_actor(scope: Scope) -> None:
    found = selectors.totals_by_actor(scope)
    assert found["agent"].cancelled_share == pytest.approx(2 / 12)
    assert found["agent"].mean_wait_s == pytest.approx(80 / 12)
    assert found["human"].mean_wait_s == pytest.approx((60 + 4 * 120) / 8)
    assert found["agent"].lost_share == pytest.approx(2 * 120 / found["agent"].ended_core_s)


def test_a_pi_sees_the_lab_and_nobody_else(facility: Facility) -> None:
    pi = factories.make_user()
    LabMembership.objects.create(lab=facility.small, user=pi, role="pi")
    actor = factories.actor_of(pi)
    assert selectors.totals(Scope(actor, facility.cluster, JULY)).submissions == 5
    assert selectors.totals(Scope(actor, facility.cluster, JULY, lab=facility.big)).submissions == 0
    with pytest.raises(NotAllowed):
        selectors.hour_of_week(Scope(actor, facility.cluster, JULY))
    hidden = measure("hour-of-week", Readings(Scope(actor, facility.cluster, JULY)))
    assert hidden is not None
    assert (hidden.value, hidden.rows) == (None, ())


def test_agents_are_summed_with_what_receipts_alone_declare(cast: Any) -> None:
    user = cast.colleague.cluster_users.get()
    given = {"submit": DAY_0, "start": DAY_0, "end": DAY_0 + HOUR, "agent": cast.agent, "cpus": 2}
    make_job(user, cast.lab, **given, state="CANCELLED")
    scope = Scope(factories.actor_of(cast.pi), cast.cluster, JULY, lab=cast.lab)
    (load,) = selectors.by_agent(scope)
    assert (load.agent, load.submissions, load.core_hours, load.cancelled_share) == (cast.agent, 1, 2.0, 1.0)


def test_session_ages_end_with_the_period(facility: Facility, scope: Scope) -> None:
    for user in facility.users[:5]:
        make_session(user, "agent", started=DAY_0)
        make_session(user, "interactive", started=DAY_0, ended=DAY_0 + HOUR)
    with time_machine.travel(DAY_0 + 2 * HOUR, tick=False):
        found = measure("session-age", Readings(scope))
    assert found is not None
    assert [row.values for row in found.rows] == [(7200.0, 5, 5), (3600.0, 5, 5)]


def test_sessions_of_few_people_are_left_out(facility: Facility, scope: Scope) -> None:
    make_session(facility.users[0], "agent", started=DAY_0)
    found = measure("session-age", Readings(scope))
    assert found is not None
    assert found.value is None
    assert "left out" in found.note


def test_every_figure_of_the_paper_is_there_measured_or_named(scope: Scope) -> None:
    readings = Readings(scope)
    for key, figure in FIGURES.items():
        found = measure(key, readings)
        assert figure.definition and figure.population and figure.title, key
        assert (found is None) == bool(figure.needs), key
        if found is not None:
            assert all(len(row.values) == len(found.columns) for row in found.rows), key


def test_rows_add_up_to_the_totals(scope: Scope) -> None:
    readings = Readings(scope)
    whole = readings.totals
    amounts = {"submissions": whole.submissions, "core_s": whole.core_hours, "gpu_s": whole.gpu_hours}
    for definition in Definition:
        for title, amount in zip(("submissions", "core-hours", "GPU-hours"), amounts.values(), strict=True):
            found = measure(f"share-{title}-{definition}", readings)
            assert found is not None
            assert sum(row.values[0] or 0 for row in found.rows) == pytest.approx(amount, rel=1e-12)
    for key in ("labs", "partitions"):
        found = measure(key, readings)
        assert found is not None
        assert sum(row.values[1] or 0 for row in found.rows) == whole.submissions


def test_a_figure_drills_to_its_jobs(facility: Facility, scope: Scope) -> None:
    found = measure("share-submissions-job", Readings(scope))
    assert found is not None
    url = drill_query(FIGURES["share-submissions-job"], scope)
    assert url == "cluster=aster&from=2026-07-01&to=2026-07-31&actor=agent"
    assert drill_query(FIGURES["share-submissions-job"], scope, found.rows[1]).endswith("&actor=human")
    by_account = measure("share-submissions-account", Readings(scope))
    assert by_account is not None
    assert drill_query(FIGURES["share-submissions-account"], scope, by_account.rows[0]) == ""


def test_all_figures_take_a_bounded_number_of_queries(scope: Scope, django_assert_max_num_queries: Any) -> None:
    readings = Readings(scope)
    with django_assert_max_num_queries(33):
        for key in FIGURES:
            measure(key, readings)


def test_an_empty_period_says_nothing_rather_than_zero(facility: Facility) -> None:
    readings = Readings(Scope(SYSTEM_ACTOR, facility.cluster, Period.month(2025, 1)))
    for key in ("share-people-account", "cancelled", "runtime-median", "labs", "outside-working-hours", "partitions"):
        found = measure(key, readings)
        assert found is not None
        assert found.value is None, key


@pytest.mark.parametrize("text", ["2026-13", "July", "2026-07-01", ""])
def test_a_wrong_month_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        Period.parse_month(text)


def test_periods_know_what_came_before() -> None:
    assert Period.month(2026, 3).previous() == Period.month(2026, 2)
    week = Period(JULY.first, JULY.days[6])
    assert (week.previous().days[0].isoformat(), len(week.previous().days)) == ("2026-06-24", 7)
    with pytest.raises(Invalid):
        Period(JULY.last, JULY.first)


def test_shares_are_what_figures_say(scope: Scope) -> None:
    readings = figures.Readings(scope)
    for definition in Definition:
        shares = selectors.shares(scope, definition)
        for title, name in (("people", "users"), ("GPU-hours", "gpu_s")):
            found = measure(f"share-{title}-{definition}", readings)
            assert found is not None
            assert found.value == getattr(shares, name).share()
