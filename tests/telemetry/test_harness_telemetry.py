"""Harness telemetry: who agreed to it, that the same told twice counts once, and that nothing else is kept."""

from datetime import timedelta
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList

from portal.core import clock
from portal.core.errors import Conflict, NotAllowed
from portal.core.models import AuditEvent
from principals.models import AgentSession, User
from principals.permissions import actor_for_agent
from telemetry import services
from telemetry.models import HarnessChoice, HarnessDay, HarnessReading
from telemetry.services.activity.days import MINUTES_KEPT
from telemetry.services.harness import record as recording
from telemetry.services.retention import DAYS_KEPT
from tests import factories
from tests.conftest import Api, Cast
from tests.telemetry.otlp import CUMULATIVE, SESSION, ago, counter, logs, metrics, ns, point, send
from tests.telemetry.test_keep_no_secret import places_of

pytestmark = [pytest.mark.django_db, pytest.mark.sql]
COST = "claude_code.cost.usage"
NEEDLE = "zebra4711needle"


def code_of(api: Api) -> str:
    """What an export without anything in it is answered."""
    answer = api.post("/otlp/v1/metrics", "{}")
    return "" if answer.status_code == 200 else answer.json()["code"]


def agree(user: User, *, agreed: bool = True) -> None:
    services.choose_harness_telemetry(actor=factories.actor_of(user), agreed=agreed)


def sums() -> dict[str, int]:
    """All that is counted, of all days and sessions."""
    services.refresh_harness_days()
    found: dict[str, int] = {}
    for day in HarnessDay.objects.all():
        assert not day.stale
        for measure, number in day.counts.items():
            found[measure] = found.get(measure, 0) + number
    return found


# --- who agreed -----------------------------------------------------------------------------------------------
def test_it_is_off_where_nobody_said_anything(agent_api: Api):
    assert code_of(agent_api) == "otlp_off"


def test_where_the_site_asks_the_person_decides(cast: Cast, agent_api: Api, settings):
    settings.OTLP = "ask"
    assert code_of(agent_api) == "otlp_not_agreed"
    agree(cast.colleague)
    assert code_of(agent_api) == ""
    agree(cast.colleague, agreed=False)
    assert code_of(agent_api) == "otlp_declined"


def test_where_the_site_says_yes_a_person_may_still_say_no(cast: Cast, agent_api: Api, settings):
    settings.OTLP = "on"
    assert code_of(agent_api) == ""
    agree(cast.colleague, agreed=False)
    assert code_of(agent_api) == "otlp_declined"


def test_one_persons_yes_is_nobody_elses(cast: Cast, settings):
    settings.OTLP = "ask"
    agree(cast.colleague)
    assert code_of(Api(factories.make_token(cast.foreign_agent))) == "otlp_not_agreed"


def test_a_choice_is_on_record_once(cast: Cast, settings):
    settings.OTLP = "ask"
    agree(cast.colleague)
    agree(cast.colleague)
    (event,) = AuditEvent.objects.filter(verb="harness_telemetry.agree")
    assert (event.actor_label, event.object_label) == ("colleague", "colleague")


def test_an_agent_agrees_to_nothing(cast: Cast, agent_api: Api, settings):
    settings.OTLP = "ask"
    with pytest.raises(NotAllowed):
        services.choose_harness_telemetry(actor=actor_for_agent(factories.token_row(agent_api.token)), agreed=True)
    assert not HarnessChoice.objects.exists()


def test_nobody_agrees_to_what_the_site_does_not_take(cast: Cast):
    with pytest.raises(Conflict):
        agree(cast.colleague)
    agree(cast.colleague, agreed=False)


