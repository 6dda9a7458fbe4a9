"""What is counted is of a closed list."""

import shlex

from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine.activity import ALL, MEASURES, measures_of
from telemetry.engine.commands import classify


def counted(line: str) -> list[str]:
    return sorted(measures_of(classify(shlex.split(line))))


def test_a_command_counts_for_its_category_its_tool_and_what_it_does() -> None:
    assert counted("grep -r needle /home/ada/secret") == [
        "category:text", "commands", "recursive_search", "tool:grep",
    ]  # fmt: skip
    assert counted("sbatch run.sh") == ["category:slurm", "commands", "submission"]
    assert counted("curl https://pypi.org/simple/") == ["category:network", "commands", "fetch:code"]


def test_each_command_of_a_text_counts() -> None:
    assert counted("bash -c 'head a; head b'").count(ALL) == 2


def test_no_measure_stands_twice() -> None:
    assert len(set(MEASURES)) == len(MEASURES)


@given(st.lists(st.text(max_size=30), max_size=6))
def test_nothing_that_was_typed_becomes_a_measure(argv: list[str]) -> None:
    assert set(measures_of(classify(argv))) <= set(MEASURES)
