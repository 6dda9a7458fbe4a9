"""Text from elsewhere, as a terminal may show it."""

import pytest

from telemetry.engine.plain import plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ünï “x”", "ünï “x”"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\nb\r", "a\\nb\\r"),
        ("\u202e", "\\u202e"),
        ("\udc80", "\\udc80"),
    ],
    ids=["letters", "escape", "lines", "direction", "no letter"],
)
def test_what_is_no_letter_is_written_out(text: str, shown: str) -> None:
    assert plain(text) == shown
