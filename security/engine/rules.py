"""Secret detectors as data: token shapes and named values.

A rule runs only where one of its needles occurs in the lower-cased text. Its pattern marks the secret by the
group ``v``. No pattern may hold a bounded gap: the redactor blanks what it found with runs of any length and
relies on a second look finding nothing new.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from principals.engine.tokens import TOKEN_PATTERN
from security.engine.plausible import is_plausible_named_value, is_plausible_value

Check = Callable[[re.Match[str]], bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """One detector: when to look, what to look for, what to believe."""

    detector: str
    kind: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    check: Check | None = None
    rank: int = 1  # a token shape names its kind better than the option it stands in


def _is_no_stand_in(match: re.Match[str]) -> bool:
    return is_plausible_value(match["v"])


def _shape(kind: str, needles: str, pattern: str, before: str = "") -> Rule:
    """Make a rule for a token that is recognised by its own form."""
    return Rule(
        detector=f"shape:{kind}",
        kind=kind,
        needles=tuple(needles.split()),
        pattern=re.compile(rf"(?<![A-Za-z0-9]){before}(?P<v>{pattern})"),
        check=_is_no_stand_in,
        rank=2,
    )


_MIXED = r"(?=[A-Za-z]*[0-9])(?=[a-z0-9]*[A-Z])"  # no run of random letters and digits is without these
SHAPES = (
    _shape("gatehouse_token", "gha_ ghs_", TOKEN_PATTERN),
    _shape("github_token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{16,}"),
    _shape("github_token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,}"),
    _shape("gitlab_token", "glpat-", r"glpat-[A-Za-z0-9_-]{20,}"),
    _shape("aws_access_key", "akia asia", r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _shape("anthropic_key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,}"),
    _shape("openai_key", "sk-", r"sk-(?!ant-)(?:proj-|svcacct-|admin-)?(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{32,}"),
    _shape("google_key", "aiza", r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _shape("huggingface_token", "hf_", r"hf_(?:[A-Za-z]{30,}|[A-Za-z0-9]{34})(?![A-Za-z0-9_])"),
    _shape("slack_token", "xox", r"xox[abeprs]-[A-Za-z0-9-]{10,}"),
    _shape("ngc_key", "nvapi-", r"nvapi-[A-Za-z0-9_-]{40,}"),
    _shape("npm_token", "npm_", r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    _shape("pypi_token", "pypi-", r"pypi-[A-Za-z0-9_-]{32,}"),
    _shape("vault_token", "token login", r"hvs\.[A-Za-z0-9_-]{24,}"),
    # Signed or not: without a signature the token ends in its second full stop.
    _shape("jwt", "eyj", r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    _shape("stripe_key", "sk_live_ rk_live_", rf"[rs]k_live_{_MIXED}[A-Za-z0-9]{{16,}}"),
    _shape("docker_token", "dckr_pat_", r"dckr_pat_[A-Za-z0-9_-]{20,}"),
    _shape("sendgrid_key", "sg.", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"),
    _shape("databricks_token", "dapi", r"dapi[a-f0-9]{32}(?![A-Za-z0-9])(?:-[0-9]+)?"),
    _shape("groq_key", "gsk_", rf"gsk_{_MIXED}[A-Za-z0-9]{{40,}}"),
    _shape("xai_key", "xai-", rf"xai-{_MIXED}[A-Za-z0-9]{{60,}}"),
    _shape("perplexity_key", "pplx-", r"pplx-(?=[A-Za-z]*[0-9])[A-Za-z0-9]{40,}"),
    _shape("replicate_token", "r8_", rf"r8_{_MIXED}[A-Za-z0-9]{{37}}(?![A-Za-z0-9_])"),
    _shape("linear_key", "lin_api_", r"lin_api_[A-Za-z0-9]{32,}"),
    _shape("age_key", "age-secret-key-", r"AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{40,}"),
    # In the addresses of its interface the token follows the word "bot" at once.
    _shape("telegram_token", ":aa", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])", before="(?:bot)?"),
)

PRIVATE_KEY = Rule(
    detector="shape:private_key",
    kind="private_key",
    needles=("private key",),
    # Without its end marker the key may be cut off: everything after the header is taken.
    pattern=re.compile(
        r"(?P<v>-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[^\x00-]|-(?!----END ))*(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----)?)"
    ),
    rank=3,
)
PUTTY_KEY = Rule(
    detector="shape:putty_key",
    kind="private_key",
    needles=("putty-user-key-file-",),
    pattern=re.compile(
        r"(?P<v>PuTTY-User-Key-File-[0-9]+:\s*(?:ssh|ecdsa)-[^\x00]*?"
        r"(?:Private-(?:MAC|Hash):\s*[0-9A-Fa-f]+|(?=\x00)|\Z))"
    ),
    rank=3,
)

# The name must end in the word: token_ids, tokenizers, password_file and secret_name are not secrets.
_NAME = (
    r"(?P<name>passw(?:or)?d|passphrase|(?<=[a-z_-])pass|(?<=[a-z0-9]_)pwd|secret|token|credentials?"
    r"|(?:api|access|auth|account|secret|private|client|encryption|signing|license|service)[_-]?key"
    r"|(?<=[a-z0-9]_)key)"
)
# A comma ends a value only where a list of assignments goes on, as in --export=A=1,B=2.
_BARE = r"""(?:[^\s"'`;|&<>(){}\\,\x00]|,(?![A-Za-z_]\w*=|ALL\b|NONE\b))+"""
_QUOTED = r"""\\?"(?P<{0}>[^"\\\n\x00]+)\\?"|'(?P<{1}>[^'\n\x00]+)'"""


def _value(tag: str) -> str:
    return rf"(?:{_QUOTED.format(tag + '1', tag + '2')}|(?P<{tag}3>{_BARE}))"


def value_group(match: re.Match[str]) -> str:
    """Name the group of a match that holds the secret."""
    groups = match.re.groupindex
    return next(name for name in groups if name[0] == "v" and match[name] is not None)


def _named(match: re.Match[str]) -> bool:
    quoted = not value_group(match).endswith("3")
    if not quoted and match.string[match.end() : match.end() + 1] in ("(", "["):
        return False  # a call or a look-up in source code
    return is_plausible_named_value(
        prefix=match.string[max(0, match.start("name") - 40) : match.start("name")],
        name=match["name"],
        operator=match["op"],
        value=match[value_group(match)],
        quoted=quoted,
    )


def _plain(match: re.Match[str]) -> bool:
    return is_plausible_value(match[value_group(match)])


# Twenty letters and digits in one run, and some of both: no name and no word.
_OPAQUE = r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{20,}+"
_WORDS = ("pass", "secret", "token", "key", "credential", "_pwd")

NAMED = (
    Rule(
        "name:assignment",
        "secret",
        _WORDS,
        re.compile(rf"""{_NAME}(?![A-Za-z0-9_-])(?:\\?["'])?\]?(?P<op>\s*(?:=>|:=|=|:)\s*|%3D){_value("v")}""", re.I),
        _named,
    ),
    Rule(
        "name:option",
        "secret",
        _WORDS,
        re.compile(rf"(?<![\w.-])--?[\w.-]*?{_NAME}(?P<op>\s+)(?!-){_value('v')}", re.I),
        _named,
    ),
    Rule(
        "name:setenv",
        "secret",
        _WORDS,
        re.compile(rf"\b(?:setenv|configure\s+set)\s+[\w.]*?{_NAME}(?P<op>\s+){_value('v')}", re.I),
        _named,
    ),
    Rule(
        "netrc",
        "password",
        ("password",),
        re.compile(rf"\bmachine\s+\S+\s+(?:login\s+\S+\s+)?password\s+{_value('v')}"),
        _plain,
    ),
    Rule(
        "header:authorization",
        "bearer",
        ("authorization",),
        re.compile(
            r"""authorization["']?\s*[:=]\s*["']?(?:(?:bearer|token|basic|digest|apikey)\s+)?+"""
            r"""(?P<v>[^\s"'\\,\x00]{4,})""",
            re.I,
        ),
        _plain,
    ),
    Rule(
        "header:bearer",
        "bearer",
        ("bearer",),
        re.compile(r"\bbearer\s+(?P<v>(?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{16,})", re.I),
        _plain,
    ),
    Rule(
        "header:cookie",
        "session_cookie",
        ("cookie",),
        re.compile(r"""cookie:\s*(?:[^=;\s]+=[^;\s]*;\s*)*?[^=;\s]*sess[^=;\s]*=(?P<v>[^;\s"'\x00]+)""", re.I),
        _plain,
    ),
    Rule(
        "url:userinfo",
        "url_password",
        ("://",),
        re.compile(r"""://[^\s/:@"'\x00]*:(?P<v>[^\s/"'\x00]+)@(?=[^\s@/])"""),
        _plain,
    ),
    Rule(
        "url:user",
        "url_token",
        ("://",),
        # A name of a person or a service has no run like this.
        re.compile(
            rf"""\bhttps?://(?P<v>(?:[\w.~%+-]*?[._~%+-])?{_OPAQUE}[\w.~%+=-]*+)(?=(?::[^\s/@"'\x00]*)?@[^\s@/])""",
            re.A,
        ),
        _plain,
    ),
    Rule(
        "url:key",
        "key",
        ("key=", "key%3d"),
        re.compile(rf"""[?&](?:(?:api|app|access)[_-]?)?key(?:=|%3D)(?P<v>{_OPAQUE}[\w.~+/=-]*)""", re.I | re.A),
        _plain,
    ),
    Rule(
        "url:signature",
        "url_signature",
        ("://",),
        re.compile(r"""[?&](?:[\w-]*signature|sig)(?:=|%3D)(?P<v>[^\s&"'#\x00]{16,})""", re.I),
        _plain,
    ),
)

RULES: tuple[Rule, ...] = (PRIVATE_KEY, PUTTY_KEY, *SHAPES, *NAMED)
