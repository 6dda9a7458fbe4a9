"""What a collector sends is taken once, part by part, and explains sessions and jobs."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.core import clock
from portal.core.errors import Invalid, NotAllowed
from portal.core.models import AuditEvent
from principals.models import AgentSession, User
from telemetry import services
from telemetry.models import (
    ActivityDirty,
    ActivityMinute,
    ActivitySubmission,
    CollectorReport,
    ExperimentLoop,
    IngestSource,
    Job,
    PollingLoop,
)
from telemetry.services.activity.silence import SILENT
from tests import factories
from tests.conftest import Cast
from tests.telemetry.activity_batches import (
    AGENT,
    BOOT,
    SHELL,
    agent_session,
    batch,
    counted,
    minute,
    reasons,
    record,
    shell_session,
)
from tests.telemetry.logs import ingest, iso, job_row, text

pytestmark = [pytest.mark.django_db, pytest.mark.sql, pytest.mark.usefixtures("standing_clock")]


def whole(**fields: Any) -> dict[str, Any]:
    """A batch with one part of each kind."""
    return {
        "batch": str(uuid4()), "sessions": [agent_session()],
        "minutes": [counted(), counted("", "human", commands=7), counted("", "unknown", commands=2)],
        "submissions": [{"session": AGENT, "at": minute(9)}] * 2,
        "polling": [{"session": AGENT, "first": minute(80), "last": minute(8), "queries": 40, "period_s": 5.0}],
        "loops": [{"session": AGENT, "submitted": minute(60), "again": minute(9)}],
    } | fields  # fmt: skip


def test_it_works(cast: Cast):
    recorded = record(cast.cluster, **whole())
    assert recorded.accepted == {"sessions": 1, "minutes": 3, "submissions": 2, "polling": 1, "loops": 1, "ssh": 0}
    assert recorded.rejected == []
    session = AgentSession.objects.get()
    assert (session.agent, session.process, session.source) == (cast.agent, f"{BOOT}/{AGENT}", "collector")
    assert (session.last_seen, session.ended) == (minute(9), None)
    kept = ActivityMinute.objects.order_by("driver").values_list("driver", "session", "counts__commands")
    assert list(kept) == [("agent", session.pk, 3), ("human", None, 7), ("unknown", None, 2)]
    assert ActivitySubmission.objects.get().number == 2
    assert PollingLoop.objects.get().period_s == 5.0
    assert ExperimentLoop.objects.get().seconds == 51 * 60
    report = CollectorReport.objects.get()
    assert (report.host, report.mode, report.argv_missed, report.accepted) == ("login1", "events", 2, 8)
    assert 60 <= report.lag_s < 180
    source = IngestSource.objects.get()
    assert (source.name, source.kind, source.last_record_at) == ("login1", "activity", minute(1))
    assert AuditEvent.objects.filter(verb="ingest.activity").count() == 1
    cast.agent.refresh_from_db()
    assert cast.agent.last_seen == minute(9)


def test_sending_a_batch_again_changes_nothing(cast: Cast):
    sent = whole()
    first = record(cast.cluster, **sent)
    tables = (
        AgentSession,
        ActivityMinute,
        ActivitySubmission,
        PollingLoop,
        ExperimentLoop,
        CollectorReport,
        AuditEvent,
    )

    def stored() -> list[list[Any]]:
        return [list(table.objects.order_by("pk").values()) for table in tables]

    before = stored()
    ActivityDirty.objects.all().delete()
    again = record(cast.cluster, **sent)
    assert again == first
    assert stored() == before
    assert not ActivityDirty.objects.exists()


def test_a_minute_in_which_the_collector_was_started_anew_has_two_rows(cast: Cast):
    record(cast.cluster, sessions=[agent_session()], minutes=[counted(), counted("", "unknown")])
    second = {"run": str(uuid4()), "minutes": [counted(), counted("", "unknown")]}
    assert record(cast.cluster, **second).accepted["minutes"] == 2
    assert ActivityMinute.objects.count() == 4


def test_a_session_is_known_by_its_process_though_its_start_is_reckoned_anew(cast: Cast):
    record(cast.cluster, sessions=[agent_session()])
    later = agent_session(start=minute(70) + timedelta(seconds=1), last=minute(2), end=minute(1))
    record(cast.cluster, sessions=[later])
    session = AgentSession.objects.get()
    assert (session.started, session.last_seen, session.ended) == (minute(70), minute(2), minute(1))
    other_boot = {"boot": "b2", "sessions": [agent_session()]}
    record(cast.cluster, **other_boot)
    record(cast.cluster, host="login2", sessions=[agent_session()])
    assert AgentSession.objects.count() == 3, "process ids start anew with each boot, and on each node"


def test_two_processes_that_started_in_one_second_are_two_sessions(cast: Cast):
    record(cast.cluster, sessions=[agent_session(), agent_session(id="813-99731")])
    assert AgentSession.objects.count() == 2


def test_a_shell_that_becomes_a_harness_is_both(cast: Cast):
    study(cast)
    both = [shell_session(id=AGENT, user="colleague", end=minute(20), last=minute(20)), agent_session(start=minute(20))]
    recorded = record(cast.cluster, study="spring", sessions=both, minutes=[counted(AGENT, "human"), counted()])
    assert recorded.rejected == []
    assert dict(ActivityMinute.objects.values_list("driver", "session__kind")) == {
        "human": "interactive", "agent": "agent",
    }  # fmt: skip


def test_a_process_keeps_its_login_name_and_harness(cast: Cast):
    record(cast.cluster, sessions=[agent_session()])
    others = [agent_session(user="pi"), agent_session(harness="codex")]
    recorded = record(cast.cluster, sessions=others, minutes=[counted()])
    assert reasons(recorded) == [("sessions", 0, "process_differs"), ("sessions", 1, "process_differs")]
    assert recorded.accepted == {"sessions": 0, "minutes": 1, "submissions": 0, "polling": 0, "loops": 0, "ssh": 0}
    assert AgentSession.objects.get().cluster_user.login == "colleague"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (lambda: {"id": "812"}, "session_id_invalid"),
        (lambda: {"id": "812-1\n"}, "session_id_invalid"),
        (lambda: {"last": minute(90)}, "end_before_start"),
        (lambda: {"end": minute(90)}, "end_before_start"),
        (lambda: {"last": clock.now() + timedelta(hours=1)}, "future_date"),
        (lambda: {"harness": "nosuch"}, "unknown_harness"),
        (lambda: {"user": "two words"}, "user_invalid"),
        (lambda: {"kind": "interactive", "harness": ""}, "no_study"),
    ],
)
def test_a_session_that_cannot_be_is_refused_and_the_rest_is_taken(
    cast: Cast, fields: Callable[[], dict[str, Any]], reason: str
):
    recorded = record(cast.cluster, sessions=[agent_session(**fields()), agent_session(id="900-1")])
    assert reasons(recorded) == [("sessions", 0, reason)]
    assert recorded.rejected[0].remedy
    assert AgentSession.objects.get().process.endswith("/900-1")


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (lambda: counted(driver="unknown"), "session_on_unknown"),
        (lambda: counted(session="9-9"), "session_unknown"),
        (lambda: counted(session="\0"), "session_unknown"),
        (lambda: counted() | {"minute": minute(10) + timedelta(seconds=1)}, "minute_not_whole"),
        (lambda: counted(ago=40), "outside_batch"),
        (lambda: counted(ago=-3), "outside_batch"),
        (lambda: counted() | {"counts": {}}, "counts_empty"),
        (lambda: counted(rm_minus_rf=1), "measure_unknown"),
        (lambda: counted(commands=0), "count_out_of_range"),
        (lambda: counted(commands=10**12), "count_out_of_range"),
        (lambda: counted(category__build=2), "counts_contradict"),
        (lambda: counted(scheduler_query=4), "counts_contradict"),
        (lambda: counted() | {"counts": {"category:text": 1}}, "counts_contradict"),
        (lambda: counted(driver="human"), "no_study"),
        (lambda: counted(ago=11), "minute_twice"),
    ],
)
def test_a_minute_that_cannot_be_is_refused_and_the_rest_is_taken(
    cast: Cast, part: Callable[[], dict[str, Any]], reason: str
):
    recorded = record(cast.cluster, sessions=[agent_session()], minutes=[counted(ago=11), part(), counted(ago=12)])
    assert reasons(recorded) == [("minutes", 1, reason)]
    assert recorded.rejected[0].remedy
    assert ActivityMinute.objects.count() == 2


def test_acts_that_cannot_be_are_refused_and_the_rest_is_taken(cast: Cast):
    recorded = record(
        cast.cluster, sessions=[agent_session()],
        submissions=[
            {"session": "", "at": minute(9)}, {"session": AGENT, "at": minute(40)}, {"session": AGENT, "at": minute(9)},
            {"session": "7-7", "at": minute(9)},
        ],
        polling=[
            {"session": AGENT, "first": minute(8), "last": minute(9), "queries": 4, "period_s": 5},
            {"session": AGENT, "first": minute(9), "last": minute(8), "queries": 1, "period_s": 5},
            {"session": AGENT, "first": minute(9), "last": minute(8), "queries": 9, "period_s": float("nan")},
        ],
        loops=[
            {"session": AGENT, "submitted": minute(60 * 24 * 400), "again": minute(9)},
            {"session": AGENT, "submitted": minute(9), "again": minute(-60)},
        ],
    )  # fmt: skip
    assert reasons(recorded) == [
        ("loops", 0, "too_old"), ("loops", 1, "future_date"), ("polling", 0, "end_before_start"),
        ("polling", 1, "queries_out_of_range"), ("polling", 2, "queries_out_of_range"),
        ("submissions", 0, "session_missing"), ("submissions", 1, "outside_batch"),
        ("submissions", 3, "session_unknown"),
    ]  # fmt: skip
    assert all(each.remedy for each in recorded.rejected)
    assert (ActivitySubmission.objects.count(), PollingLoop.objects.count(), ExperimentLoop.objects.count()) == (
        1,
        0,
        0,
    )
    assert CollectorReport.objects.get().reasons["queries_out_of_range"] == 2


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        (lambda: {"host": "log in"}, "host_invalid"),
        (lambda: {"to": minute(20)}, "end_before_start"),
        (lambda: {"to": clock.now() + timedelta(hours=1)}, "future_date"),
        (lambda: {"from": clock.now().replace(year=1971)}, "past_date"),
    ],
)
def test_a_batch_that_makes_no_sense_is_refused_whole(cast: Cast, fields: Callable[[], dict[str, Any]], code: str):
    with pytest.raises(Invalid) as refused:
        record(cast.cluster, **fields(), sessions=[agent_session()])
    assert (refused.value.code, bool(refused.value.remedy)) == (code, True)
    assert not AgentSession.objects.exists()


def test_a_batch_cut_short_is_whole_when_it_is_sent_again(cast: Cast, monkeypatch: pytest.MonkeyPatch):
    sent = whole()
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr("telemetry.services.activity.storing.store_loops", lambda *_: 1 / 0)
        record(cast.cluster, **sent)
    assert not CollectorReport.objects.exists() and not ActivitySubmission.objects.exists()
    assert record(cast.cluster, **sent).rejected == []
    assert (ActivityMinute.objects.count(), PollingLoop.objects.count()) == (3, 1)
    assert AuditEvent.objects.filter(verb="ingest.activity").count() == 1


def test_many_minutes_are_written_slice_by_slice(cast: Cast, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("telemetry.services.activity.record.SLICE", 4)
    sessions = [agent_session(id=f"{number}-1") for number in range(1, 10)]
    record(cast.cluster, sessions=sessions, minutes=[counted(each["id"]) for each in sessions])
    assert ActivityMinute.objects.values("session").distinct().count() == 9


def test_queries_do_not_grow_with_minutes(cast: Cast, django_assert_max_num_queries):
    sessions = [agent_session()]
    record(cast.cluster, sessions=sessions)
    minutes = [counted(ago=ago, driver=driver, session=AGENT if driver == "agent" else "")
               for ago in range(2, 15) for driver in ("agent", "human", "unknown")]  # fmt: skip
    with django_assert_max_num_queries(45):
        record(cast.cluster, sessions=sessions, minutes=minutes)
    assert ActivityMinute.objects.count() == len(minutes)


def test_queries_do_not_grow_with_sessions_that_go_on(cast: Cast):
    def asked(number: int) -> int:
        sessions = [agent_session(id=f"{each}-1", last=minute(9)) for each in range(1, number + 1)]
        record(cast.cluster, sessions=sessions)
        later = [each | {"last": minute(8)} for each in sessions]
        with CaptureQueriesContext(connection) as queries:
            record(cast.cluster, sessions=later, minutes=[counted(each["id"], ago=8) for each in later])
        return len(queries)

    few = asked(3)
    AgentSession.objects.all().delete()
    assert asked(40) == few
    assert set(AgentSession.objects.values_list("last_seen", flat=True)) == {minute(8)}


def test_it_validates_who_may_feed(cast: Cast):
    from telemetry.api.activity import batch_of
    from telemetry.schemas import ActivityIn

    for user in (cast.pi, cast.auditor):
        with pytest.raises(NotAllowed):
            services.record_activity(
                actor=factories.actor_of(user), cluster=cast.cluster,
                batch=batch_of(ActivityIn.model_validate(batch())),
            )  # fmt: skip


# --- the end of sessions -----------------------------------------------------------------------------------
def test_a_host_that_is_booted_anew_ends_what_ran_before(cast: Cast):
    ingest(cast.cluster, text(job_row(1, User="colleague", Submit=iso(60 * 4), Start="Unknown", State="PENDING",
                                      End="Unknown", Elapsed="00:00:00")))  # fmt: skip
    record(cast.cluster, sessions=[agent_session(last=minute(20))])
    record(cast.cluster, host="login2", sessions=[agent_session(last=minute(20))])
    assert Job.objects.get().actor == "agent"
    AgentSession.objects.filter(host="login2").update(ended=minute(30))
    record(cast.cluster, boot="b2", run=str(uuid4()))
    assert AgentSession.objects.get(host="login1").ended == minute(20)
    assert Job.objects.get().actor == "unknown", "it was submitted after that end"


def test_what_ended_while_no_collector_was_there_ends_when_one_begins_anew(cast: Cast):
    idle, gone = agent_session(id="900-1", last=minute(20)), agent_session(last=minute(20))
    record(cast.cluster, sessions=[idle, gone])
    began = {"from": minute(5) + timedelta(seconds=7), "run": str(uuid4()), "sessions": [idle]}
    record(cast.cluster, **began | {"mode": "records", "run": str(uuid4())})
    assert not AgentSession.objects.exclude(ended=None).exists(), "who hears of commands alone knows nothing of it"
    record(cast.cluster, **began)
    assert dict(AgentSession.objects.values_list("process", "ended")) == {
        f"{BOOT}/900-1": None, f"{BOOT}/{AGENT}": minute(20),
    }  # fmt: skip
    record(cast.cluster, **began | {"batch": str(uuid4()), "sessions": []})
    assert AgentSession.objects.filter(ended=None).count() == 1, "a later batch names what does something alone"


def test_a_late_batch_of_an_earlier_boot_ends_nothing(cast: Cast):
    record(cast.cluster, boot="b2", sessions=[agent_session(start=minute(5), last=minute(4))])
    record(cast.cluster, **{"from": minute(60), "to": minute(30)})
    assert AgentSession.objects.get().ended is None


def test_a_session_nobody_hears_of_ends_when_it_was_last_seen_and_opens_when_it_goes_on(cast: Cast):
    with clock.at(clock.now() - SILENT - timedelta(hours=1)):
        record(cast.cluster, sessions=[agent_session(), agent_session(id="900-1", last=minute(1))])
        seen = minute(9)
        declared = AgentSession.objects.create(
            cluster=cast.cluster, cluster_user=cast.cluster.cluster_users.get(login="pi"), host="login1",
            harness="codex", started=minute(90),
        )  # fmt: skip
    record(cast.cluster, sessions=[agent_session(id="900-1", start=minute(60))])
    assert services.end_silent_sessions() == 1
    silent = AgentSession.objects.get(process=f"{BOOT}/{AGENT}")
    declared.refresh_from_db()
    assert (silent.ended, declared.ended) == (seen, None)
    assert services.end_silent_sessions() == 0
    record(cast.cluster, sessions=[agent_session(start=silent.started)])
    silent.refresh_from_db()
    assert (silent.ended, silent.last_seen) == (None, minute(9))


def test_shells_end_with_the_study_that_looked_at_them(cast: Cast):
    running = study(cast)
    record(cast.cluster, study="spring", sessions=[agent_session(), shell_session()])
    assert services.end_silent_sessions() == 0
    services.end_study(actor=factories.actor_of(cast.staff), study=running)
    assert services.end_silent_sessions() == 1
    assert dict(AgentSession.objects.values_list("kind", "ended")) == {"interactive": minute(9), "agent": None}


# --- studies -----------------------------------------------------------------------------------------------
def study(cast: Cast, **fields: Any):
    given = {
        "name": "spring", "purpose": "A baseline for agents.", "approved_by": "IRB 2026-114",
        "starts": clock.now() - timedelta(days=1), "until": clock.now() + timedelta(days=7),
    } | fields  # fmt: skip
    return services.start_study(actor=factories.actor_of(cast.staff), cluster=cast.cluster, **given)


def observed() -> dict[str, Any]:
    """A person's shell as a collector in a study sends it."""
    return {
        "study": "spring", "sessions": [shell_session()], "minutes": [counted(SHELL, "human")],
        "submissions": [{"session": SHELL, "at": minute(9)}],
        "polling": [{"session": SHELL, "first": minute(9), "last": minute(8), "queries": 4, "period_s": 5}],
        "loops": [{"session": SHELL, "submitted": minute(9), "again": minute(8)}],
    }  # fmt: skip