def test_whoever_declines_leaves_nothing(cast: Cast, agent_api: Api, settings):
    settings.OTLP = "on"
    foreign = Api(factories.make_token(cast.foreign_agent))
    for api in (agent_api, foreign):
        send(api, "metrics", metrics(counter(COST, [point(1.0, ago(5))])))
    agree(cast.colleague, agreed=False)
    assert {row.agent for row in HarnessReading.objects.all()} == {cast.foreign_agent}
    assert {row.agent for row in HarnessDay.objects.all()} == {cast.foreign_agent}


def test_nothing_from_before_the_agreement_is_taken(cast: Cast, agent_api: Api, settings):
    settings.OTLP = "ask"
    with clock.at(clock.now() - timedelta(minutes=30)):
        agree(cast.colleague)
    old, new = ago(40), ago(10)
    sent = metrics(counter(COST, [point(1.0, old), point(2.0, new)]))
    assert send(agent_api, "metrics", sent).status_code == 200
    # A series that began earlier counts from its first point on.
    grown = [point(5.0, ago(9), start=old, model="m"), point(7.0, ago(8), start=old, model="m")]
    send(agent_api, "metrics", metrics(counter(COST, grown, CUMULATIVE)))
    assert sums() == {"cost": 4_000_000}


# --- the same twice -------------------------------------------------------------------------------------------
@pytest.fixture
def told(agent_api: Api, settings) -> Api:
    settings.OTLP = "on"
    return agent_api


def test_sending_a_batch_again_changes_nothing(told: Api):
    sent = metrics(counter(COST, [point(0.5, ago(5), model="a"), point(0.25, ago(5), model="b")]))
    events = logs({"name": "tool_decision", "decision": "reject", "tool_name": "Bash"})
    for _ in range(2):
        send(told, "metrics", sent)
        send(told, "logs", events)
    before = list(HarnessDay.objects.values()), list(HarnessReading.objects.values())
    send(told, "metrics", sent)
    assert (list(HarnessDay.objects.values()), list(HarnessReading.objects.values())) == before
    assert sums() == {"cost": 750_000, "rejected:Bash": 1}


def test_a_cumulative_series_counts_once(told: Api):
    start = ago(20)
    for minutes, value in ((10, 1.0), (5, 2.5), (7, 2.0), (5, 2.5)):
        send(told, "metrics", metrics(counter(COST, [point(value, ago(minutes), start)], CUMULATIVE)))
    restarted = [point(0.5, ago(3), start=ago(4))]
    send(told, "metrics", metrics(counter(COST, restarted, CUMULATIVE)))
    assert sums() == {"cost": 3_000_000}


def test_a_late_point_of_the_day_before_moves_what_today_added(told: Api):
    midnight = clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    start = ns(midnight - timedelta(hours=2))
    with clock.at(midnight + timedelta(hours=1)):
        for hours, value in ((0.5, 3.0), (-1, 1.0)):
            at = ns(midnight + timedelta(hours=hours))
            send(told, "metrics", metrics(counter(COST, [point(value, at, start)], CUMULATIVE)))
            services.refresh_harness_days()
        assert [day.counts for day in HarnessDay.objects.order_by("day")] == [
            {"cost": 1_000_000}, {"cost": 2_000_000}
        ]  # fmt: skip


def test_days_and_sessions_are_apart(told: Api):
    other = point(1.0, ago(5))
    other.attributes[0].value.string_value = "another session"
    send(told, "metrics", metrics(counter(COST, [point(1.0, ago(5)), other, point(1.0, ago(60 * 26))])))
    assert HarnessDay.objects.count() == 3
    assert sums() == {"cost": 3_000_000}


def test_what_comes_while_a_day_is_added_up_is_not_lost(told: Api, monkeypatch):
    send(told, "metrics", metrics(counter(COST, [point(1.0, ago(5))])))
    add_up = services.harness.days.add_up  # type: ignore[attr-defined]

    def meanwhile(*args: Any, **kwargs: Any) -> dict[str, int]:
        found = add_up(*args, **kwargs)
        monkeypatch.undo()
        services.record_metrics(
            actor=actor_for_agent(factories.token_row(told.token)),
            request=metrics(counter(COST, [point(1.0, ago(4))])),
        )
        return found

    monkeypatch.setattr("telemetry.services.harness.days.add_up", meanwhile)
    services.refresh_harness_days()
    assert HarnessDay.objects.get().stale
    assert HarnessDay.objects.get().counts == {}


