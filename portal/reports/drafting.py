"""Periods that are to be drafted: the work stands in rows, a task works it off, and what failed says why.

To look at some million jobs takes a minute or two: too long for a request, and for a restart to forget.
"""

from datetime import date
from functools import partial
from typing import Final

from django.db import transaction
from django.db.models import QuerySet

from portal.core import clock, leases
from portal.core.errors import DomainError
from portal.core.stopping import Stopping
from portal.reports import services
from portal.reports.models import Drafting, Report
from principals import permissions
from principals.actors import SYSTEM_ACTOR, Actor
from principals.models import Cluster
from telemetry.selectors import Period

BUSY: Final = "rollups_busy"  # passes by itself
UNEXPECTED: Final = "An error of the portal; its log says more. Ask again once it is mended."


def ask_for_draft(*, actor: Actor, cluster: Cluster, period: Period) -> Drafting:
    """Ask for a period to be drafted, or for its draft to be brought up to date. Errors: `NotAllowed`."""
    permissions.require(actor, "facility.run")
    return _ask(actor, cluster, period)


def ask_for_last_month(*, actor: Actor, today: date) -> int:
    """Ask for the month before `today` for every cluster that has nothing approved of it; return how many."""
    return _ask_of_all(actor, Period.month(today.year, today.month).previous())


def ask_for_last_week(*, actor: Actor, today: date) -> int:
    """Ask for the week before `today`'s for every cluster that has nothing approved of it; return how many."""
    return _ask_of_all(actor, Period.week(today).previous())


def _ask_of_all(actor: Actor, period: Period) -> int:
    permissions.require(actor, "facility.run")
    done = Report.objects.filter(
        first=period.first, last=period.last, state__in=(Report.State.APPROVED, Report.State.PUBLISHED)
    )  # fmt: skip
    clusters = list(Cluster.objects.exclude(pk__in=done.values("cluster_id")))
    for cluster in clusters:
        _ask(actor, cluster, period)
    return len(clusters)


def work_off(drafting_id: int) -> bool:
    """Draft what was asked for, unless somebody else is at it; say whether it was done."""
    with leases.held(f"report:{drafting_id}", seconds=leases.LONGEST.total_seconds()) as holder:
        asked = _waiting().filter(pk=drafting_id).select_related("cluster", "asked_by").first() if holder else None
        return _draft(asked) if asked else False


def sweep() -> int:
    """Send again what nobody works on: a worker may have been ended in the middle of it. Return how many."""
    left = [pk for pk in _waiting().values_list("pk", flat=True) if not leases.is_held(f"report:{pk}")]
    for pk in left:
        _hint(pk)
    return len(left)


def _ask(actor: Actor, cluster: Cluster, period: Period) -> Drafting:
    wish = {"asked": clock.now(), "asked_by": actor.user, "fault": ""}
    asked, _ = Drafting.objects.update_or_create(cluster=cluster, first=period.first, last=period.last, defaults=wish)
    transaction.on_commit(partial(_hint, asked.pk), robust=True)
    return asked


def _hint(drafting_id: int) -> None:
    from portal.reports import tasks

    tasks.draft.delay(drafting_id)


def _waiting() -> QuerySet[Drafting]:
    return Drafting.objects.filter(fault="")


def _draft(asked: Drafting) -> bool:
    still = Drafting.objects.filter(pk=asked.pk, asked=asked.asked)  # asked for again meanwhile: once more
    actor = permissions.actor_for_user(asked.asked_by) if asked.asked_by else SYSTEM_ACTOR
    try:
        services.build_draft(actor=actor, cluster=asked.cluster, period=asked.period)
    except DomainError as error:
        if error.code != BUSY:
            still.update(fault=error.words[:500])
        return False
    except Stopping:
        return False  # the sweep hands it to the worker that comes next
    except Exception:
        still.update(fault=UNEXPECTED)
        raise
    still.delete()
    return True
