"""What each harness emits becomes counts of ours; the rest becomes nothing."""

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from principals.engine.harnesses import known_harnesses
from telemetry.engine.otel import reading
from telemetry.engine.otel.mapping import Mapping, mapping_of
from telemetry.engine.otel.reading import Read, Span, read_logs, read_metrics
from telemetry.engine.otel.sums import add_up, merge
from tests.telemetry.otlp import CUMULATIVE, counter, logs, metrics, pairs, point

KEY = b"k" * 32
AT = 1_790_000_000 * 10**9
SPAN = Span(AT - 10**12, AT + 10**12)


def harness(name: str) -> Mapping:
    found = mapping_of(name)
    assert found is not None
    return found


def counts(read: Read) -> dict[str, int]:
    """Everything that was told, as if of one day."""
    parts: dict[str, dict[str, object]] = {}
    for told in read.told:
        merge(parts.setdefault(told.source, {}), told)
    return add_up(parts.items())


def of_metrics(name: str, *found: Metric) -> dict[str, int]:
    return counts(read_metrics(metrics(*found), harness(name), SPAN, KEY))


def of_logs(name: str, *events: dict[str, object]) -> dict[str, int]:
    prefix = harness(name).prefix
    return counts(read_logs(logs(*events, at=AT, prefix=prefix), harness(name), SPAN, KEY))


def test_every_harness_of_the_mapping_is_one_we_know():
    assert [name for name in ("claude-code", "codex", "gemini-cli") if name not in known_harnesses()] == []
    assert mapping_of("aider") is None


def test_claude_code_counts_what_it_costs_and_does():
    found = of_metrics(
        "claude-code",
        counter("claude_code.session.count", [point(1, AT, start_type="fresh")]),
        counter("claude_code.cost.usage", [point(0.25, AT, model="a"), point(0.000004, AT, model="b")]),
        counter("claude_code.token.usage", [point(7, AT, type_="input"), point(9, AT, type_="cacheRead")]),
        counter("claude_code.lines_of_code.count", [point(30, AT, type_="added"), point(4, AT, type_="removed")]),
        counter("claude_code.commit.count", [point(2, AT)]),
        counter("claude_code.active_time.total", [point(1.5, AT, type_="user"), point(60.0, AT, type_="cli")]),
    )
    assert found == {
        "active": 61_500, "commits": 2, "cost": 250_004, "lines_added": 30, "lines_removed": 4, "sessions": 1,
        "tokens:cache_read": 9, "tokens:input": 7,
    }  # fmt: skip


def test_decisions_of_people_and_of_settings_are_told_apart():
    found = of_metrics(
        "claude-code",
        counter(
            "claude_code.code_edit_tool.decision",
            [
                point(3, AT, decision="accept", tool_name="Edit", source="user_temporary"),
                point(2, AT, decision="reject", tool_name="Write", source="user_reject"),
                point(5, AT, decision="accept", tool_name="Edit", source="config"),
                point(1, AT, decision="whatever", tool_name="Edit"),
            ],
        ),
    )
    assert found == {"accepted:Edit": 3, "rejected:Write": 2, "automatic:Edit": 5}


def test_a_tool_of_somebodys_own_is_counted_without_its_name():
    names = ("Bash", "mcp__patients__lookup", "my-secret-tool")
    told = [{"name": "tool_decision", "decision": "accept", "tool_name": name} for name in names]
    assert of_logs("claude-code", *told) == {"accepted:Bash": 1, "accepted:mcp": 1, "accepted:other": 1}


def test_events_of_claude_code():
    request = {
        "name": "api_request", "model": "claude", "cost_usd": "0.031", "input_tokens": 12, "output_tokens": "40",
        "cache_read_tokens": 1000, "cache_creation_tokens": 7,
    }  # fmt: skip
    error = {"name": "claude_code.api_error", "error": "Overloaded", "status_code": 529}
    assert of_logs("claude-code", request, error, {"name": "plugin_loaded"}) == {
        "cost": 31_000, "errors": 1, "requests": 1, "tokens:cache_read": 1000, "tokens:cache_write": 7,
        "tokens:input": 12, "tokens:output": 40,
    }  # fmt: skip


