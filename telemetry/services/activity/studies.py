"""Baseline studies: what has to be said before people may be observed, and the end of it."""

import re
from datetime import datetime, timedelta
from typing import Final

from django.db import IntegrityError, transaction

from portal.core import audit, clock
from portal.core.errors import Conflict, Invalid
from principals import permissions
from principals.actors import Actor
from principals.models import Cluster
from telemetry.engine.redaction import is_secretless
from telemetry.models import BaselineStudy

LONGEST: Final = timedelta(days=92)
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}\Z")


def start_study(
    *,
    actor: Actor,
    cluster: Cluster,
    name: str,
    purpose: str,
    approved_by: str,
    until: datetime,
    starts: datetime | None = None,
) -> BaselineStudy:
    """Start a study of people's own shells, from now or `starts` on. Staff alone may.

    Errors: `NotAllowed`; `Invalid` where it lacks a purpose, an approval or an end; `Conflict`: the name is taken.
    """
    permissions.require(actor, "facility.run")
    starts = starts or clock.now()
    _check(name, purpose, approved_by, starts, until)
    try:
        with transaction.atomic():
            study = BaselineStudy.objects.create(
                cluster=cluster, name=name, purpose=purpose, approved_by=approved_by, starts=starts, until=until
            )
            audit.record(
                actor=actor.ref, verb="study.start", object_kind="study", object_id=study.pk, object_label=name,
                after={"cluster": cluster.name, "purpose": purpose, "approved_by": approved_by,
                       "starts": clock.written(starts), "until": clock.written(until)},
            )  # fmt: skip
    except IntegrityError:
        raise Conflict(
            f"There was a study {name} on {cluster.name} before.", code="study_exists",
            remedy="Give each study a name of its own: what was gathered stands under it.",
        ) from None  # fmt: skip
    return study


def _check(name: str, purpose: str, approved_by: str, starts: datetime, until: datetime) -> None:
    if not _NAME.match(name):
        raise Invalid("A study's name has 1 to 64 small letters, digits and dashes.", code="study_name_invalid")
    for said, longest, what in ((purpose, 500, "purpose"), (approved_by, 150, "approval")):
        if not said.strip() or len(said) > longest or not said.isprintable() or not is_secretless(said):
            raise Invalid(
                f"A study needs a {what} in 1 to {longest} printable characters.", code=f"study_{what}_invalid",
                remedy="Name the board or office that approved it, and its reference." if what == "approval" else "",
            )  # fmt: skip
    if not starts < until or until <= clock.now() or until - starts > LONGEST:
        raise Invalid(
            f"A study ends after it starts, in the future, and lasts {LONGEST.days} days at most.",
            code="study_period_invalid",
        )


def end_study(*, actor: Actor, study: BaselineStudy) -> BaselineStudy:
    """End a study before its time: from now on nothing of it is taken, also of the time before. Errors: `NotAllowed`.

    What was taken stays until its keeping time is over.
    """
    permissions.require(actor, "facility.run")
    with transaction.atomic():
        ended = BaselineStudy.objects.filter(pk=study.pk, ended=None).update(ended=clock.now_s())
        if ended:
            audit.record(
                actor=actor.ref, verb="study.end", object_kind="study", object_id=study.pk, object_label=study.name,
                after={"cluster": study.cluster.name},
            )  # fmt: skip
    study.refresh_from_db()
    return study
