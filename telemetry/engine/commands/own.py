"""What one start of a program counts for by itself, where every program that starts is looked at by itself.

A wrapper, or a shell with a text to run, is there for what it starts, which is seen as well: it counts for nothing.
"""

from collections.abc import Sequence
from typing import Final

from principals.engine.interpreters import script_of
from telemetry.engine.commands.catalogue import catalogue
from telemetry.engine.commands.classify import Command, command_of, named
from telemetry.engine.commands.words import INTERPRETERS, MOST_WORDS, SHELLS, program_of, text_of, wrapped

_APPLETS: Final = "busybox"  # runs the command itself instead of starting it
_READERS: Final = "agent-path"  # the folder of the scripts that only start `gatehouse squeue` and `gatehouse sacct`
_FRONTS: Final = frozenset({"egrep", "fgrep", "zgrep"})  # as scripts they only start `grep`, which is counted


def own_command(argv: Sequence[str]) -> Command | None:
    """Return what a process counts for that runs `argv`, None for one that counts for nothing. Never fails.

    Interpreters are looked through for a module or a script that the catalogue knows, shells for such a script.
    """
    words = list(argv[:MOST_WORDS])
    if not words:
        return None
    known, name = catalogue(), catalogue().name_of(words[0])
    while name == _APPLETS and words[1:]:
        words = words[1:]
        name = known.name_of(words[0])
    if name in known.wrappers:
        return None if wrapped(words[1:], known.wrappers[name]) else command_of(words, name)
    if name in SHELLS:
        return None if text_of(words[1:]) else _scripted(words)
    if name in INTERPRETERS and (found := program_of(words[1:])):
        return command_of(found)
    return command_of(words, name)


def own_command_by_name(name: str) -> Command | None:
    """Return what a process counts for of which the name of its program alone is known, as `own_command`.

    Names that the kernel cut short are programs that nobody knows.
    """
    known = catalogue()
    return None if known.name_of(name) in known.wrappers.keys() | SHELLS else named(name)


def _scripted(words: Sequence[str]) -> Command | None:
    """Return what a shell counts for that runs a script, or waits for a person."""
    script, path = program_of(words[1:]), script_of(words[1:])
    if script and (script[0] in _FRONTS or _is_reader(path[0])):
        return None
    return command_of(script or words)


def _is_reader(path: str) -> bool:
    """Say whether a script stands in for a command of Slurm: where it runs that after all, that is seen as well."""
    return path.rpartition("/")[0].endswith(_READERS)
