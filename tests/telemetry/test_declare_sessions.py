"""Sessions explain jobs, whichever arrives first."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.core import clock
from portal.core.errors import NotAllowed
from portal.core.models import AuditEvent
from principals.actors import SYSTEM_ACTOR
from principals.models import Agent, AgentSession, Cluster, LabMembership
from principals.services import DeclaredSession, register_agent, retire_agent
from principals.services.agents import Registration
from telemetry import services
from telemetry.engine.slurm.records import JobRecord
from telemetry.models import Job, PendingAttribution, RollupDay, RollupDirty
from telemetry.services import attribution as attribution_services
from telemetry.services import sessions as sessions_services
from telemetry.services.sessions import Declared
from tests import factories
from tests.telemetry.logs import ingest, job_row, stream_records, text

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
SUBMIT = datetime(2026, 7, 1, 10, tzinfo=UTC)  # of the rows of `logs.job_row`


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.make_cluster("aster")


def session(**fields: Any) -> DeclaredSession:
    """A session of two hours around the submit time of `job_row`."""
    given = {
        "login": "ada", "host": "login1", "kind": "agent", "harness": "claude-code",
        "started": SUBMIT - timedelta(hours=1), "ended": SUBMIT + timedelta(hours=1),
    }  # fmt: skip
    return DeclaredSession(**given | fields)


def declare(cluster: Cluster, *sessions: DeclaredSession) -> Declared:
    return services.declare_sessions(actor=SYSTEM_ACTOR, cluster=cluster, sessions=sessions)


def attribution(job: Job | None = None) -> tuple[str, str, str]:
    job = job or Job.objects.get()
    return job.actor, job.harness, job.actor_method


def test_a_job_that_comes_later_is_attributed(cluster: Cluster):
    declare(cluster, session(campaign="dock"))
    ingest(cluster, text(job_row(1)))
    job = Job.objects.get()
    assert attribution(job) == ("agent", "claude-code", "declared_session")
    assert (job.session, job.campaign, job.actor_confidence) == (AgentSession.objects.get(), "dock", 0.95)


def test_a_session_that_comes_later_attributes_the_jobs_and_their_days_again(cluster: Cluster):
    ingest(cluster, text(job_row(1), job_row(2, User="bob"), job_row(3, Submit="2026-07-02T10:00:00", Start="Unknown")))
    services.catch_up(cluster=cluster)
    declared = declare(cluster, session(campaign="dock"))
    assert declared.jobs_changed == 1
    assert RollupDirty.objects.count() == 1
    services.catch_up(cluster=cluster)
    assert attribution(Job.objects.get(raw_id=1))[0] == "agent"
    assert Job.objects.filter(actor="unknown").count() == 2
    assert RollupDay.objects.filter(actor="agent", harness="claude-code", cluster_user__login="ada").exists()


def test_a_jobs_own_campaign_stands_before_that_of_its_session(cluster: Cluster):
    ingest(cluster, text(job_row(1, Comment="campaign=mine")))
    declare(cluster, session(campaign="theirs"))
    assert Job.objects.get().campaign == "mine"


def test_a_session_that_gets_shorter_lets_go_of_jobs(cluster: Cluster):
    declare(cluster, session(ended=None, campaign="dock"))
    ingest(cluster, text(job_row(1)))
    assert attribution()[0] == "agent"
    declared = declare(cluster, session(ended=SUBMIT - timedelta(minutes=30)))
    assert [each.outcome for each in declared.outcomes] == ["changed"]
    assert (attribution(), Job.objects.get().campaign) == (("unknown", "", "none"), "")


def test_sending_a_session_again_changes_nothing(cluster: Cluster):
    start = SUBMIT.replace(microsecond=123_456)
    for expected in ("created", "unchanged"):
        declared = declare(cluster, session(started=start, ended=start + timedelta(hours=1, microseconds=5)))
        assert [each.outcome for each in declared.outcomes] == [expected]
    assert AgentSession.objects.count() == 1


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"login": "two words"}, "user_invalid"),
        ({"host": ""}, "host_invalid"),
        ({"harness": ""}, "harness_invalid"),
        ({"harness": "nosuch"}, "unknown_harness"),
        ({"harness": "Claude-Code"}, "unknown_harness"),
        ({"kind": "interactive"}, "harness_on_interactive"),
        ({"campaign": "c" * 101}, "campaign_too_long"),
        ({"started": clock.now() + timedelta(days=2), "ended": None}, "future_date"),
        ({"ended": SUBMIT - timedelta(days=1)}, "end_before_start"),
        ({"started": datetime.min.replace(tzinfo=UTC)}, "past_date"),
        ({"started": datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))}, "past_date"),
        ({"started": datetime(1970, 1, 1, tzinfo=UTC)}, "past_date"),
    ],
)
def test_a_session_that_cannot_be_is_rejected_and_the_rest_is_taken(cluster: Cluster, fields: dict, reason: str):
    declared = declare(cluster, session(**fields), session())
    assert [(each.outcome, each.reason) for each in declared.outcomes] == [("rejected", reason), ("created", "")]
    assert declared.outcomes[0].remedy


def test_an_unknown_harness_takes_no_jobs_from_a_known_one(cluster: Cluster):
    ingest(cluster, text(job_row(1)))
    declare(cluster, session(), session(harness="nosuch"))
    assert attribution() == ("agent", "claude-code", "declared_session")


def test_a_session_of_many_jobs_attributes_them_chunk_by_chunk(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(attribution_services, "_CHUNK", 2)
    ingest(cluster, text(*(job_row(number) for number in range(1, 8)), job_row(9, User="bob")))
    assert declare(cluster, session(), session(login="bob")).jobs_changed == 8
    assert set(Job.objects.values_list("actor", flat=True)) == {"agent"}
    assert not PendingAttribution.objects.exists()
    assert declare(cluster, session(ended=SUBMIT - timedelta(minutes=30))).jobs_changed == 7


def test_a_process_that_ends_between_two_chunks_leaves_the_rest_to_the_sweep(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(attribution_services, "_CHUNK", 2)
    ingest(cluster, text(*(job_row(number) for number in range(1, 8))))
    with monkeypatch.context() as patch:
        patch.setattr(sessions_services, "attribute_pending", lambda **_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            declare(cluster, session())
    assert Job.objects.filter(actor="agent").count() == 2
    ingest(cluster, text(job_row(8)))  # meanwhile others come, and are attributed at once
    assert Job.objects.filter(actor="agent").count() == 3
    assert services.sweep_attributions() == 5
    services.refresh()
    assert list(RollupDay.objects.filter(submissions__gt=0).values_list("actor", "submissions")) == [("agent", 8)]


def test_a_session_is_tied_to_the_registered_agent_it_fits(cast: Any):
    declare(cast.cluster, session(login="colleague"))
    assert AgentSession.objects.get().agent == cast.agent


def test_a_session_is_a_sight_of_its_agent(cast: Any):
    def seen() -> Any:
        cast.agent.refresh_from_db()
        return cast.agent.last_seen

    assert seen() is None
    declare(cast.cluster, session(login="colleague", ended=SUBMIT + timedelta(hours=1)))
    assert seen() == SUBMIT + timedelta(hours=1)
    declare(cast.cluster, session(login="colleague", started=SUBMIT - timedelta(days=9), ended=SUBMIT))
    assert seen() == SUBMIT + timedelta(hours=1)  # an older one puts nothing back
    before = clock.now()
    open_one = session(login="colleague", started=SUBMIT + timedelta(hours=3), ended=None)
    declare(cast.cluster, open_one)
    first = seen()
    assert before <= first <= clock.now()
    declare(cast.cluster, open_one)  # told again, it is seen again
    assert seen() > first


def register(cast: Any, name: str, **fields: Any) -> Agent:
    """An agent of the colleague, registered in the lab by its PI."""
    given = {"harness": "codex", "purpose": "Folds.", "expires": clock.now() + timedelta(days=9)} | fields
    return register_agent(
        actor=factories.actor_of(cast.pi),
        lab=cast.lab,
        owner=cast.colleague,
        registration=Registration(name=name, **given),
    )


def codex(**fields: Any) -> DeclaredSession:
    return session(**{"login": "colleague", "harness": "codex", "ended": None} | fields)


def test_a_session_that_goes_on_is_given_to_the_agent_registered_meanwhile(cast: Any):
    ingest(cast.cluster, text(job_row(1, User="colleague")))
    over = codex(host="login2", ended=SUBMIT + timedelta(hours=1))
    shell = codex(host="login4", kind="interactive", harness="")
    newest = {"started": SUBMIT - timedelta(minutes=1)}
    declare(cast.cluster, codex(**newest), over, codex(host="login3"), codex(login="pi", host="login5"), shell)
    services.catch_up(cluster=cast.cluster)
    before = list(RollupDay.objects.order_by("pk").values())
    agent = register(cast, "okafor-codex", hosts=["login1", "login2", "login4", "login5"])
    assert [each.host for each in AgentSession.objects.filter(agent=agent)] == ["login1"]
    assert services.sweep_attributions() == 1 and Job.objects.get().agent == agent
    assert AuditEvent.objects.get(verb="agent.register").payload["after"]["sessions_adopted"] == 1
    # Who it was is no part of a rollup: nothing is to be computed anew.
    assert not RollupDirty.objects.exists() and list(RollupDay.objects.order_by("pk").values()) == before
    told = declare(cast.cluster, over, codex(**newest, ended=SUBMIT + timedelta(hours=2))).outcomes
    assert [(each.outcome, each.agent, each.unregistered) for each in told] == [
        ("unchanged", None, "declared_before"), ("changed", agent.name, ""),
    ]  # fmt: skip


@pytest.mark.parametrize("place", list(AgentSession.Place))
@pytest.mark.parametrize("registered", ["before", "meanwhile"])
def test_an_agent_of_some_login_nodes_may_work_in_jobs_and_behind_gateways(cast: Any, place: str, registered: str):
    """On whatever node Slurm gives, and whatever the gateway is called."""
    elsewhere = codex(place=place, host="cn0417")
    if registered == "meanwhile":
        declare(cast.cluster, elsewhere)
    agent = register(cast, "okafor-codex", hosts=["login1"])
    (told,) = declare(cast.cluster, elsewhere).outcomes
    expected = (agent.name, "") if place in ("job", "gateway") else (None, "host_not_allowed")
    assert (told.agent, told.unregistered) == expected


def test_a_session_declared_in_a_job_is_its_agents_once_it_is_seen_there(cast: Any):
    agent = register(cast, "okafor-codex", hosts=["login1"])
    (told,) = declare(cast.cluster, codex(host="cn0417", campaign="dock")).outcomes
    assert told.unregistered == "host_not_allowed", "where it is nobody said"
    declare(cast.cluster, codex(host="cn0417", place="job", process="boot-7-100", raw_job_id=7))
    row = AgentSession.objects.get()
    assert (row.agent, row.place, row.raw_job_id, row.campaign) == (agent, "job", 7, "dock")


def test_of_two_agents_that_would_fit_the_first_registered_keeps_the_session(cast: Any):
    declare(cast.cluster, codex())
    first, second = register(cast, "okafor-first"), register(cast, "okafor-second")
    assert AgentSession.objects.get().agent == first
    declare(cast.cluster, codex(host="login2"))  # of both: of neither
    retire_agent(actor=factories.actor_of(cast.pi), agent=first, reason="done")
    told = declare(cast.cluster, codex(host="login2")).outcomes[0]
    assert (told.agent, told.unregistered) == (None, "declared_before")  # it may be the retired one's that goes on
    register(cast, "okafor-third", harness="aider")
    assert AgentSession.objects.get(host="login2").agent is None
    assert declare(cast.cluster, codex(host="login3")).outcomes[0].agent == second.name


def test_nobody_takes_the_session_of_somebody_who_may_work_for_another_lab(cast: Any):
    LabMembership.objects.create(lab=cast.other_lab, user=cast.colleague, role="member")
    declare(cast.cluster, codex())
    register(cast, "okafor-codex", hosts=["login1"])  # by the PI, for their member
    told = declare(cast.cluster, codex()).outcomes[0]
    assert (told.agent, told.unregistered) == (None, "declared_before")
    other_pi = AgentSession.objects.visible_to(factories.actor_of(cast.outsider))
    assert other_pi.count() == 1, "it is not hidden from the lab whose it may be"
    declare(cast.cluster, codex(host="login2"))
    own = factories.make_agent(cast.lab, cast.colleague, "colleague-codex", harness="codex")
    type(own).objects.filter(pk=own.pk).update(requested_by=cast.colleague, hosts=["login2"])
    assert declare(cast.cluster, codex(host="login2")).outcomes[0].agent == own.name


def test_a_session_that_was_open_at_a_registration_is_tied_when_it_is_told_again(cast: Any):
    """Of a registration at the same moment as the declaration, and of one before sessions were adopted."""
    declare(cast.cluster, codex())
    agent = factories.make_agent(cast.lab, cast.colleague, "okafor-codex", harness="codex")
    (told,) = declare(cast.cluster, codex()).outcomes
    assert (told.outcome, told.agent, told.unregistered) == ("changed", agent.name, "")
    assert AgentSession.objects.get().agent == agent
    agent.refresh_from_db()
    assert agent.last_seen is not None
    assert declare(cast.cluster, codex()).outcomes[0].outcome == "unchanged"


def test_a_registration_that_fails_adopts_nothing(cast: Any, monkeypatch: pytest.MonkeyPatch):
    declare(cast.cluster, codex())
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr("principals.services.agents.place_hold", lambda **_: 1 / 0)
        register(cast, "okafor-codex")
    assert AgentSession.objects.get().agent is None and not AuditEvent.objects.filter(verb="agent.register").exists()


def test_it_validates_who_may_feed(cluster: Cluster):
    actor = factories.actor_of(factories.make_user("someone"))
    with pytest.raises(NotAllowed):
        services.declare_sessions(actor=actor, cluster=cluster, sessions=[session()])


# --- any interleaving ------------------------------------------------------------------------------------
_hours = st.integers(0, 12)
_sessions = st.builds(
    lambda user, harness, start, hours, campaign: session(
        login=user, harness=harness or "", kind="agent" if harness else "interactive",
        started=NOON + timedelta(hours=start), ended=None if hours is None else NOON + timedelta(hours=start + hours),
        campaign=campaign,
    ),
    st.sampled_from(["ada", "bob"]), st.sampled_from(["claude-code", "codex", None]), _hours, _hours | st.none(),
    st.sampled_from(["", "dock"]),
)  # fmt: skip
_jobs = st.builds(
    lambda number, user, hour, campaign: JobRecord(
        number, str(number), user, "PENDING", int(NOON.timestamp()) + hour * 3600, account="chem", campaign=campaign
    ),
    st.integers(1, 8), st.sampled_from(["ada", "bob"]), _hours, st.sampled_from(["", "mine"]),
)  # fmt: skip


class _Undo(Exception):
    pass


def _outcome(events: list[Any]) -> list[tuple[Any, ...]]:
    """Attribution of every job after the events came in this order, each by itself; then all is taken back."""
    found: list[tuple[Any, ...]] = []
    try:
        with transaction.atomic():
            cluster = factories.make_cluster("interleaved")
            for event in events:
                if isinstance(event, JobRecord):
                    stream_records(cluster, [event])
                else:
                    declare(cluster, event)
            names = ("raw_id", "submit", "actor", "harness", "actor_method", "session__started", "session__harness")
            found = list(Job.objects.filter(cluster=cluster).order_by(*names[:2]).values_list(*names, "campaign"))
            raise _Undo
    except _Undo:
        return found


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_interleaving_of_jobs_and_sessions_gives_the_same_attribution(data: st.DataObject):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("telemetry.services.rollups.catch_up", lambda **_: True)
        unique_session = lambda each: (each.login, each.kind, each.harness, each.started)  # noqa: E731
        sessions = data.draw(st.lists(_sessions, min_size=1, max_size=4, unique_by=unique_session))
        jobs = data.draw(st.lists(_jobs, min_size=1, max_size=4, unique_by=lambda each: each.raw_job_id))
        shuffled = data.draw(st.permutations([*sessions, *jobs]))
        expected = _outcome([*sorted(sessions, key=shuffled.index), *jobs])
        assert _outcome(shuffled) == expected
        assert _outcome([*jobs, *sorted(sessions, key=shuffled.index)]) == expected


def test_many_sessions_cost_queries_of_their_hosts_and_not_of_each(
    cluster: Cluster, django_assert_max_num_queries: Any
) -> None:
    many = [session(started=SUBMIT + timedelta(minutes=n), ended=SUBMIT + timedelta(minutes=n + 5)) for n in range(150)]
    declare(cluster, session())
    with django_assert_max_num_queries(40):
        outcomes = declare(cluster, *many, *many[:3]).outcomes
    assert [each.outcome for each in outcomes] == ["created"] * 150 + ["unchanged"] * 3
    assert {each.session_id for each in outcomes} == set(
        AgentSession.objects.exclude(started=session().started).values_list("pk", flat=True)
    )
    with django_assert_max_num_queries(30):
        assert {each.outcome for each in declare(cluster, *many).outcomes} == {"unchanged"}
    assert AgentSession.objects.count() == 151
