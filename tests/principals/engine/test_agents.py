import pytest
from hypothesis import given
from hypothesis import strategies as st

from principals.engine.agents import (
    TRANSITIONS,
    AgentStatus,
    allowed_transitions,
    find_transition,
    name_problem,
    suggest_name,
)
from principals.engine.harnesses import harness_name, known_harnesses
from principals.engine.networks import is_allowed, parse_networks


@pytest.mark.parametrize("source", AgentStatus)
@pytest.mark.parametrize("target", AgentStatus)
def test_only_listed_changes_of_status_exist(source, target):
    allowed = {
        ("requested", "active"),
        ("requested", "retired"),
        ("active", "suspended"),
        ("active", "retired"),
        ("suspended", "active"),
        ("suspended", "retired"),
    }
    assert (find_transition(source, target) is not None) == ((source.value, target.value) in allowed)


def test_a_retired_agent_never_returns():
    assert allowed_transitions(AgentStatus.RETIRED) == ()


def test_stopping_or_refusing_an_agent_needs_a_reason():
    assert {step.verb for step in TRANSITIONS if step.needs_reason} == {"decline", "suspend", "reinstate"}


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("okafor membrane", "No spaces. Try okafor-membrane, which is free."),
        ("Okafor-Membrane", "Lower case only. Try okafor-membrane, which is free."),
        ("okafor_membrane", "Letters a to z, digits and hyphens only. Try okafor-membrane, which is free."),
        ("okafor-ci", "okafor-ci is in use. Try okafor-ci-2, which is free."),
        ("ab", "At least 3 characters. Try ab-agent, which is free."),
        ("-okafor", "Starts and ends with a letter or digit. Try okafor, which is free."),
        ("", "Give it a name."),
        ("okafor-membrane", None),
    ],
)
def test_a_bad_name_is_told_which_one_would_do(name, sentence):
    assert name_problem(name, {"okafor-ci"}) == sentence


def test_a_long_name_is_cut_and_still_numbered_when_taken():
    long = "a" * 60
    assert suggest_name(long, set()) == "a" * 40
    assert suggest_name(long, {"a" * 40}) == "a" * 38 + "-2"


@given(st.text(max_size=60), st.sets(st.from_regex(r"[a-z]{3,5}", fullmatch=True), max_size=4))
def test_a_suggestion_is_always_valid_and_free(name, taken):
    assert name_problem(suggest_name(name, taken), taken) is None


def test_no_ranges_means_anywhere():
    assert is_allowed("203.0.113.9", ())
    assert is_allowed("unix", ())


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("10.4.7.7", True),
        ("10.5.0.1", False),
        ("::ffff:10.4.0.9", True),
        ("2001:db8::7", True),
        ("2001:db8::8", False),
        ("not an address", False),
        ("", False),
    ],
)
def test_an_address_is_checked_against_the_ranges(address, allowed):
    assert is_allowed(address, parse_networks(["10.4.0.0/16", " 2001:db8::7 "])) is allowed


@pytest.mark.parametrize("entry", ["10.4.0.1/16", "10.4", "login03", "10.4.0.0/40"])
def test_a_bad_range_is_refused_in_one_sentence(entry):
    with pytest.raises(ValueError, match="is not an address range"):
        parse_networks([entry])


def test_harness_slugs_have_names_and_unknown_ones_show_themselves():
    assert list(known_harnesses())[:4] == ["claude-code", "codex", "cursor", "copilot"]
    assert len(known_harnesses()) == 9
    assert harness_name("gemini-cli") == "Gemini CLI"
    assert harness_name("brand-new") == "brand-new"
