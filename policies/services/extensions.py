"""Submitting extensions for review, deciding about them, revoking them."""

from dataclasses import dataclass, replace
from functools import partial

from django.db import IntegrityError, transaction

from policies import events, permissions
from policies.engine import extensions as engine
from policies.models import Extension, ExtensionRelease
from policies.services.text import stored_text
from portal.core import audit, clock, live
from portal.core.errors import Conflict, Invalid, NotAllowed
from principals.actors import Actor
from principals.models import User

WAITING_EACH = 20  # a queue that one submitter fills helps nobody


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What a submission says of a release. Description and source are shown as text, never fetched or followed."""

    kind: str
    identity: str
    version: str
    digest: str
    capabilities: list[str]
    source_url: str = ""
    description: str = ""


def submit_extension(*, actor: Actor, submission: Submission) -> ExtensionRelease:
    """Queue a release for review.

    Errors: `Invalid` with the engine's sentence, `Conflict` where this content is queued or admitted already.
    """
    permissions.require(actor, "extension.submit")
    if actor.user is None:
        raise NotAllowed("An extension is submitted by a person or their agent.", code="not_a_person")
    release = _parse(submission)
    source = _parse_source(submission.source_url)
    with transaction.atomic():
        extension, _ = Extension.objects.get_or_create(kind=release.kind.value, identity=release.identity)
        _require_room(actor)
        row = _create(actor, actor.user, extension, release, replace(submission, source_url=source))
        audit.record(
            actor=actor.ref, verb="extension.submit", object_kind="extension", object_id=row.pk, object_label=str(row),
            after={"digest": row.digest, "capabilities": row.capabilities},
        )  # fmt: skip
        _tell(row, events.EXTENSION_SUBMITTED)
    return row


def _parse(submission: Submission) -> engine.ExtensionRelease:
    try:
        if len(submission.version) > 80:
            raise ValueError("A version has at most 80 characters.")
        return engine.parse_release(
            kind=submission.kind, identity=submission.identity, version=submission.version, digest=submission.digest,
            capabilities=submission.capabilities,
        )  # fmt: skip
    except ValueError as error:
        raise Invalid(str(error), code="extension_malformed", remedy="Correct it and submit again.") from error


def _parse_source(text: str) -> str:
    try:
        return engine.validate_source(text)
    except ValueError as error:
        raise Invalid(
            str(error), code="source_malformed", remedy=f"Write it as {engine.SOURCE_FORMS}",
            extra={"field": "source_url"},
        ) from error  # fmt: skip


def _require_room(actor: Actor) -> None:
    waiting = ExtensionRelease.objects.filter(submitted_by=actor.user, state=ExtensionRelease.State.QUEUED).count()
    if waiting >= WAITING_EACH:
        raise Conflict(
            f"{waiting} of your submissions wait for review.", code="queue_full",
            remedy="Submit more when some are decided.",
        )  # fmt: skip


def _create(
    actor: Actor, person: User, extension: Extension, release: engine.ExtensionRelease, submission: Submission
) -> ExtensionRelease:
    try:
        with transaction.atomic():
            return ExtensionRelease.objects.create(
                extension=extension, version=release.version, digest=release.digest,
                capabilities=sorted(release.capabilities), source_url=stored_text(submission.source_url, 500),
                description=stored_text(submission.description, 4000), submitted_by=person,
                submitted_by_agent=actor.agent,
            )  # fmt: skip
    except IntegrityError as error:
        raise Conflict(
            f"{release.identity} {release.version} with this content is queued or admitted already.",
            code="extension_exists", remedy="GET /api/v1/extensions lists what is admitted; what is queued waits.",
        ) from error  # fmt: skip


def decide_extension(
    *, actor: Actor, release: ExtensionRelease, decision: str, reason: str = "", conditions: str = ""
) -> ExtensionRelease:
    """Admit, admit with conditions, or deny a queued release; `decision` is the state it gets.

    All but a plain admission need a reason, an admission with conditions its conditions. Nobody decides about what
    they submitted. Errors: `Conflict` where somebody else decided first.
    """
    permissions.require(actor, "extension.decide", release, remedy="Staff and InfoSec review extensions.")
    if actor.user is not None and release.submitted_by_id == actor.user.pk:
        raise NotAllowed("Somebody else reviews what you submitted.", code="own_submission")
    if decision == ExtensionRelease.State.REVOKED:
        raise Invalid("An admitted release is revoked, a queued one denied.", code="decision_unknown")
    if decision == ExtensionRelease.State.ADMITTED_WITH_CONDITIONS and not conditions.strip():
        raise Invalid("Write the conditions.", code="conditions_missing", extra={"field": "conditions"})
    kept = conditions if decision == ExtensionRelease.State.ADMITTED_WITH_CONDITIONS else ""
    return _move(actor, release, decision, reason, kept, verb="extension.decide", name=events.EXTENSION_DECIDED)


def revoke_extension(*, actor: Actor, release: ExtensionRelease, reason: str) -> ExtensionRelease:
    """Take an admission back; harnesses that read the list stop loading it. Errors: `Conflict` unless admitted."""
    permissions.require(actor, "extension.decide", release, remedy="Staff and InfoSec revoke admissions.")
    row = _move(
        actor, release, ExtensionRelease.State.REVOKED, reason, release.conditions, verb="extension.revoke",
        name=events.EXTENSION_REVOKED,
    )  # fmt: skip
    transaction.on_commit(partial(events.extension_revoked.send_robust, ExtensionRelease, release_id=row.pk))
    return row


def _move(
    actor: Actor, release: ExtensionRelease, target: str, reason: str, conditions: str, *, verb: str, name: str
) -> ExtensionRelease:
    step = _step(release, target)
    reason = stored_text(reason, 1000)
    if step.needs_reason and not reason:
        raise Invalid("Write the reason; the submitter reads it.", code="reason_missing", extra={"field": "reason"})
    old = release.state
    with transaction.atomic():
        moved = release.move(
            old=old, new=target, decided_by=actor.user, decided_at=clock.now(), reason=reason,
            conditions=stored_text(conditions, 1000),
        )  # fmt: skip
        if not moved:
            raise _not_there(ExtensionRelease.objects.get(pk=release.pk))
        audit.record(
            actor=actor.ref, verb=verb, object_kind="extension", object_id=release.pk, object_label=str(release),
            before={"state": old}, after={"state": target, "conditions": release.conditions}, reason=reason,
        )  # fmt: skip
        _tell(release, name)
    return release


def _step(release: ExtensionRelease, target: str) -> engine.Transition:
    if target not in ExtensionRelease.State.values:
        raise Invalid("Admit it, admit it with conditions, or deny it.", code="decision_unknown")
    step = engine.find_transition(engine.AdmissionState(release.state), engine.AdmissionState(target))
    if step is None:
        raise _not_there(release)
    return step


def _not_there(release: ExtensionRelease) -> Conflict:
    return Conflict(
        f"{release} is {release.get_state_display().lower()} now.", code="extension_state",
        remedy="Look at it again; a denied or revoked release is submitted anew.",
    )  # fmt: skip


def _tell(release: ExtensionRelease, name: str) -> None:
    own = (f"agent:{release.submitted_by_agent_id}",) if release.submitted_by_agent_id else ()
    payload = events.ExtensionChanged(
        identity=release.extension.identity, version=release.version, digest=release.digest, state=release.state
    )
    topics = (*own, f"user:{release.submitted_by_id}", "facility:policies")
    live.announce([live.News(name, topics, dict(payload))])
