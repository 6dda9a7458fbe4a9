"""Receipts among the words of a comment, and what they say beside the other evidence."""

import pytest

from security.engine.redact import redact
from telemetry.engine import attribution, receipts
from telemetry.engine.attribution import UNKNOWN, Receipt, labelled, receipted

ONE, TRIAL = "rcp_23456789abcd", "trl_bcdefghjkmnp"


@pytest.mark.parametrize(
    ("comment", "found"),
    [
        (ONE, {ONE}),
        (f"campaign=dock {ONE}", {ONE}),
        (f'{{"campaign": "dock", "receipt": "{ONE}"}}', {ONE}),
        (f"{ONE},{TRIAL}", {ONE, TRIAL}),
        (f"gatehouse:v1:harness=codex:marker=CODEX_CI {TRIAL}", {TRIAL}),
        (ONE[:-1], set()),
        (f"{ONE}a", set()),
        (f"x{ONE}", set()),
        ("rcp_23456789abcl", set()),  # no letter that is taken for a digit
        ("", set()),
    ],
)
def test_a_receipt_is_found_whatever_stands_around_it(comment: str, found: set[str]) -> None:
    assert receipts.receipts_in(comment) == found
    assert receipts.receipts_of(comment, {}) == receipts.receipts_of("", {"AdminComment": comment}) == found


def test_new_receipts_are_receipts_and_no_rule_takes_them_for_a_secret() -> None:
    for prefix in (receipts.JOB, receipts.TRIAL):
        made = {receipts.new_receipt(prefix) for _ in range(200)}
        assert len(made) == 200
        for name in made:
            assert receipts.receipts_in(name) == {name}
            assert redact(f"sbatch --comment={name} job.sh", key=b"k" * 32).findings == ()


ADAS = Receipt(1, "codex", frozenset({"ada", "ada2"}), 100, 200, 31)
BOBS = Receipt(2, "aider", frozenset({"bob"}), 100, 200, 32)
OBSERVED = UNKNOWN._replace(actor="agent", harness="codex", session_id=7, method="observed", evidence=(7,), agent_id=30)


def judge(*given: Receipt, user: str = "ada", submit_s: int = 150, found: attribution.Attribution = UNKNOWN):
    return receipted(found, given, user=user, submit_s=submit_s)


def test_a_receipt_is_the_best_evidence_and_keeps_the_session_of_its_harness() -> None:
    told = judge(ADAS, found=OBSERVED)
    assert (told.actor, told.harness, told.method, told.session_id) == ("agent", "codex", "receipt", 7)
    assert told.agent_id == 31, "the one that asked for it, not the session's"
    assert told.confidence == max(attribution.CONFIDENCE.values())
    assert judge(ADAS, user="ada2").method == "receipt"


def test_it_is_over_at_its_end_and_says_nothing_then() -> None:
    for submit_s, method in ((97, "none"), (98, "receipt"), (202, "receipt"), (203, "none")):
        assert judge(ADAS, submit_s=submit_s).method == method
    assert judge(ADAS, submit_s=500, found=OBSERVED) == OBSERVED


@pytest.mark.parametrize(
    "found",
    [
        OBSERVED._replace(harness="aider"),
        UNKNOWN._replace(actor="human", method="interactive_session", session_id=8),
        labelled(UNKNOWN, "aider"),
    ],
)
def test_evidence_against_it_makes_it_less_sure(found: attribution.Attribution) -> None:
    told = judge(ADAS, found=found)
    assert (told.actor, told.harness, told.session_id) == ("agent", "codex", None)
    assert told.method == "receipt_against_others"
    assert told.confidence < attribution.CONFIDENCE["receipt"]


def test_somebody_elses_is_no_evidence_and_is_counted() -> None:
    assert judge(BOBS)[:2] == ("unknown", "")
    assert judge(BOBS).method in attribution.UNATTRIBUTED
    told = judge(BOBS, found=OBSERVED)
    assert (told.actor, told.session_id, told.method, told.agent_id) == ("agent", 7, "receipt_foreign", 30)
    assert judge(BOBS, submit_s=900).method == "receipt_foreign_alone", "also when it is over"
    assert judge(BOBS, ADAS).method == "receipt", "beside an own one it does no harm"


def test_of_several_own_ones_the_last_issued_answers() -> None:
    later = ADAS._replace(number=9, harness="goose")
    assert judge(ADAS, later).harness == judge(later, ADAS).harness == "goose"
    assert judge(ADAS, later._replace(last_s=120)).harness == "codex"
