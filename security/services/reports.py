"""A finding as it is reported, checked and cleaned: what may become a row, or why it may not."""

import hashlib
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from portal.core import clock
from portal.core.errors import Invalid
from security.engine import incidents as rules
from security.models.choices import Kind, Severity, Surface
from security.services import cleaning

# A reporter's clock may be this much ahead of ours.
CLOCK_SLACK = timedelta(minutes=5)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+-]*\Z")
MAX_REASONS = 6
_LENGTHS = {
    "title": 200, "place": 300, "evidence": 4000, "readable_by": 100, "fingerprint": 200, "preview": 80, "method": 40,
    "login": 64, "agent": 40, "host": 100, "detector": 60,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedFinding:
    """What a detector says. `evidence` is redacted at the edge; it is redacted again here."""

    kind: str
    detector: str
    occurred: datetime
    title: str = ""
    severity: str = ""  # empty: the kind's own
    reasons: tuple[str, ...] = ()
    login: str = ""
    agent: str = ""  # name of a registered agent
    host: str = ""
    surface: str = "other"
    place: str = ""
    readable_by: str = ""
    evidence: str = ""
    masked: tuple[str, ...] = ()  # parts of the evidence that stand for secrets
    preview: str = ""
    fingerprint: str = ""  # of the secret, as the reporter made it
    method: str = ""  # how the reporter knows whose it is
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class CleanFinding:
    """A finding that may be stored: no secret, known words, names that are names."""

    said: ReportedFinding
    title: str
    severity: Severity
    reasons: list[str]
    place: str
    readable_by: str
    evidence: str
    masks: list[str]
    preview: str
    fingerprint: str

    @property
    def subject(self) -> str:
        """Who or what it is about, as the dedup key names it."""
        said = self.said
        return f"agent:{said.agent}" if said.agent else f"login:{said.login}" if said.login else f"host:{said.host}"

    def dedup_key(self, cluster: str) -> str:
        """Return the key by which it joins an incident."""
        place = f"{self.said.host} {self.place}"
        return rules.dedup_key(
            kind=rules.Kind(self.said.kind), cluster=cluster, subject=self.subject,
            fingerprint=self.fingerprint, place=place,
        )  # fmt: skip

    def key(self, cluster: str) -> str:
        """Return the key of this one sighting: 64 hexadecimal digits."""
        said = self.said
        parts = (self.dedup_key(cluster), said.detector, said.host, said.surface, self.place, said.occurred.isoformat())
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@dataclass(slots=True)
class _Secrets:
    """What cleaning took out of the fields of one finding."""

    fingerprints: list[str] = field(default_factory=list)
    previews: list[str] = field(default_factory=list)

    def clean(self, text: str) -> str:
        done = cleaning.cleaned(text)
        self.fingerprints += [found.fingerprint for found in done.findings]
        self.previews += [found.preview for found in done.findings]
        return done.text.strip()


def clean_finding(said: ReportedFinding) -> CleanFinding:
    """Check and clean a reported finding. Errors: `Invalid`, with a code and a remedy."""
    _require_known_words(said)
    _require_lengths(said)
    _require_names(said)
    _require_time(said)
    secrets = _Secrets()
    evidence, title, place = secrets.clean(said.evidence), secrets.clean(said.title), secrets.clean(said.place)
    preview = cleaning.clean_text(said.preview) or next(iter(secrets.previews), "")
    is_secret = said.kind == Kind.EXPOSED_SECRET
    seen = next(iter(secrets.fingerprints), "") or cleaning.foreign_fingerprint(said.fingerprint)
    return CleanFinding(
        said=said,
        title=title[:200],
        severity=Severity(said.severity or rules.KINDS[rules.Kind(said.kind)].severity.value),
        reasons=[cleaning.clean_text(reason)[:200] for reason in said.reasons[:MAX_REASONS]],
        place=place[:300],
        readable_by=cleaning.clean_text(said.readable_by)[:100],
        evidence=evidence,
        masks=cleaning.masks_in(evidence, said.masked),
        preview=preview[:80],
        fingerprint=seen if is_secret else "",
    )


def _require_known_words(said: ReportedFinding) -> None:
    for name, value, words in (
        ("kind", said.kind, Kind.values),
        ("severity", said.severity or Severity.LOW, Severity.values),
        ("surface", said.surface, Surface.values),
    ):
        if value not in words:
            raise Invalid(
                f"The {name} is none we know.", code=f"{name}_unknown", remedy=f"Use one of: {', '.join(words)}."
            )


def _require_lengths(said: ReportedFinding) -> None:
    for name, longest in _LENGTHS.items():
        if len(getattr(said, name)) > longest:
            raise Invalid(
                f"The {name} is longer than {longest} characters.", code="too_long", remedy="Send the telling part."
            )


def _require_names(said: ReportedFinding) -> None:
    """Names are stored as they come, so they must be names: a secret in their place is refused, not stored."""
    if not said.detector:
        raise Invalid("The finding names no detector.", code="detector_missing")
    if not (said.login or said.agent or said.host):
        raise Invalid(
            "The finding is about nobody.", code="subject_missing", remedy="Send a login, an agent or a host."
        )
    for name in ("detector", "login", "agent", "host", "method"):
        value = getattr(said, name)
        if value and name != "method" and not _NAME.match(value):
            raise Invalid(f"The {name} is no name.", code=f"{name}_malformed")
        if value and cleaning.cleaned(value).text != value:
            raise Invalid(f"The {name} holds a secret.", code="secret_in_name", remedy="Send it as evidence.")


def _require_time(said: ReportedFinding) -> None:
    if not clock.is_sane(said.occurred.year):
        raise Invalid("The time is none that can be meant.", code="occurred_out_of_range", remedy="Check its year.")
    if said.occurred.tzinfo is None:
        raise Invalid("The time has no zone.", code="occurred_naive", remedy="Send it as 2026-08-03T10:04:00Z.")
    if said.occurred > clock.now() + CLOCK_SLACK:
        raise Invalid("The time is in the future.", code="occurred_in_future", remedy="Set the host's clock.")
    if said.confidence is not None and not 0 <= said.confidence <= 1:
        raise Invalid("The confidence is not between 0 and 1.", code="confidence_out_of_range")