def test_in_a_study_people_are_observed_and_their_rows_say_in_which(cast: Cast):
    running = study(cast)
    assert record(cast.cluster, **observed()).rejected == []
    assert ActivityMinute.objects.get().study == running
    assert AgentSession.objects.get().kind == "interactive"
    assert PollingLoop.objects.count() == ExperimentLoop.objects.count() == ActivitySubmission.objects.count() == 1


def test_a_shell_that_a_study_observes_is_not_the_labs_to_see(cast: Cast):
    study(cast)
    record(cast.cluster, study="spring", sessions=[agent_session(), shell_session(user="colleague")])

    def seen(user: User) -> list[str]:
        rows = AgentSession.objects.visible_to(factories.actor_of(user))
        return list(rows.order_by("kind").values_list("kind", flat=True))

    assert seen(cast.colleague) == seen(cast.staff) == ["agent", "interactive"]
    assert (seen(cast.pi), seen(cast.outsider)) == (["agent"], [])


def test_without_a_study_that_runs_nothing_of_a_persons_shell_is_taken(cast: Cast):
    def nothing_is_taken(**fields: Any) -> None:
        recorded = record(cast.cluster, **observed() | fields)
        assert {each.reason for each in recorded.rejected} <= {"no_study", "session_unknown"}
        assert sum(recorded.accepted.values()) == 0
        assert not AgentSession.objects.exists() and not ActivityMinute.objects.exists()

    nothing_is_taken()
    study(cast, name="autumn")
    nothing_is_taken()
    nothing_is_taken(study="")
    study(cast, starts=clock.now() + timedelta(days=1))
    nothing_is_taken()
    other = factories.make_cluster("birch")
    services.start_study(
        actor=factories.actor_of(cast.staff), cluster=other, name="winter", purpose="p", approved_by="a",
        until=clock.now() + timedelta(days=1),
    )  # fmt: skip
    nothing_is_taken(study="winter")
    ended = study(cast, name="summer")
    services.end_study(actor=factories.actor_of(cast.staff), study=ended)
    nothing_is_taken(study="summer")