def test_what_metrics_and_events_both_tell_counts_once():
    """A part of the metrics was lost here: the events know better."""
    read = read_metrics(metrics(counter("claude_code.cost.usage", [point(0.2, AT)])), harness("claude-code"), SPAN, KEY)
    events = logs({"name": "api_request", "cost_usd": 0.2}, {"name": "api_request", "cost_usd": 0.1}, at=AT)
    read.told += read_logs(events, harness("claude-code"), SPAN, KEY).told
    assert counts(read) == {"cost": 300_000, "requests": 2}


def test_events_of_codex():
    completed = {
        "name": "codex.sse_event", "event.kind": "response.completed", "input_token_count": "100",
        "output_token_count": "20", "cached_token_count": 60, "reasoning_token_count": 5, "tool_token_count": "120",
    }  # fmt: skip
    found = of_logs(
        "codex",
        {"name": "codex.conversation_starts", "mcp_servers": "x"},
        completed,
        {"name": "codex.sse_event", "event.kind": "response.output_item.done"},
        {"name": "codex.api_request", "http.response.status_code": 200},
        {"name": "codex.api_request", "error.message": "no route to /home/u/x"},
        {"name": "codex.tool_decision", "tool_name": "shell", "decision": "approved_for_session", "source": "User"},
        {"name": "codex.tool_decision", "tool_name": "shell", "decision": "denied", "source": "user"},
        {"name": "codex.tool_decision", "tool_name": "shell", "decision": "approved", "source": "Config"},
    )
    assert found == {
        "accepted:shell": 1, "automatic:shell": 1, "errors": 1, "rejected:shell": 1, "requests": 2, "sessions": 1,
        "tokens:cache_read": 60, "tokens:input": 100, "tokens:output": 20, "tokens:reasoning": 5,
    }  # fmt: skip


def test_metrics_of_gemini():
    found = of_metrics(
        "gemini-cli",
        counter("gemini_cli.session.count", [point(1, AT)], CUMULATIVE),
        counter(
            "gemini_cli.tool.call.count",
            [
                point(2, AT, function_name="run_shell_command", decision="accept"),
                point(4, AT, function_name="read_file", decision="auto_accept"),
            ],
            CUMULATIVE,
        ),
        counter("gemini_cli.token.usage", [point(11, AT, type_="thought")], CUMULATIVE),
    )
    assert found == {
        "accepted:run_shell_command": 2, "automatic:read_file": 4, "sessions": 1, "tokens:reasoning": 11
    }  # fmt: skip


def test_another_harness_names_are_refused_and_unknown_ones_passed_over():
    told = metrics(counter("claude_code.cost.usage", [point(1.0, AT)]), counter("codex.made.up", [point(1.0, AT)]))
    read = read_metrics(told, harness("codex"), SPAN, KEY)
    assert (read.told, read.refused) == ([], {reading.OTHER_HARNESS: 1})
    read = read_logs(logs({"name": "api_request"}, {"name": "made_up"}, at=AT), harness("codex"), SPAN, KEY)
    assert (read.told, read.refused) == ([], {reading.OTHER_HARNESS: 2}), "their bodies say whose they are"
    assert of_metrics("claude-code", counter("cost.usage", [point(1.0, AT)])) == {}


@pytest.mark.parametrize(
    "event",
    [
        {"name": "user_prompt", "prompt": "fold my protein"},
        {"name": "api_request", "cost_usd": 1, "prompt": "fold my protein"},
        {"name": "tool_result", "tool_input": '{"command": "cat /home/u/.ssh/id"}'},
    ],
)
def test_a_record_with_a_prompt_is_refused_whole(event: dict[str, object]):
    read = read_logs(logs(event, at=AT), harness("claude-code"), SPAN, KEY)
    assert (read.told, read.refused) == ([], {"prompt": 1})


