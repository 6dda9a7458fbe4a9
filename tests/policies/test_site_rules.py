"""The rules as agents and their harnesses fetch them, and the budget of questions that a clause sets."""

from dataclasses import replace

import pytest
from django.test import Client

from policies import services as policy_services
from policies.engine.aup import parse_aup, write_aup
from policies.engine.clauses import Action, Applies, Modality
from policies.engine.packs import read_pack
from policies.views import aup as aup_views
from principals.actors import SYSTEM_ACTOR
from principals.engine.concurrency import Limit
from tests import factories
from tests.conftest import Api, Cast

PUBLIC = "/.well-known/agent-policy.json"
NIH = "nih-controlled-access"


def _publish(pack: str, **changed: object) -> None:
    aup = replace(read_pack(pack), version="2026-12", effective="2026-01-01")
    policy_services.publish_aup(actor=SYSTEM_ACTOR, source=write_aup(replace(aup, **changed)))


def test_an_agent_reads_the_rules_that_bind_it(cast: Cast, agent_api: Api) -> None:
    theirs, ours, other = read_pack("cautious").clauses[:3]
    clauses = (
        replace(theirs, applies=Applies(labs=("marlowe",)), text_agent="Not for you."),
        replace(ours, applies=Applies(labs=("okafor",), harness=("claude-code",)), text_agent="For you."),
        replace(other, applies=Applies(harness=("codex",)), text_agent="Not for your harness."),
    )
    _publish("cautious", clauses=clauses)
    answer = agent_api.get("/site/agents.md")
    text = answer.content.decode()
    assert answer["Content-Type"] == "text/markdown; charset=utf-8"
    assert "- For you. (some labs; harnesses claude-code)" in text
    assert "Not for" not in text and "okafor" not in text


def test_anybody_reads_the_policy_and_no_name_in_it(cast: Cast) -> None:
    clause = replace(
        read_pack("supervised").clauses[0], applies=Applies(labs=("okafor",)), parameters=(("paths", ("/x",)),)
    )
    _publish("supervised", clauses=(clause, *read_pack("supervised").clauses[1:]))
    answer = Client().get(PUBLIC)
    said = answer.json()
    assert said["version"] == "2026-12"
    assert said["polls"] == {"scheduler_queries_per_minute": 4, "portal_questions_per_minute": 120}
    assert said["clauses"][0]["applies"]["labs"] == ["some"]
    assert "okafor" not in answer.content.decode() and "/x" not in answer.content.decode()
    standing = {each["type"]: each["standing"] for each in said["clauses"]}
    assert standing["scheduler.self_scope"] == "not yet enforced"
    assert standing["scheduler.portal_questions"] == "enforced"
    assert Client().post(PUBLIC).status_code == 405


def test_who_has_the_rules_already_is_not_sent_them(cast: Cast, agent_api: Api) -> None:
    _publish("cautious")
    answers = {"agent": agent_api.get("/site/agents.md"), "anybody": Client().get(PUBLIC)}
    assert answers["agent"]["Cache-Control"] == "private, no-cache"
    assert answers["anybody"]["Cache-Control"] == "public, max-age=300"
    known = {who: answer["ETag"] for who, answer in answers.items()}
    assert not any(each.startswith("W/") for each in known.values())
    again = agent_api.client.get("/api/v1/site/agents.md", HTTP_IF_NONE_MATCH=known["agent"])
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", known["agent"])
    again = Client().get(PUBLIC, HTTP_IF_NONE_MATCH=known["anybody"])
    assert (again.status_code, again.content, again["Cache-Control"]) == (304, b"", "public, max-age=300")
    aup = replace(read_pack("supervised"), version="2026-13", effective="2026-01-01")
    policy_services.publish_aup(actor=SYSTEM_ACTOR, source=write_aup(aup))
    assert agent_api.client.get("/api/v1/site/agents.md", HTTP_IF_NONE_MATCH=known["agent"]).status_code == 200
    assert Client().get(PUBLIC, HTTP_IF_NONE_MATCH=known["anybody"]).status_code == 200


@pytest.mark.usefixtures("standing_clock")
def test_who_asks_for_it_too_often_is_told_to_wait(db: None, monkeypatch) -> None:
    monkeypatch.setattr(aup_views, "ASKED_A_MINUTE", 1)
    assert Client().get(PUBLIC).status_code == 200
    refused = Client().get(PUBLIC)
    assert refused.status_code == 429 and refused["Retry-After"]


def test_until_its_day_a_version_is_not_what_agents_read(cast: Cast, agent_api: Api) -> None:
    _publish("cautious", effective="2099-01-01")
    assert "policy 2026-06" in agent_api.get("/site/agents.md").content.decode()
    assert policy_services.current_aup().version == "2026-12"