def test_a_study_that_ended_takes_nothing_more_of_a_shell_it_knew(cast: Cast):
    running = study(cast)
    record(cast.cluster, **observed())
    services.end_study(actor=factories.actor_of(cast.staff), study=running)
    later = observed() | {
        "minutes": [counted(SHELL, "human", ago=8)], "submissions": [{"session": SHELL, "at": minute(7)}],
        "polling": [{"session": SHELL, "first": minute(7), "last": minute(6), "queries": 4, "period_s": 5}],
        "loops": [{"session": SHELL, "submitted": minute(7), "again": minute(6)}],
    }  # fmt: skip
    for sessions in ([shell_session(last=minute(2))], []):
        recorded = record(cast.cluster, **later | {"sessions": sessions})
        assert {each.reason for each in recorded.rejected} == {"no_study"}
        assert sum(recorded.accepted.values()) == 0
    assert AgentSession.objects.get().last_seen == minute(9)


# --- audit ----------------------------------------------------------------------------------------------------
def audited(cast: Cast) -> int:
    return AuditEvent.objects.filter(verb="ingest.activity").count()


def test_an_idle_collector_leaves_one_audit_row_a_day(cast: Cast):
    with clock.at(clock.now().replace(hour=12)):
        for ago in (30, 29, 28, 27):
            record(cast.cluster, **{"from": minute(ago), "to": minute(ago - 1)})
        assert (CollectorReport.objects.count(), audited(cast)) == (4, 1)
        record(cast.cluster, host="login2")
        assert audited(cast) == 2, "another collector has its own"
        record(cast.cluster, sessions=[agent_session()], minutes=[counted()])
        assert audited(cast) == 3, "what brings something has its row"
        record(cast.cluster, minutes=[counted("1-1")])
        assert audited(cast) == 4, "also what was refused"
    with clock.at(clock.now().replace(hour=12) + timedelta(days=1)):
        for ago in (3, 2):
            record(cast.cluster, **{"from": minute(ago), "to": minute(ago - 1)})
        assert audited(cast) == 5


def test_a_clock_that_is_off_is_kept(cast: Cast):
    sent = batch()
    sent["health"]["clock_ahead_s"] = 240
    record(cast.cluster, health=sent["health"])
    assert CollectorReport.objects.get().clock_ahead_s == 240
