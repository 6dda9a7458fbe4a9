"""Sessions whose end no collector saw: of a boot that is over, of a time without one, and silent for two weeks."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q

from portal.core import audit, clock
from portal.core.actors import SYSTEM
from principals import services as principal_services
from principals.models import AgentSession, Cluster
from principals.models.agents import AgentSessionQuerySet
from telemetry.engine.activity_batches import Batch
from telemetry.models import BaselineStudy, CollectorReport, DataGeneration
from telemetry.services.attribution import Window, attribute_pending, reattribute
from telemetry.services.sessions import windows_of

_MOST_NAMED: Final = 500  # more may go on in the next batch
SILENT: Final = timedelta(days=14)  # half of agents’ sessions last a week and more, and some of it they wait


def _open(cluster: Cluster) -> AgentSessionQuerySet:
    return AgentSession.objects.filter(cluster=cluster, ended=None, last_seen__isnull=False).exclude(process="")


def end_gone(cluster: Cluster, batch: Batch) -> int:
    """End what a host ran before it was booted anew, or before its collector was, and runs no more.

    In the caller's transaction; return how many jobs changed. The first batch of a run names every session that there
    is. A batch of an earlier boot or run that comes late ends nothing: what runs since was seen after it.
    """
    before = _open(cluster).filter(host=batch.host, last_seen__lt=batch.since)
    of_boot = Q(process__startswith=batch.process_of(""))
    if _names_all(cluster, batch):
        alive = [batch.process_of(session.id) for session in batch.sessions]
        return _end(cluster, before.filter(~of_boot | ~Q(process__in=alive)))
    return _end(cluster, before.filter(~of_boot))


def _names_all(cluster: Cluster, batch: Batch) -> bool:
    """Say whether a batch is the first of its run, and whole: that one alone begins within a minute."""
    if batch.mode == CollectorReport.Mode.RECORDS or not batch.since.second or len(batch.sessions) > _MOST_NAMED:
        return False
    return not CollectorReport.objects.filter(cluster=cluster, host=batch.host, run=batch.run).exists()


def end_silent_sessions() -> int:
    """End the sessions that no collector told of for two weeks, when they were last seen; return how many.

    People's shells too, once no study runs any more: nobody looks at them, so they explain no further job. A session
    that goes on after all is open again as soon as it does something.
    """
    done = 0
    seen = AgentSession.objects.filter(ended=None).exclude(process="")
    for cluster in Cluster.objects.filter(pk__in=seen.values("cluster")).order_by("pk"):
        with transaction.atomic():
            cluster.lock()
            silent = list(_open(cluster).filter(_is_silent(cluster)))
            if not silent:
                continue
            jobs = _end(cluster, silent)
            DataGeneration.objects.start(cluster)
            audit.record(
                actor=SYSTEM, verb="session.end_silent", object_kind="cluster", object_id=cluster.pk,
                object_label=cluster.name, after={"sessions": len(silent), "jobs_attributed": jobs},
            )  # fmt: skip
        done += len(silent)
        attribute_pending(cluster=cluster)
    return done


def _is_silent(cluster: Cluster) -> Q:
    silent = Q(last_seen__lt=clock.now() - SILENT)
    is_studied = BaselineStudy.objects.running().filter(cluster=cluster).exists()
    return silent if is_studied else silent | Q(kind=AgentSession.Kind.INTERACTIVE)


def _end(cluster: Cluster, sessions: Iterable[AgentSession]) -> int:
    """End sessions when they were last seen, and let go of the jobs submitted since."""
    windows, ended = [], []
    for session in sessions:
        if session.last_seen is not None:
            session.ended = session.last_seen
            session.save(update_fields=["ended"])
            ended.append(session)
            windows.append(Window(session.cluster_user_id, int(session.last_seen.timestamp()), None))
    windows += windows_of(principal_services.settle_sessions(ended))
    return reattribute(cluster=cluster, windows=windows)
