"""What is counted of the commands of a session in a minute: the words that a collector and the portal share.

A measure is a word of a closed list: nothing that a command line held can become one.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from telemetry.engine.commands import Command, catalogue, traits

ALL: Final = "commands"
CATEGORY: Final = "category:"
TOOL: Final = "tool:"
FETCH: Final = "fetch:"
CONNECTION: Final = "ssh_connection"  # no command: a session of SSH without a terminal began

_TRAITS: Final = (
    traits.QUERY, traits.SUBMISSION, traits.CANCEL, traits.TREE_WALK, traits.RECURSIVE_SEARCH, traits.EDIT,
    traits.REMOVE, traits.REMOVE_ROOT, traits.KILL, traits.DISCARD, traits.MCP, traits.PLUGIN,
)  # fmt: skip
_FETCHES: Final = ("code", "web", "search")


def _measures() -> Iterator[str]:
    known = catalogue()
    yield ALL
    yield from (CATEGORY + slug for slug in known.titles)
    yield from (TOOL + name for name in dict.fromkeys(known.tools.values()))
    yield from _TRAITS
    yield from (FETCH + kind for kind in _FETCHES)
    yield CONNECTION


MEASURES: Final = tuple(_measures())


def measures_of(commands: Iterable[Command]) -> Iterator[str]:
    """Yield the measures that each command counts for, as often as it does: all, category, tool, traits, fetch."""
    for command in commands:
        yield ALL
        yield CATEGORY + command.category
        if command.tool:
            yield TOOL + command.tool
        yield from command.traits
        if command.fetch:
            yield FETCH + command.fetch