def test_bounds_hold_within_a_minute_and_a_day(told: Api, monkeypatch):
    monkeypatch.setattr(recording, "MOST_PARTS", 2)
    monkeypatch.setattr(recording, "MOST_SESSIONS", 2)
    at = ago(5) // (60 * 10**9) * 60 * 10**9
    send(told, "metrics", metrics(counter(COST, [point(1.0, at, model=name) for name in "abc"])))
    for name in ("one", "two"):
        later = point(1.0, at)
        later.attributes[0].value.string_value = name
        answer = send(told, "metrics", metrics(counter(COST, [later])))
    assert b"sessions on a day" in answer.content
    assert sums() == {"cost": 3_000_000}


def test_an_hour_of_exports_leaves_one_row_of_the_audit(told: Api):
    for minutes in range(5):
        send(told, "metrics", metrics(counter(COST, [point(1.0, ago(minutes + 1))])))
    assert 1 <= AuditEvent.objects.filter(verb="harness_telemetry.begin").count() <= 2  # midnight may lie between


def test_a_day_is_tied_to_the_one_session_it_can_have_been(cast: Cast, told: Api):
    user = factories.make_cluster_user(cast.cluster, cast.colleague)
    now = clock.now()

    def session(start: int, end: int | None) -> AgentSession:
        return AgentSession.objects.create(
            cluster=cast.cluster, cluster_user=user, host="login01", harness="claude-code", agent=cast.agent,
            started=now - timedelta(minutes=start), ended=end if end is None else now - timedelta(minutes=end),
        )  # fmt: skip

    session(500, 400)
    ours = session(30, None)
    send(told, "metrics", metrics(counter(COST, [point(1.0, ago(5))])))
    services.refresh_harness_days()
    assert HarnessDay.objects.get().session == ours
    session(20, 1)
    send(told, "metrics", metrics(counter(COST, [point(1.0, ago(4))])))
    services.refresh_harness_days()
    assert HarnessDay.objects.get().session is None


def test_readings_go_after_a_month_and_their_sums_after_years(told: Api):
    with clock.at(clock.now() - MINUTES_KEPT):
        send(told, "metrics", metrics(counter(COST, [point(1.0, ago(5))])))
        services.refresh_harness_days()
    send(told, "metrics", metrics(counter(COST, [point(1.0, ago(5))])))
    pruned = services.prune()
    assert (pruned["harness_readings"], pruned["harness_days"]) == (1, 0)
    HarnessDay.objects.update(stale=True)
    assert sums() == {"cost": 2_000_000}, "a day whose readings are gone keeps what it has"
    with clock.at(clock.now() + DAYS_KEPT - timedelta(days=10)):
        assert services.prune()["harness_days"] == 1


# --- nothing else is kept -------------------------------------------------------------------------------------
def everywhere(attributes: list[str]) -> list[KeyValue]:
    """Attributes that hold the needle, as text, list, map and bytes, and in a name."""
    text = AnyValue(string_value=NEEDLE)
    nested = AnyValue(kvlist_value=KeyValueList(values=[KeyValue(key=NEEDLE, value=text)]))
    return [
        *(KeyValue(key=name, value=text) for name in attributes),
        KeyValue(key=NEEDLE, value=text),
        KeyValue(key="list", value=AnyValue(array_value=ArrayValue(values=[text, nested]))),
        KeyValue(key="map", value=nested),
        KeyValue(key="bytes", value=AnyValue(bytes_value=NEEDLE.encode())),
    ]


