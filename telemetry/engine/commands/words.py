"""Words of a command line: options, operands, and what a wrapper or a shell runs.

Words are taken as they come; whatever cannot be read is looked at as far as it can be, for nobody who measures may fall
over what somebody typed.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from principals.engine.interpreters import script_of
from telemetry.engine.commands.catalogue import Wrapper, catalogue

MOST_WORDS: Final = 256  # of one command line; what stands behind does not change what it is
LONGEST_TEXT: Final = 16_384  # of a shell's text
_DEEPEST: Final = 8
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
SHELLS: Final = frozenset({"bash", "sh", "dash", "zsh", "ksh", "fish", "csh", "tcsh"})
INTERPRETERS: Final = frozenset({"python", "perl", "ruby", "node", "bun", "deno", "php"})
_RESERVED: Final = frozenset(
    {
        "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "esac", "{", "}", "!", "[[", "]]", "coproc",
        "time",
    }
)  # fmt: skip
_HEADS: Final = frozenset({"for", "case", "select", "function"})


def options(words: Sequence[str]) -> frozenset[str]:
    """Return the options before `--`: `--long` without its value, `-abc` as `-a`, `-b` and `-c`."""
    found: set[str] = set()
    for word in words:
        if word == "--":
            break
        if word.startswith("--"):
            found.add(word.partition("=")[0])
        elif word.startswith("-"):
            found.update(f"-{letter}" for letter in word[1:])
    return frozenset(found)


def operands(words: Sequence[str], values: frozenset[str] = frozenset()) -> list[str]:
    """Return the words that are no options; those in `values` take the next word along."""
    found: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            found.extend(rest)
        elif not word.startswith("-") or word == "-":
            found.append(word)
        elif word in values:
            next(rest, None)
    return found


def unwrap(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the simple commands that a command line comes to, wrappers and shells looked through."""
    yield from _unwrap(list(words[:MOST_WORDS]), _DEEPEST)


def _unwrap(words: list[str], depth: int) -> Iterator[list[str]]:
    words = _without_assignments(words)
    if not words:
        return
    name, known = catalogue().name_of(words[0]), catalogue()
    inner: list[list[str]] = []
    if depth and name in known.wrappers:
        inner = [wrapped(words[1:], known.wrappers[name])]
    elif depth and name in SHELLS:
        inner = list(simple_commands(text_of(words[1:])))
    elif depth and name in INTERPRETERS:
        inner = [program_of(words[1:])]
    found = [each for part in inner if part for each in _unwrap(part, depth - 1)]
    yield from found or [words]


def simple_commands(text: str) -> Iterator[list[str]]:
    """Cut a shell's text into the words of its simple commands; text that has no sense to a shell gives none."""
    lexer = shlex.shlex(text[:LONGEST_TEXT].replace("\n", " ; "), posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        for token in lexer:
            if set(token) <= set("();|&"):
                yield _command(words)
                words = []
            elif not set(token) <= set("<>"):
                words.append(token)
    except ValueError:  # a quote that nobody closed
        return
    yield _command(words)


def _command(words: Sequence[str]) -> list[str]:
    """Leave out what belongs to the shell's grammar: words before a command, and the heads of loops and cases."""
    first = next((place for place, word in enumerate(words) if word not in _RESERVED), len(words))
    return [] if first < len(words) and words[first] in _HEADS else list(words[first:])


def _without_assignments(words: list[str]) -> list[str]:
    first = next((place for place, word in enumerate(words) if not _ASSIGNMENT.match(word)), len(words))
    return words[first:]


def wrapped(words: Sequence[str], wrapper: Wrapper) -> list[str]:
    """Return the command behind a wrapper's own options and words; empty where there is none."""
    place = 0
    while place < len(words):
        word = words[place]
        if word == "--":
            place += 1
            break
        if word in wrapper.values:
            place += 2
        elif word.startswith("-") or (wrapper.assignments and _ASSIGNMENT.match(word)):
            place += 1
        else:
            break
    return list(words[place + wrapper.skip :])


def text_of(words: Sequence[str]) -> str:
    """Return the text that a shell was given to run; "" for a script, or for one that waits for a person."""
    for place, word in enumerate(words):
        if word.startswith("-") and not word.startswith("--") and "c" in word[1:]:
            return next((text for text in words[place + 1 :] if not text.startswith(("-", "+"))), "")
        if not word.startswith(("-", "+")):
            break
    return ""


def program_of(words: Sequence[str]) -> list[str]:
    """Return the known program that an interpreter runs as a module or script; empty where it is something else."""
    script = script_of(words)
    name = catalogue().name_of(script[0]) if script else ""
    return [name, *script[1:]] if name and name not in SHELLS | INTERPRETERS else []
