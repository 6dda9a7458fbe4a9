"""What a command is, in the terms of the published measurement (Figures 3 and 5, Tables I and III, §IV, §VII).

A command keeps nothing of its words: no path, no argument, no name of a program that the catalogue does not have.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from telemetry.engine.commands import traits
from telemetry.engine.commands.catalogue import OTHER, catalogue
from telemetry.engine.commands.fetches import fetch_of
from telemetry.engine.commands.words import unwrap


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command. `program` is a name of the catalogue or "", `tool` a name of Table I or "".

    `traits` are those of `telemetry.engine.commands.traits`; `fetch` is "", `code`, `web` or `search`.
    """

    program: str
    category: str
    tool: str = ""
    traits: frozenset[str] = frozenset()
    fetch: str = ""


def classify(argv: Sequence[str]) -> tuple[Command, ...]:
    """Classify what a command line comes to: one command, or those of a shell's text in their order.

    Wrappers (`env`, `timeout`, `sudo`, `xargs`, `bash -c`, `python -m` and others) are looked through. Never fails.
    """
    return tuple(command_of(words) for words in unwrap(argv))


def command_of(words: Sequence[str], name: str | None = None) -> Command:
    """Return what one simple command is, nothing looked through. `words` holds one word at least; `name` is what the
    catalogue calls the first, where that was asked already."""
    known, rest = catalogue(), words[1:]
    program = known.name_of(words[0]) if name is None else name
    found = frozenset(name for name, holds in _TRAITS.get(program, {}).items() if holds(rest))
    if traits.is_mcp_server(program, rest):
        found |= {traits.MCP}
    category = known.categories.get(program, OTHER)
    return Command(program, category, known.tools.get(program, ""), found, fetch_of(program, rest))


def named(name: str) -> Command:
    """Return what is known of a command by the name of its program alone: traits that need no other word."""
    known, program = catalogue(), catalogue().name_of(name)
    certain = frozenset(trait for trait, holds in _TRAITS.get(program, {}).items() if holds is _always)
    return Command(program, known.categories.get(program, OTHER), known.tools.get(program, ""), certain)


_Test = Callable[[Sequence[str]], bool]


def _always(_: Sequence[str]) -> bool:
    return True


def _each(names: str, test: _Test, trait: str) -> dict[str, dict[str, _Test]]:
    return {name: {trait: test} for name in names.split()}


def _merged(*tables: Mapping[str, Mapping[str, _Test]]) -> dict[str, dict[str, _Test]]:
    found: dict[str, dict[str, _Test]] = {}
    for table in tables:
        for name, tests in table.items():
            found.setdefault(name, {}).update(tests)
    return found


_TRAITS: Final = _merged(
    _each("squeue sinfo sacct sprio sshare sstat sdiag sreport smap sjobs seff reportseff", _always, traits.QUERY),
    _each("scontrol sacctmgr", traits.is_slurm_query, traits.QUERY),
    _each("sbatch salloc srun", _always, traits.SUBMISSION),
    _each("scancel", traits.is_cancel, traits.CANCEL),
    _each("tree du fd fdfind", _always, traits.TREE_WALK),
    _each("find", traits.walks_deep, traits.TREE_WALK),
    _each("ls eza exa lsd", traits.lists_deep, traits.TREE_WALK),
    _each("rg ag ack", _always, traits.RECURSIVE_SEARCH),
    _each("grep egrep fgrep", traits.searches_deep, traits.RECURSIVE_SEARCH),
    _each("git", traits.is_git("grep"), traits.RECURSIVE_SEARCH),
    _each("sed perl", traits.edits_in_place, traits.EDIT),
    _each("patch ed", _always, traits.EDIT),
    _each("git", traits.is_git("apply"), traits.EDIT),
    _each("rm", traits.removes_by_force, traits.REMOVE),
    _each("rm", traits.removes_root, traits.REMOVE_ROOT),
    _each("kill pkill killall skill", traits.kills, traits.KILL),
    _each("git", traits.discards, traits.DISCARD),
    _each("claude codex gemini copilot cursor-agent opencode goose amp", traits.is_mcp_command, traits.MCP),
    _each("claude codex gemini copilot cursor-agent opencode goose amp", traits.is_plugin_command, traits.PLUGIN),
)
