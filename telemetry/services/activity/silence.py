"""Sessions whose end no collector saw: of a boot that is over, and those not heard of for two weeks."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from django.db import transaction

from portal.core import audit, clock
from portal.core.actors import SYSTEM
from principals.models import AgentSession, Cluster
from principals.models.agents import AgentSessionQuerySet
from telemetry.engine.activity_batches import Batch
from telemetry.models import DataGeneration
from telemetry.services.attribution import Window, attribute_pending, reattribute

SILENT: Final = timedelta(days=14)  # half of agents’ sessions last a week and more, and some of it they wait


def _open(cluster: Cluster) -> AgentSessionQuerySet:
    return AgentSession.objects.filter(cluster=cluster, ended=None, last_seen__isnull=False).exclude(process="")


def end_other_boots(cluster: Cluster, batch: Batch) -> int:
    """End what a host ran before it was booted anew, in the caller's transaction; return how many jobs changed.

    A batch of an earlier boot that comes late ends nothing: what runs since was seen after it.
    """
    others = _open(cluster).filter(host=batch.host, last_seen__lt=batch.since)
    return _end(cluster, others.exclude(process__startswith=batch.process_of("")))


def end_silent_sessions() -> int:
    """End the sessions that no collector told of for two weeks, when they were last seen; return how many.

    One that goes on after all is open again as soon as it does something.
    """
    done = 0
    for cluster in Cluster.objects.filter(sessions__ended=None).distinct().order_by("pk"):
        with transaction.atomic():
            cluster.lock()
            silent = list(_open(cluster).filter(last_seen__lt=clock.now() - SILENT))
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


def _end(cluster: Cluster, sessions: Iterable[AgentSession]) -> int:
    """End sessions when they were last seen, and let go of the jobs submitted since."""
    windows = []
    for session in sessions:
        if session.last_seen is not None:
            session.ended = session.last_seen
            session.save(update_fields=["ended"])
            windows.append(Window(session.cluster_user_id, int(session.last_seen.timestamp()), None))
    return reattribute(cluster=cluster, windows=windows)