def test_one_whose_prompt_was_left_out_is_not():
    read = read_logs(logs({"name": "user_prompt", "prompt": "<REDACTED>"}, at=AT), harness("claude-code"), SPAN, KEY)
    assert (read.told, read.refused) == ([], {})


def gauge() -> Metric:
    metric = Metric(name="claude_code.cost.usage")
    metric.gauge.data_points.append(point(1.0, AT))
    return metric


def falling() -> Metric:
    metric = counter("claude_code.cost.usage", [point(1.0, AT)])
    metric.sum.is_monotonic = False
    return metric


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        (gauge(), reading.NO_COUNTER),
        (falling(), reading.NO_COUNTER),
        (counter("claude_code.cost.usage", [point(1.0, AT)], 0), reading.NO_COUNTER),
        (counter("claude_code.cost.usage", [point(float("nan"), AT)]), reading.NO_NUMBER),
        (counter("claude_code.cost.usage", [point(float("inf"), AT)]), reading.NO_NUMBER),
        (counter("claude_code.cost.usage", [point(-1, AT)]), reading.NO_NUMBER),
        (counter("claude_code.cost.usage", [point(1, SPAN.since_ns - 1)]), reading.TOO_OLD),
        (counter("claude_code.cost.usage", [point(1, 0)]), reading.TOO_OLD),
        (counter("claude_code.cost.usage", [point(1, SPAN.until_ns + 1)]), reading.FUTURE),
    ],
)
def test_what_makes_no_sense_is_refused_and_says_why(metric: Metric, reason: str):
    read = read_metrics(metrics(metric), harness("claude-code"), SPAN, KEY)
    assert (read.told, read.refused) == ([], {reason: 1})


def test_an_event_whose_number_is_none_is_refused():
    told = [{"name": "api_request", "cost_usd": value} for value in ("a lot", "-1", "1e9", -0.5, True)]
    read = read_logs(logs(*told, at=AT), harness("claude-code"), SPAN, KEY)
    assert (read.told, read.refused) == ([], {reading.NO_NUMBER: len(told)})


def test_digests_need_the_key_and_tell_series_apart():
    def keys(key: bytes, **attributes: str) -> set[str]:
        told = metrics(counter("claude_code.cost.usage", [point(1.0, AT, **attributes)], CUMULATIVE))
        return {each.key for each in read_metrics(told, harness("claude-code"), SPAN, key).told}

    assert keys(KEY, model="a") == keys(KEY, model="a")
    assert len(keys(KEY, model="a") | keys(KEY, model="b") | keys(b"other", model="a")) == 3


def test_a_session_may_stand_in_the_resource():
    told = metrics(counter("claude_code.cost.usage", [point(1.0, AT)]))
    (told_point,) = told.resource_metrics[0].scope_metrics[0].metrics[0].sum.data_points
    del told_point.attributes[:]
    (nameless,) = read_metrics(told, harness("claude-code"), SPAN, KEY).told
    told.resource_metrics[0].resource.attributes.extend(pairs({"session.id": "s"}))
    (named,) = read_metrics(told, harness("claude-code"), SPAN, KEY).told
    assert nameless.session == ""
    assert len(named.session) == 24


def test_attributes_of_a_resource_are_looked_at_once(monkeypatch: pytest.MonkeyPatch):
    """A body may name a hundred thousand of them, for two thousand points."""
    looked: list[int] = []
    identity = reading._identity
    monkeypatch.setattr(reading, "_identity", lambda found: looked.append(len(found)) or identity(found))
    told = metrics(counter("claude_code.cost.usage", [point(1.0, AT - n) for n in range(50)]), **{"a": "b", "c": "d"})
    read_metrics(told, harness("claude-code"), SPAN, KEY)
    assert looked.count(3) == 1
    assert len(looked) == 51
