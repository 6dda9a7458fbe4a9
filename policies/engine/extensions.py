"""Extensions a harness may load: what they are, what they declare, and their way through admission.

An admission holds for one content digest. No published format declares capabilities, so the vocabulary is
our own; what is declared is compared, weighed and shown, and enforcement happens elsewhere.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

IDENTITY_MAX = 128
_IDENTITY = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*(?:/[a-z0-9]+(?:[._-][a-z0-9]+)*)*")
_VERSION = re.compile(r"v?(?P<release>\d{1,9}(?:\.\d{1,9}){0,3})(?:-(?P<pre>[0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
# Where code is found: an address, what git takes, a package of a registry. Nothing that a browser would run or open.
_SOURCE = re.compile(
    r"(?:(?:git\+)?(?:https?|ssh)|oci)://[^\s/]\S*|git@[\w.-]+:\S+|(?:npm|pypi):@?[A-Za-z0-9][\w./@=-]*"
    r"|pkg:[a-z]+/\S+",
    re.I | re.A,
)
SOURCE_FORMS = (
    "https://…, http://…, git+https://…, git+ssh://…, ssh://…, git@host:path, oci://…, npm:…, pypi:… or pkg:…"
)


class ExtensionKind(Enum):
    """What an extension is to a harness."""

    SKILL = "skill"
    PLUGIN = "plugin"
    MCP_SERVER = "mcp_server"
    HOOK = "hook"


@dataclass(frozen=True, slots=True)
class Capability:
    """Something an extension can do, in words, with its weight in a review."""

    name: str
    words: str  # continues "It may …"
    weight: int


CAPABILITIES = {
    capability.name: capability
    for capability in (
        Capability("fs.read", "read files of its user", 1),
        Capability("fs.write", "change files of its user", 2),
        Capability("env.read", "read environment variables", 2),
        Capability("net.fetch", "fetch from the network", 2),
        Capability("net.listen", "listen on a port", 3),
        Capability("exec", "run programs", 3),
        Capability("job.read", "read the queue and its user’s jobs", 1),
        Capability("job.submit", "submit jobs", 2),
        Capability("job.cancel", "cancel or change jobs", 2),
        Capability("model.call", "send text to a model of its own", 3),
        Capability("settings.write", "change the harness’s settings", 4),
        Capability("credentials.read", "read keys and tokens", 5),
    )
}


@dataclass(frozen=True, slots=True)
class ExtensionRelease:
    """One release of an extension, as submitted."""

    kind: ExtensionKind
    identity: str
    version: str
    digest: str
    capabilities: frozenset[str]

    @property
    def weight(self) -> int:
        """Sum of the weights of what it declares."""
        return sum(CAPABILITIES[name].weight for name in self.capabilities)


def version_key(version: str) -> tuple[tuple[int, ...], tuple[tuple[int, int, str], ...]]:
    """Give a key that sorts versions as semantic versioning does; build metadata does not count.

    One to four numbers are accepted, with or without a leading ``v``; missing numbers are 0. Raises
    ``ValueError`` for anything else, ``latest`` included: a review needs one release. Source: semver.org 2.0.
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        raise ValueError(f"{version!r} is not a version such as 1.4.2; a moving name cannot be reviewed.")
    release = tuple(int(part) for part in match["release"].split("."))
    release += (0,) * (4 - len(release))
    if match["pre"] is None:
        return release, ((2, 0, ""),)  # a release comes after all of its pre-releases
    parts = match["pre"].split(".")
    return release, tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)


def is_newer(version: str, than: str) -> bool:
    """Say whether one version comes after another."""
    return version_key(version) > version_key(than)


def validate_identity(identity: str) -> str:
    """Return an identity such as ``okafor/mdtools-mcp``; raise ``ValueError`` for any other form."""
    if len(identity) > IDENTITY_MAX or _IDENTITY.fullmatch(identity) is None:
        raise ValueError(
            f"{identity[:IDENTITY_MAX]!r} is not an identity: lower-case letters and digits, single hyphens, "
            f"dots or underscores between them, parts joined by /, at most {IDENTITY_MAX} characters."
        )
    return identity


def validate_digest(digest: str) -> str:
    """Return a content digest ``sha256:`` and 64 hexadecimal digits; raise ``ValueError`` otherwise."""
    if _DIGEST.fullmatch(digest) is None:
        raise ValueError("A digest is sha256: followed by 64 lower-case hexadecimal digits.")
    return digest


