"""Whether a command brings something in from outside, and from where: the paths of injection (paper §VII)."""

import ipaddress
import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from telemetry.engine.commands.catalogue import catalogue
from telemetry.engine.commands.traits import git_command
from telemetry.engine.commands.words import operands

CODE: Final = "code"
WEB: Final = "web"
SEARCH: Final = "search"

_DOWNLOADERS: Final = frozenset({"curl", "wget", "aria2c", "http", "httpie"})
_RUNNERS: Final = frozenset({"npx", "uvx", "easy_install"})
_GIT: Final = frozenset({"clone", "fetch", "pull", "submodule", "ls-remote"})
_SEARCHES: Final = re.compile(r"^https?://(?:www\.)?google\.[a-z.]+/search\?")


def fetch_of(program: str, words: Sequence[str]) -> str:
    """Return `code` for a code host or registry, `search`, `web` for another host, "" where nothing comes in."""
    if program in _DOWNLOADERS:
        return _destination(words)
    if program == "git":
        name, rest = git_command(words)
        return CODE if name in _GIT and not _is_local(rest) else ""
    if program in _RUNNERS:
        return CODE
    named = operands(words)
    return CODE if named and named[0] in catalogue().registries.get(program, ()) else ""


def _destination(words: Sequence[str]) -> str:
    """Return the most telling kind of the hosts that are asked; this machine and private addresses are none."""
    kinds = {_kind_of(word) for word in words}
    return next((kind for kind in (SEARCH, CODE, WEB) if kind in kinds), "")


def _kind_of(word: str) -> str:
    if _SEARCHES.match(word):
        return SEARCH
    host = _host_of(word)
    return "" if not host or _is_inside(host) else catalogue().kind_of_host(host)


def _host_of(word: str) -> str:
    try:
        return (urlsplit(word).hostname or "") if "://" in word else ""
    except ValueError:  # brackets that hold no address
        return ""


def _is_inside(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or "." not in host
    return address.is_private or address.is_loopback


def _is_local(words: Sequence[str]) -> bool:
    """Say whether a repository is named by a path of this machine."""
    named = operands(words, frozenset({"-b", "--branch", "--depth", "-o", "--origin", "-j", "--jobs"}))
    return bool(named) and named[0].startswith(("/", ".", "~", "file:"))
