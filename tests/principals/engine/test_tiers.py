import pytest
from hypothesis import given
from hypothesis import strategies as st

from principals.engine.tiers import (
    Autonomy,
    Reason,
    RiskInputs,
    Tier,
    assess_risk,
    max_token_life_days,
    tier_of,
)

severities = st.dictionaries(st.sampled_from(["low", "medium", "high", "critical"]), st.integers(0, 9))
inputs = st.builds(
    RiskInputs,
    autonomy=st.sampled_from(Autonomy),
    uses_gpu=st.booleans(),
    hosts=st.integers(0, 9),
    extensions=st.lists(st.sampled_from("abcdef"), max_size=6).map(tuple),
    open_findings=severities,
    sandboxed=st.booleans(),
)
ORDER = [Tier.STANDARD, Tier.ELEVATED, Tier.RESTRICTED]


@given(inputs)
def test_the_reasons_add_up_to_the_score(known):
    risk = assess_risk(known)
    assert sum(reason.points for reason in risk.reasons) == risk.score
    assert risk.tier is tier_of(risk.score)


@given(inputs)
def test_every_number_of_points_has_its_reason(known):
    text = " ".join(reason.text for reason in assess_risk(known).reasons)
    assert ("GPU" in text) == known.uses_gpu
    assert ("Sandboxed" in text) == known.sandboxed
    assert text.count("open") == sum(1 for number in known.open_findings.values() if number)


def test_an_unattended_gpu_agent_with_one_server_in_a_sandbox_is_elevated():
    risk = assess_risk(
        RiskInputs(Autonomy.UNATTENDED, uses_gpu=True, hosts=2, extensions=("mdtools-mcp",), sandboxed=True)
    )
    assert [reason.points for reason in risk.reasons] == [2, 1, 1, -1]
    assert risk.tier is Tier.ELEVATED
    assert risk.sentence == "3 points: Elevated is 3 to 5."


def test_a_supervised_agent_says_what_unattended_would_add():
    risk = assess_risk(RiskInputs(Autonomy.SUPERVISED))
    assert risk.reasons == (Reason(0, "Supervised; unattended would add 2"),)
    assert risk.tier is Tier.STANDARD


def test_a_critical_finding_restricts_an_unattended_agent():
    risk = assess_risk(RiskInputs(Autonomy.UNATTENDED, open_findings={"critical": 1}))
    assert risk.tier is Tier.RESTRICTED


def test_a_flood_of_low_findings_does_not_change_the_tier():
    assert assess_risk(RiskInputs(Autonomy.SUPERVISED, open_findings={"low": 900})).tier is Tier.STANDARD


def test_an_unknown_severity_is_an_error():
    with pytest.raises(ValueError, match="Unknown severity: dire"):
        assess_risk(RiskInputs(Autonomy.SUPERVISED, open_findings={"dire": 1}))


def test_a_stricter_tier_has_shorter_tokens():
    assert [max_token_life_days(tier, (60, 30, 2)) for tier in ORDER] == [60, 30, 2]
