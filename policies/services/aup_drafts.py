"""Writing a version of the policy: a draft from a pack or from the newest version, changed, published or dropped."""

from typing import Final

from django.db import transaction

from policies import permissions
from policies.engine import aup as aup_engine
from policies.engine import packs
from policies.models import AupDraft, AupVersion
from policies.services.aup import current_aup, publish_aup, read_policy
from portal.core import audit, clock
from portal.core.errors import Conflict, Invalid
from principals.actors import Actor
from principals.permissions import person_of

NEWEST: Final = "newest"


def start_aup_draft(*, actor: Actor, pack: str) -> AupDraft:
    """Start a draft from a starter pack, or from the version published last (`newest`)."""
    permissions.require(actor, "aup.publish")
    person = person_of(actor)
    if pack != NEWEST and pack not in packs.PACKS:
        raise Invalid("There is no such pack.", code="pack_unknown", remedy=f"There are: {', '.join(packs.PACKS)}.")
    newest = current_aup()
    policy = newest.policy if pack == NEWEST else packs.read_pack(pack)
    with transaction.atomic():
        draft = AupDraft.objects.create(source=aup_engine.write_aup(policy), pack=pack, written_by=person)
        _record(actor, "aup.draft", draft)
    return draft


def change_aup_draft(*, actor: Actor, draft: AupDraft, source: str, base: str) -> AupDraft:
    """Write a draft anew, on the revision `base` of it. What stood there stays where this is refused.

    Errors: `Invalid` with the fault's code and remedy; `Conflict` where somebody else saved it meanwhile.
    """
    permissions.require(actor, "aup.publish")
    read_policy(source)
    with transaction.atomic():
        found = AupDraft.objects.select_for_update().filter(pk=draft.pk).first()
        if found is None:
            raise Conflict("This draft was published or dropped meanwhile.", code="aup_draft_gone")
        same = AupDraft.objects.filter(pk=draft.pk, source=found.source)
        if found.revision != base or not same.update(source=source, changed=clock.now()):
            raise Conflict(
                "Somebody saved this draft after you opened it; nothing of yours is saved yet.",
                code="changed_meanwhile", remedy="Take over what you need of theirs, then save again.",
            )  # fmt: skip
        draft.source = source
        _record(actor, "aup.change_draft", draft)
    return draft


def publish_aup_draft(*, actor: Actor, draft: AupDraft, digest: str) -> AupVersion:
    """Publish a draft as it was previewed: `digest` is of what was shown. The draft ends with it.

    Errors: `Conflict` where it was changed or published meanwhile, and all that `publish_aup` raises.
    """
    permissions.require(actor, "aup.publish")
    with transaction.atomic():
        found = AupDraft.objects.select_for_update().filter(pk=draft.pk).first()
        if found is None:
            raise Conflict("This draft was published or dropped meanwhile.", code="aup_draft_gone")
        if aup_engine.aup_digest(read_policy(found.source)) != digest:
            raise Conflict(
                "Somebody changed this draft after you looked at it.", code="aup_draft_changed",
                remedy="Look at the preview again, then publish.",
            )  # fmt: skip
        version = publish_aup(actor=actor, source=found.source)
        found.delete()
    return version


def drop_aup_draft(*, actor: Actor, draft: AupDraft, base: str) -> None:
    """Drop a draft, as it stood when the person looked. Errors: `Conflict` where it is gone, or was saved meanwhile."""
    permissions.require(actor, "aup.publish")
    with transaction.atomic():
        found = AupDraft.objects.select_for_update().filter(pk=draft.pk).first()
        if found is None:
            raise Conflict("This draft was published or dropped meanwhile.", code="aup_draft_gone")
        if found.revision != base:
            raise Conflict(
                "Somebody saved this draft after you opened it; it is not dropped.",
                code="changed_meanwhile", remedy="Look at what they saved, then drop it if it may go.",
            )  # fmt: skip
        _record(actor, "aup.drop_draft", found)
        found.delete()


def _record(actor: Actor, verb: str, draft: AupDraft) -> None:
    audit.record(
        actor=actor.ref, verb=verb, object_kind="aup_draft", object_id=draft.pk, object_label=draft.policy.version,
        after={"digest": aup_engine.aup_digest(draft.policy), "pack": draft.pack},
    )  # fmt: skip
