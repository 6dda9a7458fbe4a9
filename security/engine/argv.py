"""Secrets in the arguments of known programs: what no token shape can recognise."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from security.engine.plausible import is_plausible_value


@dataclass(frozen=True, slots=True)
class Grammar:
    """Where one program takes a secret.

    ``attached`` options carry the value in the same word (``-pX``), ``separate`` ones in the next
    (``-w X``). ``after`` is the mark inside the value behind which the secret begins (``user:pass``).
    ``subcommand`` must come first; ``positional`` takes the first bare word after it.
    """

    kind: str
    attached: tuple[str, ...] = ()
    separate: tuple[str, ...] = ()
    after: str = ""
    subcommand: str = ""
    positional: bool = False


@dataclass(frozen=True, slots=True)
class Word:
    """A shell word: its text without outer quotes and where that text stands."""

    text: str
    start: int
    end: int


_LOGIN = Grammar("password", attached=("-p",), separate=("-p",), subcommand="login")
_MYSQL = Grammar("password", attached=("-p",))
_LDAP = Grammar("password", attached=("-w",), separate=("-w",))
_SEVEN = Grammar("password", attached=("-p",))
_USERPASS = Grammar("password", attached=("-u", "-U"), separate=("-u", "-U", "--user", "--proxy-user"), after=":")

PROGRAMS: dict[str, Grammar] = {
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump"), _MYSQL),
    **dict.fromkeys(("docker", "podman", "nerdctl", "helm", "skopeo", "buildah", "oras"), _LOGIN),
    **dict.fromkeys(("apptainer", "singularity"), _LOGIN),
    **dict.fromkeys(("ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldapwhoami", "ldappasswd"), _LDAP),
    **dict.fromkeys(("7z", "7za", "7zr", "7zz"), _SEVEN),
    "sshpass": Grammar("password", attached=("-p",), separate=("-p",)),
    "redis-cli": Grammar("password", separate=("-a",)),
    "zip": Grammar("password", separate=("-P",)),
    "unzip": Grammar("password", attached=("-P",), separate=("-P",)),
    "curl": _USERPASS,
    "openssl": Grammar("password", separate=("-pass", "-passin", "-passout"), after="pass:"),
    "wandb": Grammar("wandb_key", subcommand="login", positional=True),
    "vault": Grammar("vault_token", subcommand="login", positional=True),
}
NEEDLES = ("sql", "mariadb", "login", "ldap", "7z", "pass", "redis", "zip", "curl", "<<<", "sudo", "kinit")

# A word is a run of bare characters, quoted parts and escapes; an operator ends the command.
_WORD = re.compile(r"""(?P<op><<<|[;|&\n()]+)|(?:[^\s;|&()"'\\<]|"[^"]*"|'[^']*'|\\.|["'\\<])+""")
_FED = re.compile(
    r"""(?:\becho|\bprintf)\s+(?:-[neE]+\s+|["']%s(?:\\n)?["']\s+)*(?:"(?P<v1>[^"\x00\n]+)"|'(?P<v2>[^'\x00\n]+)'"""
    r"""|(?P<v3>[^\s"'|;&\x00]+))\s*\|\s*(?:sudo\s+-\S*S|kinit\b|passwd\s+--stdin|gpg\b|cryptsetup\b|su\b"""
    r"""|(?:docker|podman|gh|glab|helm|skopeo)\s[^|;\n]*(?:-stdin|--with-token))"""
)
_CHPASSWD = re.compile(r"""\becho\s+["']?[\w.-]+:(?P<v3>[^\s"'|;\x00]+)["']?\s*\|\s*(?:sudo\s+)?chpasswd\b""")
_MAX_DEPTH = 2
_HERE_STRING = frozenset({"kinit", "sudo", "su", "passwd", "cryptsetup", "gpg", "docker", "podman", "gh", "glab"})


def split_commands(text: str, offset: int = 0) -> Iterator[list[Word]]:
    """Split a line into simple commands of words; a here-string's value is marked by a ``<<<`` word."""
    words: list[Word] = []
    for match in _WORD.finditer(text):
        if match["op"] is not None and match["op"] != "<<<":
            yield words
            words = []
            continue
        start, end = match.span()
        raw = match[0]
        if len(raw) > 1 and raw[0] == raw[-1] and raw[0] in "\"'" and raw.count(raw[0]) == 2:
            start, end = start + 1, end - 1
        words.append(Word(text[start:end], start + offset, end + offset))
    yield words


def _part(word: Word, skip: int, after: str) -> tuple[int, int] | None:
    """Give the span of a secret that begins ``skip`` characters into a word, behind ``after``."""
    value = word.text[skip:]
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        skip, value = skip + 1, value[1:-1]
    if after:
        head, mark, value = value.partition(after)
        skip += len(head) + len(mark)
    if not is_plausible_value(value) or "\x00" in word.text:
        return None
    return word.start + skip, word.start + skip + len(value)


def _option_spans(words: Sequence[Word], grammar: Grammar) -> Iterator[tuple[int, int] | None]:
    for index, word in enumerate(words):
        if word.text in grammar.separate:
            if index + 1 < len(words) and not words[index + 1].text.startswith("-"):
                yield _part(words[index + 1], 0, grammar.after)
            continue
        for option in grammar.attached:
            if word.text.startswith(option) and len(word.text) > len(option):
                yield _part(word, len(option), grammar.after)


def _positional_span(words: Sequence[Word]) -> tuple[int, int] | None:
    bare = next((word for word in words if not word.text.startswith("-")), None)
    if bare is None or len(bare.text) < 20 or not bare.text.replace("-", "").replace("_", "").isascii():
        return None
    return _part(bare, 0, "")


def _program_spans(words: Sequence[Word], grammar: Grammar) -> Iterator[tuple[int, int] | None]:
    """Find the secrets among the words after a program's name."""
    if grammar.subcommand:
        place = next((at for at, word in enumerate(words) if word.text == grammar.subcommand), None)
        if place is None:
            return
        words = words[place + 1 :]
    if grammar.positional:
        yield _positional_span(words)
    yield from _option_spans(words, grammar)


def _here_string_spans(words: Sequence[Word]) -> Iterator[tuple[int, int] | None]:
    """Find what ``<<<`` feeds to a program that reads a password."""
    first = next((at for at, word in enumerate(words) if word.text in _HERE_STRING), len(words))
    for mark, fed in pairwise(words[first:]):
        if mark.text == "<<<":
            yield _part(fed, 0, "")


def _inner_commands(word: Word) -> Iterator[list[Word]]:
    """Split a word that holds a command line: ``--wrap="mysql -pX db"``, ``bash -c '…'``."""
    text = word.text
    if "=" in text[:12]:
        text = text.replace('"', " ").replace("'", " ")
    return split_commands(text, word.start)


def _known_program_spans(words: Sequence[Word]) -> Iterator[tuple[int, int, str]]:
    """Find the secrets of every known program of one command; wrappers before it do not matter."""
    places = [at for at, word in enumerate(words) if word.text.rsplit("/", 1)[-1] in PROGRAMS]
    for place, after in pairwise([*places, len(words)]):
        grammar = PROGRAMS[words[place].text.rsplit("/", 1)[-1]]
        for span in _program_spans(words[place + 1 : after], grammar):
            if span is not None:
                yield *span, grammar.kind


def _command_spans(words: Sequence[Word], depth: int) -> Iterator[tuple[int, int, str]]:
    yield from _known_program_spans(words)
    yield from ((*span, "password") for span in _here_string_spans(words) if span is not None)
    if depth == _MAX_DEPTH:
        return
    for word in words:
        if " " in word.text:
            for inner in _inner_commands(word):
                yield from _command_spans(inner, depth + 1)


def _piped_spans(text: str) -> Iterator[tuple[int, int, str]]:
    for pattern in (_FED, _CHPASSWD):
        for match in pattern.finditer(text):
            group = next(name for name in match.re.groupindex if match[name] is not None)
            if is_plausible_value(match[group]):
                yield *match.span(group), "password"


def find_argument_secrets(text: str) -> Iterator[tuple[int, int, str]]:
    """Find secrets in program arguments: start and end offset in the text, and the kind.

    The same span may come twice.
    """
    for words in split_commands(text):
        yield from _command_spans(words, 0)
    yield from _piped_spans(text)
