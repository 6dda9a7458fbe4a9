"""A harness checks in by the API: what is kept, what is refused, what is warned of, and how it ends."""

from datetime import UTC, datetime, time, timedelta

import pytest
from pytest_django import Settings

from portal.core import clock
from principals import services as principal_services
from principals.engine.hours import Hours
from principals.models import Agent, AgentSession, ClusterUser, SessionCheckIn
from tests import factories
from tests.conftest import Api, Cast, sign_in
from tests.dashboard.live_rows import make_job

HERE = {"harness": "claude-code", "host": "login01", "pid": 4711, "model": "opus", "directory": "membrane"}


def _change(cast: Cast, **fields: object) -> None:
    Agent.objects.filter(pk=cast.agent.pk).update(**fields)


def _seen(cast: Cast, number: int, host: str = "login01") -> None:
    login = factories.make_cluster_user(cast.cluster, cast.colleague)
    for each in range(number):
        AgentSession.objects.create(
            cluster=cast.cluster, cluster_user=login, kind="agent", harness="codex", host=host, process=f"b:{each}",
            started=clock.now() - timedelta(hours=3), source="collector",
        )  # fmt: skip


def test_it_is_a_session_of_the_agent(cast: Cast, agent_api: Api) -> None:
    answer = agent_api.post("/sessions", HERE)
    assert answer.status_code == 201
    said = answer.json()
    assert said["warnings"] == [] and said["beat_within_s"] == 900 and said["seen"] is False
    assert said["on_node"] == {"declared": 1, "seen": 0, "limit": 1, "more_are": "advised against"}
    session = AgentSession.objects.get()
    assert (session.agent, session.host, session.source, session.ended) == (cast.agent, "login01", "check-in", None)
    row = SessionCheckIn.objects.get()
    assert (row.pid, row.model, row.directory) == (4711, "opus", "membrane")
    assert [each["id"] for each in agent_api.get("/sessions").json()["items"]] == [said["id"]]
    assert "not_checked_in" not in {item["code"] for item in agent_api.get("/me").json()["missing"]}


def test_it_beats_and_ends(agent_api: Api) -> None:
    here = f"/sessions/{agent_api.post('/sessions', HERE).json()['id']}"
    with clock.at(clock.now() + timedelta(minutes=10)):
        assert agent_api.post(f"{here}/heartbeat").status_code == 200
    with clock.at(clock.now() + timedelta(minutes=20)):
        assert principal_services.end_silent() == 0
        assert agent_api.post(f"{here}/end").json()["how_ended"] == "said"
        assert agent_api.post(f"{here}/end").status_code == 200
        late = agent_api.post(f"{here}/heartbeat")
    assert (late.status_code, late.json()["code"]) == (409, "session_ended")
    assert AgentSession.objects.get().ended is not None
    assert agent_api.get("/sessions").json()["items"] == []


def test_who_falls_silent_has_ended_at_the_last_beat(agent_api: Api) -> None:
    agent_api.post("/sessions", HERE)
    beaten = SessionCheckIn.objects.get().last_beat
    with clock.at(clock.now() + timedelta(minutes=16)):
        assert principal_services.end_silent() == 1
        assert principal_services.end_silent() == 0
    row = SessionCheckIn.objects.get()
    assert (row.how_ended, row.ended) == ("silent", beaten)
    assert AgentSession.objects.get().ended == beaten.replace(microsecond=0)


@pytest.mark.parametrize(
    ("registered", "sent", "status", "code"),
    [
        ({}, {"harness": "codex"}, 422, "harness_differs"),
        ({"hosts": ["login02"]}, {}, 409, "host_not_allowed"),
        ({}, {"cluster": "nowhere"}, 422, "login_unknown"),
        ({}, {"login": "pi"}, 422, "login_unknown"),
        ({}, {"directory": "/home/u/x"}, 422, "invalid"),
        ({}, {"pid": 0}, 422, "invalid"),
    ],
    ids=["harness", "host", "cluster", "login", "path", "pid"],
)
def test_what_does_not_fit_is_refused(
    cast: Cast, agent_api: Api, registered: dict[str, object], sent: dict[str, object], status: int, code: str
) -> None:
    _change(cast, **registered)
    answer = agent_api.post("/sessions", HERE | sent)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json()["remedy"] and not SessionCheckIn.objects.exists()


def test_outside_its_hours_it_does_not_begin(cast: Cast, agent_api: Api) -> None:
    today = datetime.now(UTC)
    other_day = ((today.weekday() + 3) % 7,)
    _change(cast, hours=Hours(other_day, time(8), time(9), "UTC").as_json())
    answer = agent_api.post("/sessions", HERE)
    assert (answer.status_code, answer.json()["code"]) == (409, "outside_hours")


def test_of_several_login_names_one_is_named(cast: Cast, agent_api: Api) -> None:
    ClusterUser.objects.create(cluster=factories.make_cluster("boreas"), login="coll", user=cast.colleague)
    assert agent_api.post("/sessions", HERE).json()["code"] == "login_ambiguous"
    assert agent_api.post("/sessions", HERE | {"cluster": "Boreas"}).status_code == 201
    assert AgentSession.objects.get().cluster_user.login == "coll"


def test_near_the_limit_it_warns_and_above_it_too_where_it_advises(agent_api: Api) -> None:
    warned = [bool(agent_api.post("/sessions", HERE | {"pid": pid}).json()["warnings"]) for pid in (1, 2, 3, 4)]
    assert warned == [False, True, True, True]  # the policy that ships says one
    assert SessionCheckIn.objects.count() == AgentSession.objects.count() == 4


