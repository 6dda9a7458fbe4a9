"""What an interpreter runs: the one look through `python …` and `node …` of all who ask what a process is."""

from collections.abc import Sequence
from typing import Final

_CODE: Final = frozenset({"-c", "-e"})  # the program itself stands on the line


def script_of(words: Sequence[str]) -> Sequence[str]:
    """Return the script or module behind an interpreter's options, with its own words; empty where there is none."""
    place = next((place for place, word in enumerate(words) if not word.startswith("-")), len(words))
    return () if _CODE & set(words[:place]) else words[place:]