@pytest.mark.usefixtures("standing_clock")
@pytest.mark.parametrize(("setting", "clause", "allowed"), [(300, 2, 2), (1, 2, 1)], ids=["clause", "setting"])
def test_the_smaller_of_clause_and_setting_is_the_budget(cast, agent_api, settings, setting, clause, allowed) -> None:
    settings.POLLS_PER_MINUTE = setting
    clauses = tuple(
        replace(each, value=clause) if each.type == "scheduler.portal_questions" else each
        for each in read_pack("cautious").clauses
    )
    _publish("cautious", clauses=clauses)
    statuses = [agent_api.get("/jobs").status_code for _ in range(3)]
    assert statuses == [200] * allowed + [429] * (3 - allowed)
    assert Api(factories.make_token(cast.agent)).get("/jobs").status_code == 200


def test_without_the_clause_the_setting_counts(db: None, django_assert_num_queries) -> None:
    assert policy_services.questions_a_minute() is None
    with django_assert_num_queries(0):
        assert policy_services.questions_a_minute() is None


def _sessions(**changed: object) -> None:
    clauses = read_pack("cautious").clauses
    _publish("cautious", clauses=tuple(replace(c, **changed) if c.type == "sessions.max" else c for c in clauses))


@pytest.mark.parametrize(
    ("number", "said"),
    [(2, [201, 201, 409]), (1, [201, 409, 409]), (9, [201, 201, 201])],
    ids=["two", "one", "the setting advises"],
)
def test_the_clause_refuses_one_session_too_many(cast, agent_api, number: int, said: list[int]) -> None:
    _sessions(value=number, action=Action.REFUSE)
    here = {"harness": "claude-code", "host": "login01"}
    assert [agent_api.post("/sessions", here | {"pid": pid}).status_code for pid in (1, 2, 3)] == said
    standing = {each["type"]: each["standing"] for each in Client().get(PUBLIC).json()["clauses"]}
    assert standing["sessions.max"] == "enforced"


@pytest.mark.parametrize(
    ("changed", "limit"),
    [
        ({"action": Action.WARN}, Limit(1, binds=False)),
        ({"modality": Modality.ADVISE, "action": Action.NOTIFY}, None),
        ({"place": ("job",)}, None),
        ({"applies": Applies(labs=("okafor",))}, None),
    ],
    ids=["warns", "advises", "elsewhere", "some labs"],
)
def test_a_clause_that_limits_everybody_is_a_limit(db: None, changed: dict[str, object], limit: Limit | None) -> None:
    _sessions(**changed)
    assert policy_services.sessions_on_a_node() == limit
    standing = {each["type"]: each["standing"] for each in Client().get(PUBLIC).json()["clauses"]}
    assert standing["sessions.max"] == "measured"


def test_a_published_policy_reads_as_it_was_written(db: None) -> None:
    _publish("light-login")
    source = policy_services.current_aup().source
    assert write_aup(parse_aup(source)) == source


@pytest.mark.parametrize(
    ("asked", "refused_by", "labels"),
    [
        ({"path": "/secure/dbgap/x.bam", "provider": "anthropic"}, "site.nih_controlled_access", [NIH]),
        ({"path": "//home/../secure//./dbgap/", "provider": "openai"}, "site.nih_controlled_access", [NIH]),
        ({"path": "/secure/dbgap/x.bam", "provider": "site"}, "", [NIH]),
        ({"path": "/home/u/notes", "provider": "somebody"}, "", []),
        ({"provider": "somebody", "labels": ["level-2"]}, "data.max_class_external", ["level-2"]),
        ({"project": "dod-radar", "provider": "site", "model": "DeepSeek-R1"}, "model.banned", ["dod"]),
    ],
    ids=["path", "odd path", "own model", "no label", "level", "project"],
)  # fmt: skip
def test_the_data_gate_names_the_clause_that_refuses(
    agent_api: Api, asked: dict[str, object], refused_by: str, labels: list[str]
) -> None:
    _publish("compute-only")
    said = agent_api.post("/site/data-gate", asked).json()
    assert (said["allowed"], said["clause"], said["labels"]) == (not refused_by, refused_by, labels)
    assert said["allowed"] or (said["why"] and said["remedy"])


def test_the_data_gate_goes_by_the_clauses_that_bind_the_agent(agent_api: Api) -> None:
    clauses = [
        replace(each, applies=replace(each.applies, labs=("marlowe",))) for each in read_pack("compute-only").clauses
    ]
    _publish("compute-only", clauses=tuple(clauses))
    said = agent_api.post("/site/data-gate", {"path": "/secure/dbgap/x", "provider": "anthropic"}).json()
    assert said == {"allowed": True, "labels": [], "clause": "", "why": "", "remedy": ""}
    assert agent_api.post("/site/data-gate", {"path": "relative"}).status_code == 422
