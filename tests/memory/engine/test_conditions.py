"""Conditions are read as written, or refused with a sentence that names the fault."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.engine.conditions import MAX_CONDITIONS, OPERATORS, Condition, parse_condition, parse_conditions


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("gpu_arch == sm_120", ("gpu_arch", "==", "sm_120")),
        ("module:openmpi<4.1", ("module:openmpi", "<", "4.1")),
        ("  slurm >=  25.11 ", ("slurm", ">=", "25.11")),
        ("partition != gpu short", ("partition", "!=", "gpu short")),
    ],
)
def test_it_reads_key_operator_value(text: str, parts: tuple[str, str, str]) -> None:
    assert parse_condition(text) == Condition(*parts)


@pytest.mark.parametrize(
    "text", ["", "gpu", "== sm_120", "gpu ==", "gpu = 3", "9x == 1", "a == b\nc", "a == " + "x" * 101]
)
def test_it_refuses_what_is_no_condition(text: str) -> None:
    with pytest.raises(ValueError, match=r"condition|longer"):
        parse_condition(text)


def test_equal_conditions_count_once_and_empty_lines_pass() -> None:
    assert len(parse_conditions(["a == 1", "", "a  ==  1", " "])) == 1


def test_too_many_are_refused() -> None:
    with pytest.raises(ValueError, match="at most"):
        parse_conditions([f"k{number} == 1" for number in range(MAX_CONDITIONS + 1)])


@given(
    key=st.from_regex(r"[a-z][a-z0-9_]{0,10}", fullmatch=True),
    op=st.sampled_from(OPERATORS),
    value=st.from_regex(r"[a-z0-9]{1,9}", fullmatch=True),
)
def test_what_is_written_reads_back(key: str, op: str, value: str) -> None:
    condition = Condition(key, op, value)
    assert parse_condition(str(condition)) == condition
