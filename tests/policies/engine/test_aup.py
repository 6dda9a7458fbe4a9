from dataclasses import replace

import pytest

from policies.engine.aup import (
    STRONGEST_ACTION,
    Action,
    Check,
    Clause,
    Coverage,
    Modality,
    aup_digest,
    clause_faults,
    default_source,
    parse_aup,
    render_agent_text,
    render_markdown,
)

OBSERVED = Check(Coverage.OBSERVED, "scheduler_queries_per_minute", "Measured on login nodes.")
SOUND = Clause(
    "scheduler.no_loops",
    Modality.LIMIT,
    "At most 6.",
    "At most 6.",
    OBSERVED,
    Action.REFUSE,
    6,
    "queries/min",
)


def test_the_first_policy_is_sound_and_short():
    aup = parse_aup(default_source())
    assert aup.version == "2026-06"
    assert 5 <= len(aup.clauses) <= 8
    assert [clause_faults(clause) for clause in aup.clauses] == [()] * len(aup.clauses)
    assert len(render_agent_text(aup).split()) < 300


@pytest.mark.parametrize("modality", Modality)
@pytest.mark.parametrize("action", Action)
def test_an_action_never_exceeds_its_modality(modality, action):
    order = list(Action)
    faults = clause_faults(replace(SOUND, modality=modality, action=action))
    assert bool(faults) == (order.index(action) > order.index(STRONGEST_ACTION[modality]))


def test_advice_is_followed_by_a_notice_at_most():
    assert STRONGEST_ACTION[Modality.ADVISE] is Action.NOTIFY
    assert STRONGEST_ACTION[Modality.INFORM] is Action.NONE


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"type": "Polling"}, "family.name"),
        ({"text_agent": ""}, "one for agents"),
        ({"text_agent": "word " * 61}, "longer than 60 words"),
        ({"value": None}, "value and a unit"),
        ({"unit": ""}, "value and a unit"),
        ({"value": -1}, "negative"),
        ({"place": ("moon",)}, "places are among"),
        ({"place": ()}, "places are among"),
        ({"check": Check(Coverage.NONE)}, "Nothing checks it"),
        ({"check": Check(Coverage.OBSERVED)}, "names its measure"),
    ],
)
def test_a_faulty_clause_is_told_why(changes, fault):
    (found,) = clause_faults(replace(SOUND, **changes))
    assert fault in found.sentence
    assert found.code.startswith("clause_") and found.remedy


def test_a_clause_nobody_checks_is_shown_unverified():
    clause = replace(SOUND, action=Action.NOTIFY, check=Check(Coverage.NONE, words="Always kept."))
    assert not clause.is_verified
    assert clause.check_words == "Not measured. We rely on you."


def test_the_page_numbers_its_clauses_and_says_how_each_is_checked():
    page = render_markdown(parse_aup(default_source()))
    assert page.startswith("# Acceptable use of coding agents, version 2026-06\n")
    assert "1. You answer for what it does, as for your own work." in page
    assert "5. Confidential data is not shown to outside models. *Not measured. We rely on you.*" in page


def test_an_agent_reads_plain_lines_with_the_modality_first():
    lines = render_agent_text(parse_aup(default_source())).splitlines()
    assert lines[3].startswith("- LIMIT: At most 6 scheduler queries a minute")
    assert not any("*" in line or "#" in line for line in lines)


def test_the_digest_follows_every_word_people_or_agents_read():
    aup = parse_aup(default_source())
    first, *rest = aup.clauses
    changed = [
        replace(aup, clauses=(replace(first, text_human="Other."), *rest)),
        replace(aup, clauses=(replace(first, text_agent="Other."), *rest)),
        replace(aup, clauses=tuple(rest)),
        replace(aup, version="2026-07"),
    ]
    digests = {aup_digest(each) for each in (aup, *changed)}
    assert len(digests) == 5
    assert aup_digest(aup) == aup_digest(parse_aup(default_source()))


HEAD = 'version = "1"\ntitle = "T"\neffective = 2026-06-01\n'
ROW = '[[clause]]\ntype = "a.b"\nmodality = "advise"\ntext_human = "x"\ntext_agent = "x"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + ROW + 'action = "hold"\n', "hold is stronger than advise allows"),
        (HEAD + ROW + ROW, "same type"),
        (HEAD + '[[clause]]\ntype = "a.b"\nmodality = "advise"\n', "Clause a.b: It lacks text_human"),
        (HEAD + ROW.replace("advise", "wish"), "wish"),
        ("version =", "no TOML"),
    ],
)
def test_a_faulty_policy_file_names_the_clause(text, message):
    with pytest.raises(ValueError, match=message):
        parse_aup(text)
