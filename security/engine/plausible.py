"""Tell a value that may be a secret from a placeholder, a reference, a path or a number."""

import re

# Whole words before "token" or "key" that make it no secret: vocabulary of language models, of databases and of builds.
# A word that only ends so (ADMIN_, SESSION_, LOGIN_) does not.
_SAFE_PREFIX = re.compile(
    r"(?<![A-Za-z])(?:max|min|num|n|total|pad|eos|bos|sep|cls|unk|mask|stop|next|last|first|new|per|special|image|audio|prompt"
    r"|added|each|public|pub|primary|foreign|sort|partition|host|cache|hash|dict|map|group|index|idempotency|ssh"
    r"|batch|feature|label|column|row|lookup|registry)s?[._ -]?\Z",
    re.I,
)
# "pwd" is a working directory as often as a password.
_PLACE_PREFIX = re.compile(
    r"(?:old|work|run|cur|current|orig|original|job|slurm|host|submit|start|script|base|root|project|data|my|the)_\Z",
    re.I,
)
_PLACEHOLDER = re.compile(
    r"""(?ix)
    [*x.•_#-]+ | (.)\1{3,} | \$.* | `.* | <.* | %[sdr(\w%{].*%? | \{.* | @[\w./~-]+ | \[?redacted.*
    | (?:true|false|yes|no|none|null|nil|undefined|auto|default|optional|required|stdin|prompt|ask|env|file
      |bearer|token|basic|digest|apikey)
    | (?:your|my|the|some|example|change|insert|enter|replace|todo|placeholder|dummy)[\w-]*
    """
)
_RUN = re.compile(r"([A-Za-z0-9*.-])\1{7,}")  # documentation writes ghp_xxxxxxxx
_REFERENCE = re.compile(
    r"[A-Za-z_][\w.]*[(\[].*|(?:os\.environ|os\.getenv|process\.env|secrets?\.|self\.)[\w.]*.*"
    r"|(?:pass|env|fd):.*"
)
_PATH = re.compile(r"(?:~|\.{1,2})?/(?:[\w.@+-]+/)*[\w.@+-]*|[A-Za-z]:\\.*|(?:file|vault|pass|op|secretmanager)://?.*")
_NAMED_PATH = re.compile(r"[\w.@+-]+(?:/[\w.@+-]+)+")
_AWS_SECRET = re.compile(r"[A-Za-z0-9/+]{40}")  # may hold slashes and look like a path
_STRONG = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z]).{8,}|.{24,}")


def is_plausible_value(value: str) -> bool:
    """Say whether a value at a secret's place may be one, and not a stand-in for it."""
    if not value or "\x00" in value or _RUN.search(value) is not None:
        return False
    return _PLACEHOLDER.fullmatch(value) is None


def _is_reference(value: str) -> bool:
    """Say whether a value points to a secret kept elsewhere: a path, a variable, a call."""
    return _PATH.fullmatch(value) is not None or _REFERENCE.fullmatch(value) is not None


def _is_weak(value: str, name: str, *, quoted: bool) -> bool:
    """Say whether a value is too plain for a name that is often something else than a secret."""
    if value.isdigit() or (_NAMED_PATH.fullmatch(value) is not None and not _AWS_SECRET.fullmatch(value)):
        return True
    if name.lower().endswith("key"):
        return _STRONG.fullmatch(value) is None
    return len(value) < (4 if quoted else 6)


def is_plausible_named_value(*, prefix: str, name: str, operator: str, value: str, quoted: bool) -> bool:
    """Say whether ``prefix + name operator value`` gives a secret away.

    ``prefix`` is up to 40 characters before the name's last word. A password may be short and all digits; a
    token or key may not. After a colon or a blank, prose is as likely as a value, so that a bare lower-case
    word is not taken for one.
    """
    may_be_harmless = name.lower() in ("token", "key")
    if not is_plausible_value(value) or (may_be_harmless and _SAFE_PREFIX.search(prefix) is not None):
        return False
    if _is_reference(value) and _AWS_SECRET.fullmatch(value) is None:
        return False
    is_password = name.lower().startswith("pass") or name.lower() == "pwd"
    if not is_password and _is_weak(value, name, quoted=quoted):
        return False
    if name.lower() == "pwd" and (_PLACE_PREFIX.search(prefix) is not None or _NAMED_PATH.fullmatch(value) is not None):
        return False
    prose = not quoted and (":" in operator and operator.endswith((" ", "\t")))
    return not (prose and value.rstrip(".,").isalpha())
