"""What the paths of the permission table name, in the demo facility: found, or made by the demo's people."""

import io
from datetime import timedelta

from memory import services as memory_services
from policies import services as policy_services
from portal.core import clock
from portal.demo import cast
from portal.demo.history import person
from portal.reports.models import Report
from portal.webhooks.models import Delivery
from principals import permissions
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster, Lab, User
from principals.services import kill_switches
from security.models import Incident
from telemetry import services as telemetry_services
from telemetry.models import Job
from tests.policies import worlds
from tests.telemetry.logs import job_row, text
from tests.webhooks.rows import make_webhook

PI = "u0398"
LAB = "okafor"


def objects() -> dict[str, object]:
    """Return name in a path → what stands there."""
    cluster, lab = Cluster.objects.get(name=cast.CLUSTER), Lab.objects.get(name=LAB)
    return {
        "agent": "okafor-docking",
        "lab": LAB,
        "cluster": cluster.name,
        "job_pk": Job.objects.filter(lab=lab).order_by("pk")[0].pk,
        "incident": Incident.objects.filter(lab=lab).order_by("pk")[0].pk,
        "batch": str(_batch(cluster)),
        "published_month": _published_month(cluster),
        "lesson": str(_lesson(lab)),
        "webhook": _webhook(),
        "switch": _drill(),
        "aup": policy_services.current_aup().version,
        "aup_draft": worlds.make_aup_draft(User.objects.get(username=cast.STAFF)).pk,
        **_extensions(),
    }


def _batch(cluster: Cluster) -> object:
    rows = text(job_row(1, User=PI, Account="okafor_lab"), job_row(2, Submit="never"))
    stream = io.BytesIO(rows)
    return telemetry_services.ingest_file(actor=SYSTEM_ACTOR, cluster=cluster, stream=stream, format="sacct").public_id


def _published_month(cluster: Cluster) -> str:
    return Report.objects.filter(cluster=cluster, state=Report.State.PUBLISHED).order_by("pk")[0].period.name


def _lesson(lab: Lab) -> object:
    content = memory_services.LessonContent(error_text="error: Unable to open pmix plugin", cause="old", fix="new")
    return memory_services.record_lesson(actor=person(PI), content=content, scope="lab", lab=lab).lesson.public_id


def _drill() -> int:
    target, until = kill_switches.find_target("harness", "codex"), clock.now() + timedelta(hours=1)
    staff = permissions.actor_for_user(User.objects.filter(is_research_computing=True).order_by("pk")[0])
    return kill_switches.pull(actor=staff, target=target, reason="A drill.", until=until, is_drill=True).pk


def _webhook() -> str:
    webhook = make_webhook(User.objects.get(username=PI))
    for kind, state, words in (("events", "delivered", "Taken, status 204."), ("resync", "dead", "It answered 500.")):
        Delivery.objects.create(webhook=webhook, kind=kind, state=state, words=words, tried=clock.now())
    return webhook.public_id


def _extensions() -> dict[str, int]:
    pi, staff = User.objects.get(username=PI), User.objects.get(username=cast.STAFF)
    admitted = worlds.make_release(pi, version="0.9.0", state="admitted", decided_by=staff, decided_at=clock.now())
    return {"queued_extension": worlds.make_release(pi).pk, "admitted_extension": admitted.pk}