def test_where_it_binds_one_too_many_is_refused(cast: Cast, agent_api: Api, settings: Settings) -> None:
    settings.SESSIONS_PER_NODE, settings.SESSIONS_LIMIT = 2, "refuse"
    assert [agent_api.post("/sessions", HERE | {"pid": pid}).status_code for pid in (1, 2, 3)] == [201, 201, 409]
    refused = agent_api.post("/sessions", HERE).json()
    assert refused["code"] == "too_many_sessions" and "2 checked in and 0 seen on login01" in refused["detail"]
    assert "End another session" in refused["remedy"]
    assert agent_api.post("/sessions", HERE | {"host": "login02"}).status_code == 201
    assert agent_api.post("/sessions", HERE | {"job_id": 77}).status_code == 201  # in a job
    other = factories.make_agent(cast.lab, cast.colleague)
    mine = Api(factories.make_token(other)).post("/sessions", HERE)
    assert mine.json()["code"] == "too_many_sessions"  # another agent of the same person


def test_what_the_collector_saw_counts(cast: Cast, agent_api: Api, settings: Settings) -> None:
    settings.SESSIONS_PER_NODE, settings.SESSIONS_LIMIT = 2, "refuse"
    _seen(cast, 3)
    refused = agent_api.post("/sessions", HERE).json()
    assert refused["code"] == "too_many_sessions" and "0 checked in and 3 seen" in refused["detail"]
    AgentSession.objects.update(ended=clock.now())
    assert agent_api.post("/sessions", HERE).status_code == 201


def test_none_is_any_number(agent_api: Api, settings: Settings) -> None:
    settings.SESSIONS_PER_NODE, settings.SESSIONS_LIMIT = 0, "refuse"
    assert {agent_api.post("/sessions", HERE | {"pid": pid}).status_code for pid in range(1, 5)} == {201}


def test_what_the_collector_sees_of_it_is_the_same_row(cast: Cast, agent_api: Api) -> None:
    here = f"/sessions/{agent_api.post('/sessions', HERE).json()['id']}"
    told = principal_services.DeclaredSession(
        login="colleague", host="login01", kind="agent", harness="claude-code", process="boot:4711:1",
        started=clock.now(), last_seen=clock.now(), source="collector",
    )  # fmt: skip
    principal_services.record_sessions(cluster=cast.cluster, sessions=[told])
    session = AgentSession.objects.get()
    assert (session.process, session.agent) == ("boot:4711:1", cast.agent)
    assert agent_api.post(f"{here}/heartbeat").json()["seen"] is True
    agent_api.post(f"{here}/end")
    session.refresh_from_db()
    assert session.ended is None and session.declaration.ended is not None  # times are the collector's


def test_another_agents_session_is_not_there(cast: Cast, agent_api: Api) -> None:
    here = f"/sessions/{agent_api.post('/sessions', HERE).json()['id']}"
    other = Api(factories.make_token(cast.foreign_agent))
    assert {other.post(f"{here}/{verb}").status_code for verb in ("heartbeat", "end")} == {404}
    assert SessionCheckIn.objects.get().ended is None


def test_its_page_lists_it_beside_what_was_seen(cast: Cast, agent_api: Api) -> None:
    agent_api.post("/sessions", HERE)
    _seen(cast, 4)
    page = sign_in(cast.pi).get("/agents/okafor-docking/").content.decode()
    assert "Checked in now" in page and "process 4711, not seen by a collector" in page and "membrane" in page
    assert "login01: colleague has 1 session checked in, 4 seen by the collector" in page
    assert "limit for a person on a login node is 1: more are advised against" in page


def test_a_secret_in_what_it_says_is_not_kept(agent_api: Api) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    agent_api.post("/sessions", HERE | {"model": secret})
    assert secret[:36] not in SessionCheckIn.objects.get().model


def test_a_flood_of_check_ins_is_slowed_down_and_bounded(
    agent_api: Api, standing_clock: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.checkins.CHECK_INS_PER_MINUTE", 4)
    monkeypatch.setattr("principals.services.sessions.checkins.MOST_OPEN", 2)
    codes = [agent_api.post("/sessions", HERE | {"job_id": each}).status_code for each in (1, 2, 3, 4, 5)]
    assert codes == [201, 201, 409, 409, 429]
    assert SessionCheckIn.objects.count() == AgentSession.objects.count() == 2


@pytest.mark.parametrize("rule", ["limit", "hosts"])
def test_being_in_a_job_lifts_a_rule_only_where_there_is_one(
    cast: Cast, agent_api: Api, settings: Settings, rule: str
) -> None:
    login = factories.make_cluster_user(cast.cluster, cast.colleague)
    make_job(login, cast.lab, raw_id=70, state="RUNNING")
    make_job(login, cast.lab, raw_id=71, state="COMPLETED")
    make_job(factories.make_cluster_user(cast.cluster, cast.pi), cast.lab, raw_id=72, state="RUNNING")
    sent = HERE | {"host": "node7"}
    assert agent_api.post("/sessions", sent | {"job_id": 99}).status_code == 201  # no rule to lift
    if rule == "limit":
        settings.SESSIONS_PER_NODE, settings.SESSIONS_LIMIT = 1, "refuse"
    else:
        _change(cast, hosts=["login01"])
    told = [agent_api.post("/sessions", sent | {"job_id": each}).json() for each in (71, 72, 99)]
    assert {each["code"] for each in told} == {"job_unknown"}
    assert len({each["detail"].replace(str(raw), "N") for each, raw in zip(told, (71, 72, 99), strict=True)}) == 1
    assert agent_api.post("/sessions", sent | {"job_id": 70}).status_code == 201
