"""What a lesson says: checked, without secrets, and for wider scopes without people and places."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from memory.engine.conditions import parse_conditions
from memory.models.choices import Source
from portal.core.errors import Invalid
from principals.actors import Actor
from principals.models import ClusterUser, Lab, SlurmAccount, User
from principals.permissions import can
from security.services.cleaning import clean_text

LIMITS = {"error_text": 8000, "cause": 2000, "fix": 4000, "check_words": 1000}
MAX_REASON = 500
_REQUIRED = ("error_text", "cause", "fix")
_LABELS = {"error_text": "error", "cause": "cause", "fix": "fix", "check_words": "check"}
_JOB_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+:/\[\]-]{0,79}\Z", re.ASCII)
_WORD = re.compile(r"\w(?:[\w.-]*\w)?")
_MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+")
_DIRECTORIES = re.compile(r"(?<![\w/.:<])(?:~\w*|\.{1,2})?/(?:[^\s\"'():,;<>/]+/)+")
# Directories that every Linux machine has say nothing about a project.
_COMMON_ROOTS = ("/etc/", "/usr/", "/opt/", "/proc/", "/sys/", "/dev/", "/tmp/", "/var/", "/lib/", "/lib64/")  # noqa: S108
_QUERY_CHUNK = 400


@dataclass(frozen=True, slots=True)
class LessonContent:
    """The texts of a lesson. `conditions` are texts such as `gpu_arch == sm_120`; `job_key` names its job."""

    error_text: str
    cause: str
    fix: str
    check_words: str = ""
    source: str = ""
    conditions: tuple[str, ...] = ()
    job_key: str = ""


def _refuse(field: str, detail: str, code: str, remedy: str = "") -> Invalid:
    return Invalid(detail, code=code, remedy=remedy, extra={"field": field})


def clean_field(field: str, text: str) -> str:
    """Return one text as it may be stored. Errors: `Invalid` naming the field where it is missing or too long."""
    if len(text) > LIMITS[field]:
        raise _refuse(
            field, f"The {_LABELS[field]} is longer than {LIMITS[field]} characters.", "text_too_long",
            "Keep the lines that say what failed." if field == "error_text" else "Say it shorter.",
        )  # fmt: skip
    cleaned = clean_text(text)
    if not cleaned and field in _REQUIRED:
        raise _refuse(field, f"The {_LABELS[field]} is missing.", "text_missing", "Say it in a sentence.")
    return cleaned


def clean_reason(text: str) -> str:
    """Return why something is done. Errors: `Invalid` where it is missing or too long."""
    cleaned = clean_text(text)
    if not cleaned or len(text) > MAX_REASON:
        raise _refuse(
            "reason",
            f"A reason is needed, {MAX_REASON} characters at most.",
            "reason_missing",
            "Say why in a sentence.",
        )
    return cleaned


def clean_job_key(text: str) -> str | None:
    """Return the key of a job, None where none is named. Errors: `Invalid` for what is no key."""
    if not text.strip():
        return None
    if not _JOB_KEY.match(text.strip()) or clean_text(text) != text.strip():
        raise _refuse("job_key", "This is no job id.", "job_malformed", "Write it as cluster:job id, or the id alone.")
    return text.strip()


def clean_content(actor: Actor, content: LessonContent) -> LessonContent:
    """Return a lesson's content as it may be stored. Errors: `Invalid` naming the field at fault."""
    texts = {field: clean_field(field, getattr(content, field)) for field in LIMITS}
    try:
        conditions = tuple(clean_text(str(each)) for each in parse_conditions(content.conditions))
    except ValueError as error:
        raise _refuse("conditions", str(error), "condition_malformed", "Write `gpu_arch == sm_120`.") from error
    return replace(
        content, **texts, conditions=conditions, source=_source(actor, content.source),
        job_key=clean_job_key(content.job_key) or "",
    )  # fmt: skip


def _source(actor: Actor, asked: str) -> str:
    """Return the source a lesson is kept with: nobody claims more than they can know."""
    if actor.is_system:
        allowed = tuple(Source.values)
    elif actor.agent is not None:
        allowed = (Source.AGENT.value,)
    else:
        allowed = (Source.USER.value, Source.CONFIG.value, Source.VENDOR_DOC.value)
        allowed += (Source.OPERATOR.value,) if can(actor, "facility.run") else ()
    default = Source.IMPORTED.value if actor.is_system else allowed[0]
    if (asked or default) not in allowed:
        raise _refuse(
            "source", f"You cannot record a lesson as coming from {asked[:20]}.", "source_not_allowed",
            f"Possible here: {', '.join(allowed)}.",
        )  # fmt: skip
    return asked or default


def sources_for(actor: Actor) -> list[tuple[str, str]]:
    """Return the sources a person may name, as choices of a form."""
    names = [Source.USER, Source.CONFIG, Source.VENDOR_DOC]
    return [(each.value, each.label) for each in (*names, *((Source.OPERATOR,) if can(actor, "facility.run") else ()))]


def content_digest(signature: str, content: LessonContent) -> str:
    """Return the digest by which two lessons are the same: error, cause, fix, check and conditions."""
    said = [signature, content.cause, content.fix, content.check_words, sorted(content.conditions)]
    words = [" ".join(part.split()).lower() if isinstance(part, str) else part for part in said]
    return hashlib.sha256(json.dumps(words, ensure_ascii=False).encode()).hexdigest()


def nameless(lab: Lab | None, *texts: str, keep_paths: bool) -> tuple[str, ...]:
    """Return texts for readers beyond the author's project, without login names, mail addresses, the lab's people.

    With `keep_paths` false also no directories that are a project's own, and no name of the lab. What this misses the
    reviewer sees before approving.
    """
    words = {word for text in texts for word in _WORD.findall(text) if 2 < len(word) <= 64}
    people = _logins_among(sorted(words)) | (_full_names(lab) if lab else set())
    places = _names_of(lab) if lab and not keep_paths else set()
    swaps: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [(_MAIL, "<mail>")]
    swaps += [] if keep_paths else [(_DIRECTORIES, _without_directories)]
    swaps += [(_any_of(people), "<user>")] if people else []
    swaps += [(_any_of(places), "<lab>")] if places else []
    cleaned = []
    for text in texts:
        for pattern, swap in swaps:
            text = pattern.sub(swap, text)
        cleaned.append(text)
    return tuple(cleaned)


def _without_directories(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith(_COMMON_ROOTS) else "<dir>/"


def _any_of(names: set[str]) -> re.Pattern[str]:
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, longest_first))})(?![^\W_])", re.I)


def _logins_among(words: list[str]) -> set[str]:
    found: set[str] = set()
    for start in range(0, len(words), _QUERY_CHUNK):
        chunk = words[start : start + _QUERY_CHUNK]
        found |= set(ClusterUser.objects.filter(login__in=chunk).values_list("login", flat=True))
        found |= set(User.objects.filter(username__in=chunk).values_list("username", flat=True))
    return found


def _full_names(lab: Lab) -> set[str]:
    names = lab.members.exclude(full_name="").values_list("full_name", flat=True)
    return {name for name in names if len(name) > 2}


def _names_of(lab: Lab) -> set[str]:
    accounts = SlurmAccount.objects.filter(lab=lab).values_list("name", flat=True)
    return {name for name in (lab.name, lab.title, *accounts) if len(name) > 2}
