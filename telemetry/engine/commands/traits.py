"""What a command does that a figure counts, from its words behind the program."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Final

from telemetry.engine.commands.words import operands, options

QUERY: Final = "scheduler_query"
SUBMISSION: Final = "submission"
CANCEL: Final = "cancel"
TREE_WALK: Final = "tree_walk"
RECURSIVE_SEARCH: Final = "recursive_search"
EDIT: Final = "edit"  # without an editor that waits for a person
REMOVE: Final = "rm_force"
REMOVE_ROOT: Final = "rm_root"  # as `rm -rf $DIR/` comes out where the variable is not set
KILL: Final = "kill"
DISCARD: Final = "git_discard"
MCP: Final = "mcp"
PLUGIN: Final = "plugin"

_GIT_VALUES: Final = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"})
_NEAR_ROOT: Final = 2  # the root itself, and one name below
_PROBES: Final = frozenset({"-0", "-l", "-L", "--list", "--table", "-V", "--help"})
_RUN_PACKAGES: Final = frozenset({"npx", "uvx", "bun", "pnpm", "pipx", "uv", "yarn"})


def git_command(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return a Git subcommand and the words behind it; "" where there is none."""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in _GIT_VALUES else rest[1:]
    return (rest[0], rest[1:]) if rest else ("", [])


def is_git(name: str) -> Callable[[Sequence[str]], bool]:
    """Return the test for one Git subcommand."""
    return lambda words: git_command(words)[0] == name


def is_slurm_query(words: Sequence[str]) -> bool:
    """Say whether `scontrol` or `sacctmgr` only asks; their commands may be cut short."""
    asked = (operands(words, frozenset({"-M", "--cluster", "--clusters"})) or [""])[0].lower()
    return len(asked) > 1 and any(full.startswith(asked) for full in ("show", "list", "ping", "listpids", "getaddrs"))


def is_cancel(words: Sequence[str]) -> bool:
    """Say whether `scancel` ends jobs; with a signal named it does not."""
    return not options(words) & {"-s", "--signal"} and not any(word.startswith("-s") for word in words)


def walks_deep(words: Sequence[str]) -> bool:
    """Say whether `find` goes further than into one folder."""
    depth = dict(pairwise(words)).get("-maxdepth", "")
    return depth not in {"0", "1"}


def lists_deep(words: Sequence[str]) -> bool:
    """Say whether a listing goes into folders."""
    return bool(options(words) & {"-R", "--recursive", "-T", "--tree"})


def searches_deep(words: Sequence[str]) -> bool:
    """Say whether `grep` goes into folders."""
    deep = {"-r", "-R", "--recursive", "--dereference-recursive"}
    return bool(options(words) & deep) or "--directories=recurse" in words


def edits_in_place(words: Sequence[str]) -> bool:
    """Say whether `sed` or `perl` writes its file anew."""
    return "--in-place" in options(words) or any(
        word.startswith("-") and not word.startswith("--") and "i" in word[1:].split("e")[0] for word in words
    )


def removes_by_force(words: Sequence[str]) -> bool:
    """Say whether `rm` asks nobody."""
    return bool(options(words) & {"-f", "--force"})


def removes_root(words: Sequence[str]) -> bool:
    """Say whether `rm -r` by force begins right below the root of the file system."""
    if not (removes_by_force(words) and options(words) & {"-r", "-R", "--recursive"}):
        return False
    return any(each.startswith("/") and len(PurePosixPath(each).parts) <= _NEAR_ROOT for each in operands(words))


def kills(words: Sequence[str]) -> bool:
    """Say whether a process is to end; a probe or a list of signals ends none."""
    return bool(words) and not _PROBES & set(words)


def discards(words: Sequence[str]) -> bool:
    """Say whether Git throws work away that was not committed (`reset --hard`, `clean -fd`)."""
    name, rest = git_command(words)
    given = options(rest)
    if name == "clean":
        return bool(given & {"-f", "--force"}) and "-d" in given and not given & {"-n", "--dry-run"}
    return name == "reset" and "--hard" in given


def is_mcp_command(words: Sequence[str]) -> bool:
    """Say whether a harness is told about an MCP server."""
    return list(words[:1]) == ["mcp"]


def is_plugin_command(words: Sequence[str]) -> bool:
    """Say whether a harness is told about a plugin, an extension or a skill."""
    return bool(words) and words[0].rstrip("s") in {"plugin", "extension", "skill"}


def is_mcp_server(program: str, words: Sequence[str]) -> bool:
    """Say whether a package is run that calls itself an MCP server."""
    if program not in _RUN_PACKAGES:
        return False
    named = next((word for word in operands(words) if word not in {"run", "tool", "dlx", "x", "exec"}), "")
    return "mcp" in named.lower().replace("@", "-").replace("/", "-").replace("_", "-").split("-") or (
        named.startswith("@modelcontextprotocol/")
    )
