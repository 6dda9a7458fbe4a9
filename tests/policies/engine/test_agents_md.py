"""What agents read: complete, in order of weight, and short by a stated rule."""

import json
import tomllib
from dataclasses import replace

import pytest

from policies.engine.agents_md import MOST_TOKENS, agents_md, count_tokens, require_readable, skill_md
from policies.engine.aup import default_source, parse_aup
from policies.engine.clauses import Applies, PolicyError, by_type
from policies.engine.harness_settings import (
    BINDING,
    claude_code_settings,
    codex_fault,
    codex_requirements,
    gemini_fault,
    gemini_settings,
    settings_fault,
)
from policies.engine.packs import PACKS, read_pack

URL = "https://gatehouse.example.org"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("sbatch", 2), ("jobs", 1), ("a, b.", 4), ("naïve", 3), ("squeue --me", 5), ("日本", 2)],
)
def test_tokens_are_counted_by_the_stated_rule(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


@pytest.mark.parametrize("name", PACKS)
def test_every_pack_is_short_and_says_every_clause(name: str) -> None:
    aup = read_pack(name)
    for text in (agents_md(aup, url=URL), skill_md(aup, url=URL)):
        assert 300 < count_tokens(text) < MOST_TOKENS
        assert all(clause.text_agent in text for clause in aup.clauses)
        assert f"{URL}/aup/" in text
    assert skill_md(aup, url=URL).startswith("---\nname: site-policy\n")


def test_what_is_forbidden_comes_first() -> None:
    text = agents_md(parse_aup(default_source()), url=URL)
    places = [text.index(heading) for heading in ("### Never", "### Always", "### Limits", "### Know")]
    assert places == sorted(places)


def test_a_policy_that_is_too_long_for_agents_is_refused() -> None:
    aup = read_pack("cautious")
    many = [replace(aup.clauses[0], type=f"site.rule{n}", text_agent="word " * 55) for n in range(30)]
    with pytest.raises(PolicyError) as caught:
        require_readable(replace(aup, clauses=tuple(many)))
    assert caught.value.fault.code == "agent_text_long"


def test_whom_a_clause_binds_is_said_and_no_lab_is_named() -> None:
    aup = read_pack("compute-only")
    clause = replace(aup.clauses[0], applies=Applies(labs=("okafor",), data_class=("dod",)))
    text = agents_md(replace(aup, clauses=(clause,)), url=URL)
    assert "(some labs; data dod)" in text and "okafor" not in text


@pytest.mark.parametrize("name", PACKS)
def test_settings_of_every_pack_are_inert(name: str) -> None:
    assert settings_fault(claude_code_settings(read_pack(name))) == ""


@pytest.mark.parametrize("name", sorted(PACKS))
def test_codex_and_gemini_are_bound_where_the_clause_binds(name: str) -> None:
    aup = read_pack(name)
    codex, gemini = codex_requirements(aup), gemini_settings(aup)
    assert (codex_fault(codex), gemini_fault(gemini)) == ("", "")
    clause = by_type(aup.clauses).get("autonomy.no_bypass_mode")
    binds = clause is not None and clause.modality in BINDING
    policies = tomllib.loads(codex).get("allowed_approval_policies", ["never"])
    assert ("never" not in policies) == binds
    assert json.loads(gemini).get("security", {}).get("disableYoloMode", False) == binds
    assert codex_fault(codex + 'hooks = "x"\n') and gemini_fault('{"mcpServers": {"x": {"command": "sh"}}}')


def test_settings_come_of_clauses() -> None:
    text = claude_code_settings(read_pack("light-login"))
    for rule in ("Read(~/.ssh/**)", "Bash(rm:*)", '"disableBypassPermissionsMode": "disable"'):
        assert rule in text


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"hooks": {"PreToolUse": []}}',
        '{"permissions": {}, "hooks": {}}',
        '{"permissions": {"allow": ["Bash(*)"]}}',
        '{"permissions": {"deny": [1]}}',
        '{"permissions": {"deny": "x"}}',
        '{"permissions": {"disableBypassPermissionsMode": "no"}}',
        '{"permissions": [], "env": {}}',
    ],
    ids=range(10),
)
def test_settings_of_any_other_form_are_refused(text: str) -> None:
    assert settings_fault(text)
