"""`manage.py simulate`: a facility near the measured one, only into a demo database, the same for the same seed."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from random import Random
from statistics import median
from zoneinfo import ZoneInfo

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from django.db.models import Sum
from hypothesis import given
from hypothesis import strategies as st

from memory.models import Lesson
from policies.models import ExtensionRelease, TrialGrant, TrialRefusal
from policies.selectors import trial_day
from policies.services import settle_trials
from portal.core import clock
from portal.demo import arrivals, cast
from portal.demo.facility import Facility, build_facility
from portal.demo.history import person
from portal.demo.hours import is_office
from portal.demo.live import Simulator
from portal.demo.load import find_demo, load_demo
from portal.demo.plan import AGENT, AGENT_SHARES, HARNESS_SHARES, UNKNOWN_SHARES
from portal.demo.queue import MAX_PENDING, MAX_RUNNING, Queue, next_task
from portal.demo.records import numbers_of, spans_text
from portal.demo.sampling import exact_counts
from portal.demo.scheduler import calls_of
from portal.reports.models import Report
from principals.models import Agent, AgentSession, Cluster, Lab, User
from security.engine.redact import redact
from security.models import Incident
from telemetry.engine.attribution import Matcher, Session
from telemetry.engine.slurm.records import NEVER_ASSIGNED, JobRecord
from telemetry.models import ActivityMinute, CollectorReport, GatewayDay, IngestBatch, Job, JobGpu, JobGpuUse, RollupDay
from tests import factories

ZONE = "America/New_York"
NOW = datetime(2026, 11, 15, 17, 30, tzinfo=UTC)  # the window holds the end of summer time, 1 November
JOBS = 12_000


@pytest.fixture(scope="module")
def facility() -> Facility:
    return build_facility(seed=7, now=NOW, zone=ZONE, jobs=JOBS)


@pytest.fixture(scope="module")
def by_actor(facility: Facility) -> dict[str, list[JobRecord]]:
    """Records by who is seen to have submitted them, from the sessions alone."""
    return attributed(facility)


def attributed(facility: Facility) -> dict[str, list[JobRecord]]:
    matcher = Matcher(
        Session(n, s.login, s.kind, s.harness, s.host, s.started_s, s.ended_s)  # type: ignore[arg-type]
        for n, s in enumerate(facility.sessions)
    )
    found: dict[str, list[JobRecord]] = {"agent": [], "human": [], "unknown": []}
    for record in facility.records:
        answer = matcher.attribute(user=record.user, submit_s=record.submit_s)
        found[answer.actor].append(record)
        if answer.harness:
            found.setdefault(answer.harness, []).append(record)
    return found


def hours(records: list[JobRecord], resource: str) -> float:
    return sum(r.elapsed_s * getattr(r, resource) for r in records if r.started) / 3600


def submissions(records: list[JobRecord]) -> int:
    return sum(record.array_tasks for record in records)


def share(part: float, *wholes: float) -> float:
    return part / sum(wholes)


# --- the generator ---------------------------------------------------------------------------------------
def test_shares_of_agents_are_those_that_were_measured(by_actor: dict[str, list[JobRecord]]) -> None:
    actors = ("agent", "human", "unknown")
    for measure, wanted, unknown in (
        (submissions, AGENT_SHARES.submissions, UNKNOWN_SHARES.submissions),
        (lambda records: hours(records, "cpus"), AGENT_SHARES.core_hours, UNKNOWN_SHARES.core_hours),
        (lambda records: hours(records, "gpus"), AGENT_SHARES.gpu_hours, UNKNOWN_SHARES.gpu_hours),
    ):
        sums = {actor: measure(by_actor[actor]) for actor in actors}
        assert share(sums["agent"], *sums.values()) == pytest.approx(wanted, abs=0.02)
        assert share(sums["unknown"], *sums.values()) == pytest.approx(unknown, abs=0.03)


def test_one_person_in_five_runs_agents(by_actor: dict[str, list[JobRecord]]) -> None:
    users = {actor: {record.user for record in by_actor[actor]} for actor in ("agent", "human", "unknown")}
    everybody = users["agent"] | users["human"] | users["unknown"]
    assert len(everybody) == 62
    assert len({cast.LAB_OF[login].name for login in everybody}) == 12
    assert len(users["agent"]) / len(everybody) == pytest.approx(0.195, abs=0.005)
    assert users["unknown"] >= set(cast.UNSEEN_USERS)


def test_each_harness_has_its_share(by_actor: dict[str, list[JobRecord]]) -> None:
    for harness, wanted in HARNESS_SHARES.items():
        mine = by_actor[harness]
        assert submissions(mine) / submissions(by_actor["agent"]) == pytest.approx(wanted.submissions, abs=0.01)
        assert hours(mine, "cpus") / hours(by_actor["agent"], "cpus") == pytest.approx(wanted.core_hours, abs=0.04)
        assert hours(mine, "gpus") / hours(by_actor["agent"], "gpus") == pytest.approx(wanted.gpu_hours, abs=0.06)


@pytest.mark.parametrize(
    ("actor", "cancelled", "within_minute", "middle_s", "on_test"),
    [("agent", 0.103, 0.327, 193, 0.0107), ("human", 0.023, 0.093, 278, 0.0029)],
)
def test_jobs_run_and_end_as_measured(
    by_actor: dict[str, list[JobRecord]],
    actor: str,
    cancelled: float,
    within_minute: float,
    middle_s: int,
    on_test: float,
) -> None:
    records = by_actor[actor]
    ended = [record for record in records if record.end_s is not None]
    ran = [record.elapsed_s for record in ended if record.started]
    states = Counter(record.state for record in ended)
    assert states["CANCELLED"] / len(ended) == pytest.approx(cancelled, abs=0.004)
    assert sum(seconds <= 60 for seconds in ran) / len(ran) == pytest.approx(within_minute, abs=0.01)
    assert median(ran) == pytest.approx(middle_s, rel=0.06)
    on = submissions([record for record in records if record.partition == "test"])
    assert on / submissions(records) == pytest.approx(on_test, abs=0.0015)
    assert {"COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL"} <= set(states)


def test_agents_work_by_night_and_people_by_the_clock_on_the_wall(by_actor: dict[str, list[JobRecord]]) -> None:
    zone = ZoneInfo(ZONE)
    local = {
        actor: [datetime.fromtimestamp(record.submit_s, UTC).astimezone(zone) for record in by_actor[actor]]
        for actor in ("agent", "human")
    }
    office = {actor: sum(map(is_office, moments)) / len(moments) for actor, moments in local.items()}
    assert office["human"] > 0.65
    assert 0.2 < office["agent"] < 0.5
    change = datetime(2026, 11, 1, 6, tzinfo=UTC)
    for moments in ([m for m in local["human"] if m < change], [m for m in local["human"] if m >= change]):
        assert sum(map(is_office, moments)) / len(moments) > 0.6


def test_sessions_of_agents_last_a_week(facility: Facility) -> None:
    ages = [
        (s.ended_s or facility.now_s) - s.started_s for s in facility.sessions if s.kind == "agent"
    ]  # fmt: skip
    assert 6 < median(ages) / 86_400 < 9
    assert any(session.ended_s is None for session in facility.sessions)


def test_nothing_happens_outside_the_window_or_after_now(facility: Facility) -> None:
    for record in facility.records:
        assert facility.start_s <= record.submit_s < facility.now_s
        assert record.end_s is None or record.end_s <= facility.now_s
        if record.state == "RUNNING":
            assert record.start_s is not None
            assert record.start_s + record.elapsed_s == facility.now_s
    assert any(record.state == "RUNNING" for record in facility.records)


def test_keys_of_records_are_unique_and_some_jobs_were_requeued(facility: Facility) -> None:
    keys = Counter((record.raw_job_id, record.submit_s) for record in facility.records)
    assert max(keys.values()) == 1
    assert len({raw for raw, _ in keys}) < len(keys)
    odd = [record for record in facility.records if record.node_list == NEVER_ASSIGNED and record.start_s is not None]
    assert odd, "some jobs have a start but were never assigned a node"
    assert all(not record.started for record in odd)


def test_the_same_seed_gives_the_same_facility() -> None:
    one, same, other = (build_facility(seed=seed, now=NOW, zone=ZONE, jobs=600) for seed in (3, 3, 4))
    assert one == same
    assert one.records != other.records


def test_keys_in_submit_lines_are_all_found_by_redaction(facility: Facility) -> None:
    marks = ("WANDB_API_KEY=", "HF_TOKEN=", "Authorization: token", "--password ")
    leaks = [r.submit_line for r in facility.records if any(mark in r.submit_line for mark in marks)]
    assert leaks
    for line in leaks:
        assert redact(line, key=b"k" * 32).findings, line


def test_agents_ask_the_scheduler_more_for_each_job(facility: Facility) -> None:
    calls = calls_of(facility, Random(1))
    assert calls == calls_of(facility, Random(1))
    agents = {draft.batch.login for draft in facility.drafts if draft.actor == AGENT}
    jobs = Counter(draft.batch.login in agents for draft in facility.drafts)
    asked: Counter[bool] = Counter()
    for day in calls.values():
        for login, number in day.items():
            asked[login in agents] += number
    assert 2.5 < asked[True] / jobs[True] < 3.3 and 1.6 < asked[False] / jobs[False] < 2.2


@given(st.sets(st.integers(min_value=0, max_value=500), min_size=1))
def test_spans_of_tasks_are_read_as_they_are_written(numbers: set[int]) -> None:
    assert numbers_of(spans_text(sorted(numbers))) == sorted(numbers)


@given(
    st.integers(min_value=0, max_value=10_000),
    st.lists(st.floats(min_value=0.01, max_value=10), min_size=1, max_size=8),
)
def test_exact_counts_sum_to_the_whole(total: int, weights: list[float]) -> None:
    counts = exact_counts(total, dict(enumerate(weights)))
    assert sum(counts.values()) == total
    assert min(counts.values()) >= 0


def test_jobs_of_trials_fit_what_was_granted(facility: Facility) -> None:
    submitted = {(record.user, record.submit_s): record for record in facility.records if record.qos == "trial"}
    used = [plan for plan in facility.trials if plan.submit_s is not None]
    assert len(facility.trials) * 0.5 < len(used) < len(facility.trials)
    for plan in used:
        record = submitted[plan.login, plan.submit_s or 0]
        assert (record.timelimit_s, record.gpus) == (plan.minutes * 60, plan.gpus)
        assert plan.asked_s < record.submit_s < facility.now_s


# --- the queue of the living demo ------------------------------------------------------------------------
def array_waiting(job_id: str, *, tasks: int) -> JobRecord:
    base = int(job_id.partition("_")[0])
    return JobRecord(
        raw_job_id=base, job_id=job_id, user="u0421", uid=20_421, state="PENDING", submit_s=1000, array_job_id=base,
        array_tasks=tasks, nodes=1, cpus=2, partition="shared", timelimit_s=600, node_list=NEVER_ASSIGNED,
    )  # fmt: skip


def test_every_task_of_a_waiting_array_starts_and_ends_under_its_own_number() -> None:
    queue = Queue()
    queue.add(array_waiting("100_[0-2]", tasks=3), "human")
    ended: dict[int, JobRecord] = {}
    for now_s in range(1000, 4000):
        for record in queue.step(now_s):
            if record.end_s is not None:
                ended[record.raw_job_id] = record
    assert set(ended) == {101, 102, 100}
    assert sorted(record.job_id for record in ended.values()) == ["100_0", "100_1", "100_2"]
    assert not queue.waiting
    assert not queue.running


@pytest.mark.parametrize(
    ("kept", "left"),
    [("23,26-27,", "26-27"), ("23,26-27,3", "26-27"), ("23,26-27,30-", "26-27"), ("23,26-27]", "26-27"), ("23,26", "")],
)
def test_an_array_whose_id_was_cut_when_it_was_stored_goes_on(kept: str, left: str) -> None:
    array = array_waiting(f"48213726_[{kept}", tasks=40)
    task, rest = next_task(array)
    assert task.job_id == "48213726_23" and task.array_tasks == 1
    assert (rest.job_id if rest else "") == (f"48213726_[{left}]" if left else "")


# --- the database ----------------------------------------------------------------------------------------
@pytest.fixture(scope="class")
def loaded(django_db_setup: None, django_db_blocker: pytest.FixtureRequest) -> Iterator[Facility]:
    """A small demo, loaded once for the tests that follow and rolled back after them."""
    with django_db_blocker.unblock(), transaction.atomic():  # type: ignore[attr-defined]
        yield load_demo(seed=7, now=NOW, jobs=2000, say=lambda text: None)
        transaction.set_rollback(True)


@pytest.mark.django_db
@pytest.mark.sql
class TestLoaded:
    """What a loaded demo holds. One load serves all: it takes seconds."""

    def test_everything_is_marked_as_demo(self, loaded: Facility) -> None:
        for model in (User, Lab, Cluster):
            assert model.objects.exists()
            assert not model.objects.filter(is_demo=False).exists()
        assert find_demo() == Cluster.objects.get(name="aster")

    def test_every_record_became_a_job_and_none_was_refused(self, loaded: Facility) -> None:
        assert Job.objects.count() == len(loaded.records)
        sums = IngestBatch.objects.exclude(kind="gateway").aggregate(
            made=Sum("created_rows"), bad=Sum("rejected_rows"), keys=Sum("redactions")
        )
        assert sums["made"] == len(loaded.records)
        assert sums["bad"] == 0
        assert sums["keys"] > 0
        assert AgentSession.objects.filter(place="login").count() == len(loaded.sessions) + 1  # a check-in

    def test_gpus_are_used_as_measured_and_every_reading_found_its_job(self, loaded: Facility) -> None:
        assert not JobGpu.objects.filter(job=None).exists()
        uses = Counter(JobGpuUse.objects.values_list("quadrant", flat=True))
        total = sum(uses.values())
        for quadrant, wanted in (("both", 0.21), ("compute", 0.22), ("memory", 0.12), ("low", 0.45)):
            assert uses[quadrant] / total == pytest.approx(wanted, abs=0.08)
        assert {"mig", "fewer", "whole"} <= set(JobGpuUse.objects.values_list("fit", flat=True))

    def test_rollups_agree_with_the_generator(self, loaded: Facility) -> None:
        rows = RollupDay.objects.values("actor").annotate(n=Sum("submissions"), core=Sum("core_s"), gpu=Sum("gpu_s"))
        rollups = {row["actor"]: row for row in rows}
        for actor in ("agent", "human", "unknown"):
            mine = attributed(loaded)[actor]
            assert rollups[actor]["n"] == submissions(mine)
            assert rollups[actor]["core"] / 3600 == pytest.approx(hours(mine, "cpus"))
            assert rollups[actor]["gpu"] / 3600 == pytest.approx(hours(mine, "gpus"))

    def test_members_read_the_last_two_weeks_reports_and_staff_the_months_draft(self, loaded: Facility) -> None:
        reports = {report.period.name: report for report in Report.objects.all()}
        assert {name: report.state for name, report in reports.items()} == {
            "2026-11": "draft", "2026-W44": "published", "2026-W45": "published"
        }  # fmt: skip
        assert reports["2026-W45"].content["before"]["period"] == "2026-W44"
        assert reports["2026-W45"].approved_by == reports["2026-W45"].published_by == cast.STAFF

    def test_agents_stand_where_their_story_says(self, loaded: Facility) -> None:
        status = dict(Agent.objects.values_list("name", "status"))
        expected = {"active": "active", "held": "active", "waiting": "requested"}
        for plan in cast.AGENTS:
            assert status[plan.name] == expected.get(plan.state, plan.state)
        assert AgentSession.objects.filter(agent__name="okafor-docking").exists()
        assert AgentSession.objects.filter(kind="agent", agent=None).exists(), "some harness was never registered"

    def test_history_lies_in_the_past(self, loaded: Facility) -> None:
        assert Agent.objects.filter(created__gt=NOW).count() == 0
        assert Job.objects.filter(changed__gte=NOW - timedelta(hours=2)).count() < len(loaded.records) / 10
        assert Incident.objects.filter(state="new").exists()
        assert Incident.objects.filter(state="resolved").exists()

    def test_every_room_has_something_in_it(self, loaded: Facility) -> None:
        assert TrialGrant.objects.exists()
        assert TrialRefusal.objects.exists()
        assert set(ExtensionRelease.objects.values_list("state", flat=True)) >= {"queued", "admitted", "denied"}
        assert set(Lesson.objects.values_list("scope", flat=True)) == {"project", "lab", "cluster"}
        assert Lesson.objects.filter(status="draft").exists(), "one waits for the PI"

    def test_collectors_told_of_the_sessions_that_are_open(self, loaded: Facility) -> None:
        assert not CollectorReport.objects.filter(rejected__gt=0).exists()
        hosts = set(CollectorReport.objects.values_list("host", flat=True))
        assert hosts == {*cast.LOGIN_NODES, "agents01", "c0042"}
        open_now = AgentSession.objects.filter(kind="agent", ended=None)
        # What a collector tells of is the session that was declared, not another one beside it.
        # One agent checks in by itself.
        assert open_now.count() == 1 + sum(each.kind == "agent" and each.ended_s is None for each in loaded.sessions)
        assert ActivityMinute.objects.filter(session__in=open_now).count() > 500
        assert not ActivityMinute.objects.filter(driver="human", session__isnull=False).exists()

    def test_agents_work_at_all_places_and_no_line_of_the_gateway_was_refused(self, loaded: Facility) -> None:
        elsewhere = Counter(AgentSession.objects.exclude(place="login").values_list("place", flat=True))
        assert elsewhere == {"job": 5, "ssh": 5, "gateway": 5, "agent_host": 6}
        assert not AgentSession.objects.exclude(place="login").filter(ended=None).exists()
        assert set(GatewayDay.objects.values_list("driver", flat=True)) == {"agent", "human", "unknown"}
        assert not IngestBatch.objects.filter(kind="gateway", rejected_rows__gt=0).exists()

    def test_trials_meet_the_jobs_that_were_submitted_for_them(self, loaded: Facility) -> None:
        planned = sum(plan.submit_s is not None for plan in loaded.trials)
        assert TrialGrant.objects.filter(state="used").count() >= planned
        assert TrialGrant.objects.filter(state="expired").exists()
        assert TrialRefusal.objects.filter(code="trials_spent").exists()
        with clock.at(NOW):
            day = trial_day(person(cast.STAFF))
        assert day.used >= planned
        assert day.start_after_s is not None
        assert 20 < day.start_after_s < 300

    def test_a_trial_of_the_living_demo_meets_its_job(self, loaded: Facility, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(arrivals, "wants_trial", lambda rng, group: group.actor == AGENT)
        with clock.at(NOW):
            simulator = Simulator(Cluster.objects.get(name="aster"), seed=3)
        for second in range(1, 60):
            with clock.at(NOW + timedelta(seconds=second)):
                simulator.tick()
        with clock.at(NOW + timedelta(seconds=60)):
            settle_trials()
        used = TrialGrant.objects.filter(job__submit__gt=NOW, state="used")
        assert used.exists()
        for grant in used:
            assert grant.job is not None
            assert (grant.job.qos, grant.job.actor) == ("trial", "agent")
            assert str(grant.job.extra["Comment"]).startswith("trl_")
        simulator.close()

    def test_the_logins_that_are_printed_work(self, loaded: Facility) -> None:
        for login in cast.LOGINS:
            assert User.objects.get(username=login).check_password(cast.PASSWORD)

    def test_a_second_run_changes_nothing(self, loaded: Facility) -> None:
        before, out = Job.objects.count(), StringIO()
        call_command("simulate", stdout=out)
        assert "there already" in out.getvalue()
        assert Job.objects.count() == before

    def test_a_tick_of_the_living_demo_is_stored_and_told(self, loaded: Facility) -> None:
        with clock.at(NOW):
            simulator = Simulator(Cluster.objects.get(name="aster"), seed=1)
        stored = {(job.raw_id, int(job.submit.timestamp())) for job in Job.objects.filter(state="RUNNING")}
        assert set(simulator.queue.running) == stored
        sent = 0
        for second in range(1, 90):
            with clock.at(NOW + timedelta(seconds=second)):
                sent += simulator.tick()
        assert sent >= 45, "something happens at least every two seconds"
        assert Job.objects.filter(submit__gt=NOW).exists()
        assert len(simulator.queue.running) <= MAX_RUNNING
        assert simulator.queue.pending <= MAX_PENDING + 8
        with clock.at(NOW + timedelta(seconds=90)):
            again = Simulator(simulator.cluster, seed=2)
        assert {key: job.end_s for key, job in again.queue.running.items()} == {
            key: job.end_s for key, job in simulator.queue.running.items()
        }
        simulator.close()
        assert not IngestBatch.objects.exclude(state="done").exists()


@pytest.mark.django_db
def test_it_refuses_a_database_with_real_people() -> None:
    factories.make_user("somebody")
    with pytest.raises(CommandError, match="real data \\(user somebody\\)"):
        call_command("simulate", stdout=StringIO())
    assert not Cluster.objects.exists()


@pytest.mark.django_db
def test_it_refuses_a_database_with_a_real_cluster_and_nobody_in_it() -> None:
    factories.make_cluster("borage")
    with pytest.raises(CommandError, match="cluster borage"):
        call_command("simulate", live=True, stdout=StringIO())


@pytest.mark.django_db
@pytest.mark.parametrize("options", [{"now": "soon"}, {"now": "2026-13-01T00:00:00Z"}, {"jobs": 3}])
def test_it_refuses_odd_options(options: dict[str, object]) -> None:
    with pytest.raises(CommandError):
        call_command("simulate", stdout=StringIO(), **options)
