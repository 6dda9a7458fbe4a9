"""The settings file holds what was answered, and nothing that an answer would smuggle in."""

from pathlib import Path

import pytest

from portal.core import environment_file
from portal.core.errors import Invalid


@pytest.mark.parametrize("between", ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "'", "\0"])
def test_no_value_is_read_as_another_line(between: str) -> None:
    with pytest.raises(Invalid, match="character"):
        environment_file.text_of({"GATEHOUSE_FACILITY": f"North{between}GATEHOUSE_DEBUG=1"}, Path("x.env"))


def test_a_name_in_any_letters_is_written() -> None:
    assert "GATEHOUSE_FACILITY='Rechenzentrum Süd (東)'\n" in environment_file.text_of(
        {"GATEHOUSE_FACILITY": "Rechenzentrum Süd (東)"}, Path("x.env")
    )