def validate_source(source: str) -> str:
    """Return where a reviewer finds the code, "" where that is not said; raise ``ValueError`` for another form.

    It is shown as text and never fetched; but what is copied from there should be an address of code.
    """
    source = source.strip()
    if source and _SOURCE.fullmatch(source) is None:
        raise ValueError("The source is no address of code.")
    return source


def parse_release(
    *, kind: str, identity: str, version: str, digest: str, capabilities: Iterable[str]
) -> ExtensionRelease:
    """Read and check a submission; raise ``ValueError`` with one sentence for the first fault."""
    kinds = {each.value: each for each in ExtensionKind}
    if kind not in kinds:
        raise ValueError(f"{kind!r} is no kind of extension; it is one of {', '.join(kinds)}.")
    declared = frozenset(capabilities)
    unknown = sorted(declared - set(CAPABILITIES))
    if unknown:
        raise ValueError(f"Unknown capability {unknown[0]!r}; known ones are {', '.join(CAPABILITIES)}.")
    version_key(version)
    return ExtensionRelease(kinds[kind], validate_identity(identity), version, validate_digest(digest), declared)


class AdmissionState(Enum):
    """Where a release stands."""

    QUEUED = "queued"
    ADMITTED = "admitted"
    ADMITTED_WITH_CONDITIONS = "admitted_with_conditions"
    DENIED = "denied"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Transition:
    """One allowed change of state; all but a plain admission need words from the reviewer."""

    source: AdmissionState
    target: AdmissionState
    verb: str

    @property
    def needs_reason(self) -> bool:
        """Say whether the reviewer must write a reason or conditions."""
        return self.target is not AdmissionState.ADMITTED


TRANSITIONS = (
    Transition(AdmissionState.QUEUED, AdmissionState.ADMITTED, "Admit"),
    Transition(AdmissionState.QUEUED, AdmissionState.ADMITTED_WITH_CONDITIONS, "Admit with conditions"),
    Transition(AdmissionState.QUEUED, AdmissionState.DENIED, "Deny"),
    Transition(AdmissionState.ADMITTED, AdmissionState.REVOKED, "Revoke"),
    Transition(AdmissionState.ADMITTED_WITH_CONDITIONS, AdmissionState.REVOKED, "Revoke"),
)


def allowed_transitions(state: AdmissionState) -> tuple[Transition, ...]:
    """List the changes a state allows; a denied or revoked release is submitted anew, not revived."""
    return tuple(step for step in TRANSITIONS if step.source is state)


def find_transition(source: AdmissionState, target: AdmissionState) -> Transition | None:
    """Find the change from one state to another; ``None`` when it is not allowed."""
    return next((step for step in allowed_transitions(source) if step.target is target), None)


def needs_new_review(reviewed: ExtensionRelease, offered: ExtensionRelease) -> str | None:
    """Say why what is offered is not covered by a review; ``None`` when it is the release reviewed."""
    if (offered.kind, offered.identity) != (reviewed.kind, reviewed.identity):
        return "It is another extension."
    if offered.digest != reviewed.digest:
        if offered.version == reviewed.version:
            return f"Its content changed while its version stayed {offered.version}."
        return f"Version {offered.version} has not been reviewed; {reviewed.version} has."
    if offered.version != reviewed.version:
        return f"The same content now calls itself {offered.version} instead of {reviewed.version}."
    if offered.capabilities != reviewed.capabilities:
        return "It declares other capabilities than those reviewed."
    return None


@dataclass(frozen=True, slots=True)
class CapabilityDiff:
    """What changed between two releases, heaviest first."""

    added: tuple[Capability, ...]
    removed: tuple[Capability, ...]
    kept: tuple[Capability, ...]

    @property
    def sentence(self) -> str:
        """Say what is new and what is gone."""
        parts = [
            f"{label}: {'; '.join(each.words for each in group)}."
            for label, group in (("New", self.added), ("Gone", self.removed))
            if group
        ]
        return " ".join(parts) or "It declares the same capabilities."


def capability_diff(old: Iterable[str], new: Iterable[str]) -> CapabilityDiff:
    """Compare the capabilities of two releases; raise ``KeyError`` for an unknown name."""
    before, after = frozenset(old), frozenset(new)

    def ordered(names: frozenset[str]) -> tuple[Capability, ...]:
        return tuple(sorted((CAPABILITIES[name] for name in names), key=lambda each: (-each.weight, each.name)))

    return CapabilityDiff(ordered(after - before), ordered(before - after), ordered(before & after))