ATTRIBUTES = [
    "prompt", "tool_parameters", "tool_input", "tool_name", "error", "user.email", "user.id", "user.account_uuid",
    "organization.id", "session.id", "model", "workspace.host_paths", "decision", "source", "type", "event.name",
    "function_args", "arguments", "output", "cost_usd", "input_tokens", "language",
]  # fmt: skip


@pytest.mark.parametrize("without", [(), ("prompt", "tool_parameters", "tool_input")])
@pytest.mark.parametrize("as_json", [False, True])
def test_a_needle_in_every_attribute_and_body_is_kept_nowhere(
    cast: Cast, told: Api, capsys, caplog, without: tuple[str, ...], as_json: bool
):
    names = [name for name in ATTRIBUTES if name not in without]
    events = logs(*({"name": name} for name in ("user_prompt", "tool_result", "tool_decision", "api_request", NEEDLE)))
    for record in events.resource_logs[0].scope_logs[0].log_records:
        kept = {"event.name"} if record is not events.resource_logs[0].scope_logs[0].log_records[-1] else set()
        record.attributes.extend(each for each in everywhere(names) if each.key not in kept)
        record.body.string_value = record.severity_text = NEEDLE
    values = [point(1.0, ago(5)), point(2.0, ago(4))]
    found = [counter(name, values) for name in (COST, "claude_code.code_edit_tool.decision", NEEDLE)]
    series = metrics(*found)
    for metric in series.resource_metrics[0].scope_metrics[0].metrics:
        metric.description = metric.unit = NEEDLE
        for each in metric.sum.data_points:
            each.attributes.extend(everywhere(names))
    for told_by in (series.resource_metrics[0], events.resource_logs[0]):
        told_by.resource.attributes.extend(everywhere(names))
        told_by.schema_url = NEEDLE
    answers = []
    for signal, request in (("metrics", series), ("logs", events)):
        body = json_format.MessageToJson(request).encode() if as_json else request
        kind = {"kind": "application/json"} if as_json else {}
        answers.append(send(told, signal, body, **kind, **{"user-agent": "OTel"}))
    assert [answer.status_code for answer in answers] == [200, 200]
    assert all(NEEDLE.encode() not in answer.content for answer in answers)
    assert sums()["cost"] == 3_000_000, "what may be counted is"
    assert places_of(NEEDLE) == []
    assert places_of(SESSION) == [], "the harness's own session is a digest"
    heard = capsys.readouterr()
    assert NEEDLE not in heard.out + heard.err + caplog.text


def test_a_broken_body_with_a_needle_is_not_quoted(told: Api, capsys, caplog):
    for kind in ("application/json", "application/x-protobuf", NEEDLE):
        answer = send(told, "logs", f'{{"{NEEDLE}"'.encode(), kind=kind)
        assert answer.status_code in (400, 415)
        assert NEEDLE.encode() not in answer.content
    heard = capsys.readouterr()
    assert NEEDLE not in heard.out + heard.err + caplog.text
    assert places_of(NEEDLE) == []


# --- who may see it -------------------------------------------------------------------------------------------
def test_days_are_seen_by_whom_they_concern(cast: Cast, told: Api):
    send(told, "metrics", metrics(counter(COST, [point(1.0, ago(5))])))
    cast_of = {
        name: HarnessDay.objects.visible_to(factories.actor_of(getattr(cast, name))).count()
        for name in ("colleague", "pi", "manager", "outsider", "staff", "infosec", "auditor")
    }
    assert cast_of == {
        "colleague": 1, "pi": 1, "manager": 1, "outsider": 0, "staff": 1, "infosec": 1, "auditor": 1
    }  # fmt: skip
    foreign = actor_for_agent(factories.token_row(factories.make_token(cast.foreign_agent)))
    own = actor_for_agent(factories.token_row(told.token))
    assert HarnessDay.objects.visible_to(foreign).count() == 0
    assert HarnessDay.objects.visible_to(own).count() == 1
