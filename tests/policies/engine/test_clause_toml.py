"""Clauses and policies as TOML: what is written reads as the same; every fault has a code and a remedy."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.engine.aup import Aup, default_source, parse_aup, require_publishable, write_aup
from policies.engine.clauses import Action, Applies, Check, Clause, Coverage, Modality, PolicyError, Standing
from policies.engine.packs import PACKS, pack_source, read_pack

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
SAID = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=40)
LISTS = st.lists(WORDS, min_size=1, max_size=3).map(tuple)
CLAUSE = st.builds(
    Clause,
    type=st.just("site.rule"),
    modality=st.just(Modality.LIMIT),
    text_human=SAID,
    text_agent=SAID,
    check=st.builds(Check, st.just(Coverage.OBSERVED), SAID, WORDS),
    action=st.sampled_from([Action.NONE, Action.REFUSE]),
    value=st.integers(0, 10**6) | st.floats(0, 1e6),
    unit=SAID,
    place=st.sampled_from([("login",), ("job", "workstation")]),
    applies=st.builds(Applies, LISTS, LISTS, LISTS),
    parameters=st.builds(lambda paths, depth: (("depth", depth), ("paths", paths)), LISTS, st.integers(0, 9)),
    source=st.sampled_from(["", "https://example.org/rules"]),
)


@given(CLAUSE, WORDS, WORDS)
def test_what_is_written_reads_as_the_same(clause: Clause, line: str, other: str) -> None:
    aup = Aup("1", "T", "2027-01-01", (clause,), f'{line}\n"""{other}"', 7)
    assert parse_aup(write_aup(aup)) == aup


@pytest.mark.parametrize("name", PACKS)
def test_a_pack_round_trips_and_can_be_published(name: str) -> None:
    aup = read_pack(name)
    body = "\n".join(line for line in pack_source(name).splitlines() if not line.startswith("# ")) + "\n"
    assert write_aup(aup) == body
    assert parse_aup(body) == aup
    require_publishable(aup)
    assert all(clause.source for clause in aup.clauses if clause.type != "scheduler.portal_questions")


@pytest.mark.parametrize("name", PACKS)
def test_no_pack_asks_leave_to_inspect_logs(name: str) -> None:
    (said,) = [clause for clause in read_pack(name).clauses if clause.type == "monitoring.logs"]
    assert said.modality is Modality.INFORM
    assert "not inspected" in said.text_human


@pytest.mark.parametrize(
    ("name", "type_", "modality", "value"),
    [
        ("light-login", "scheduler.poll_min_s", "limit", 60),
        ("supervised", "scheduler.self_scope", "require", None),
        ("compute-only", "locus.login_node", "forbid", 0),
        ("dedicated-host", "scheduler.poll_min_s", "limit", 15),
        ("dedicated-host", "sessions.max", "advise", 1),
        ("service-account", "sessions.max", "limit", 1),
        ("cautious", "autonomy.unattended", "forbid", None),
    ],
)
def test_packs_say_what_their_sites_publish(name: str, type_: str, modality: str, value: float | None) -> None:
    (clause,) = [clause for clause in read_pack(name).clauses if clause.type == type_]
    assert (clause.modality.value, clause.value) == (modality, value)


def test_the_first_policy_round_trips() -> None:
    aup = parse_aup(default_source())
    require_publishable(aup)
    assert parse_aup(write_aup(aup)) == aup


@pytest.mark.parametrize(
    ("check", "standing", "verified"),
    [
        (Check(Coverage.OBSERVED, "portal_questions_per_minute"), Standing.ENFORCED, True),
        (Check(Coverage.OBSERVED, "polling_loops"), Standing.MEASURED, True),
        (Check(Coverage.DECLARED), Standing.DECLARED, True),
        (Check(Coverage.OBSERVED, "guard:cpu_minutes", "Always kept."), Standing.NOT_YET, False),
        (Check(Coverage.NONE, words="Always kept."), Standing.UNVERIFIED, False),
    ],
    ids=["enforced", "measured", "declared", "not-yet", "unverified"],
)
def test_a_clause_says_how_far_it_is_checked(check: Check, standing: Standing, verified: bool) -> None:
    clause = replace(read_pack("cautious").clauses[0], check=check)
    assert (clause.standing, clause.is_verified) == (standing, verified)
    assert verified or "Always kept" not in clause.check_words


HEAD = 'version = "1"\ntitle = "T"\neffective = 2026-06-01\n'
ROW = '[[clause]]\ntype = "site.b"\nmodality = "advise"\ntext_human = "x"\ntext_agent = "x"\n'


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("version =", "aup_no_toml"),
        ('title = "T"\n', "aup_field_missing"),
        ('version = "1"\ntitle = "T"\n', "aup_field_missing"),
        (HEAD + "colour = 1\n", "aup_field_unknown"),
        (HEAD + "grace_days = -1\n", "aup_grace"),
        (HEAD + "text = 3\n", "aup_text"),
        (HEAD + "clause = 3\n", "aup_clauses"),
        (HEAD.replace('"1"', '"a/b"'), "aup_version"),
        (HEAD + ROW + "colour = 1\n", "clause_field_unknown"),
        (HEAD + ROW + 'check = { covers = "none" }\n', "clause_field_unknown"),
        (HEAD + ROW + "place = 3\n", "clause_field_kind"),
        (HEAD + ROW + "value = true\n", "clause_field_kind"),
        (HEAD + ROW + "parameters = { depth = [[1]] }\n", "clause_field_kind"),
        (HEAD + ROW + "parameters = { color = 1 }\n", "clause_parameter"),
        (HEAD + ROW + 'source = "javascript:x"\n', "clause_source"),
        (HEAD + ROW + 'place = ["moon"]\n', "clause_place"),
        (HEAD + ROW + "applies = { labs = [] }\n", "clause_applies"),
        (HEAD + ROW.replace("advise", "wish"), "clause_choice"),
        (HEAD + ROW + ROW, "clause_twice"),
        (HEAD + ROW + 'action = "hold"\n', "clause_action_too_strong"),
        (HEAD + ROW.replace("advise", "limit") + "value = inf\nunit = 's'\n", "clause_value"),
    ],
)
def test_every_fault_has_a_code_and_a_remedy(text: str, code: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_aup(text)
    assert caught.value.fault.code == code
    assert caught.value.fault.remedy


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (HEAD, "aup_empty"),
        (HEAD + ROW.replace("site.b", "scheduler.pol_min_s"), "clause_type_unknown"),
        (HEAD.replace("2026-06-01", '"soon"') + ROW, "aup_effective"),
    ],
)
def test_what_reads_well_may_still_not_be_published(text: str, code: str) -> None:
    with pytest.raises(PolicyError) as caught:
        require_publishable(parse_aup(text))
    assert caught.value.fault.code == code
    assert caught.value.fault.remedy
