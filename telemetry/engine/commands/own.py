"""What one start of a program counts for by itself, where every program that starts is looked at by itself.

A wrapper, or a shell with a text to run, is there for what it starts, which is seen as well: it counts for nothing.
"""

from collections.abc import Sequence
from typing import Final

from telemetry.engine.commands.catalogue import catalogue
from telemetry.engine.commands.classify import Command, command_of, named
from telemetry.engine.commands.words import INTERPRETERS, MOST_WORDS, SHELLS, program_of, text_of, wrapped

_APPLETS: Final = "busybox"  # runs the command itself instead of starting it
_FRONTS: Final = frozenset({"egrep", "fgrep", "zgrep"})  # as scripts they only start `grep`, which is counted


def own_command(argv: Sequence[str]) -> Command | None:
    """Return what a process counts for that runs `argv`, None for one that counts for nothing. Never fails.

    Interpreters are looked through for a module or a script that the catalogue knows, shells for such a script.
    """
    words = list(argv[:MOST_WORDS])
    known = catalogue()
    while words and known.name_of(words[0]) == _APPLETS and words[1:]:
        words = words[1:]
    if not words:
        return None
    name, rest = known.name_of(words[0]), words[1:]
    if name in known.wrappers:
        return None if wrapped(rest, known.wrappers[name]) else command_of(words)
    if name in SHELLS:
        return None if text_of(rest) else _scripted(words)
    return command_of((program_of(rest) if name in INTERPRETERS else []) or words)


def own_command_by_name(name: str) -> Command | None:
    """Return what a process counts for of which the name of its program alone is known, as `own_command`.

    Names that the kernel cut short are programs that nobody knows.
    """
    known = catalogue()
    return None if known.name_of(name) in known.wrappers.keys() | SHELLS else named(name)


def _scripted(words: Sequence[str]) -> Command | None:
    """Return what a shell counts for that runs a script, or waits for a person."""
    script = program_of(words[1:])
    return None if script and script[0] in _FRONTS else command_of(script or words)
