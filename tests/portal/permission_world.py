"""Objects that the paths of the permission table name; each is made when a path asks for it."""

from collections.abc import Callable
from datetime import timedelta

from memory import services as memory_services
from policies import services as policy_services
from portal.core import clock
from portal.reports import contents
from portal.reports.models import Report, digest_of
from portal.webhooks.models import Delivery
from principals.actors import SYSTEM_ACTOR
from principals.models import AgentSession, Appeal, Hold, KillSwitch, SessionCheckIn
from telemetry.models import IngestBatch, Job
from telemetry.selectors import Period, Scope
from tests import factories
from tests.conftest import Cast
from tests.policies import worlds
from tests.security.support import make_incident
from tests.telemetry.logs import ingest, job_row, text
from tests.webhooks.rows import make_webhook


def _published_month(cast: Cast) -> str:
    content = contents.build(Scope(SYSTEM_ACTOR, cast.cluster, Period.month(2026, 6))).as_json()
    Report.objects.get_or_create(
        cluster=cast.cluster, first="2026-06-01", last="2026-06-30", version=1,
        defaults={"state": Report.State.PUBLISHED, "content": content, "digest": digest_of(content),
                  "built_by": "staff"},
    )  # fmt: skip
    return "2026-06"


def _foreign_batch(cast: Cast) -> str:
    batch = IngestBatch.objects.create(cluster=cast.cluster, source="api", format="sacct", sent_by="another-service")
    return str(batch.public_id)


def _job_of_the_agents_owner(cast: Cast) -> int:
    ingest(cast.cluster, text(job_row(1, User="colleague", Account="okafor_lab")))
    return 1


def _lesson(cast: Cast) -> str:
    """A lesson in force of the cast's lab."""
    content = memory_services.LessonContent(error_text="error: Unable to open pmix plugin", cause="old", fix="new")
    actor = factories.actor_of(cast.pi)
    return memory_services.record_lesson(actor=actor, content=content, scope="lab", lab=cast.lab).lesson.public_id


def _pk_of_that_job(cast: Cast) -> int:
    return Job.objects.get(raw_id=_job_of_the_agents_owner(cast)).pk


def _webhook(cast: Cast) -> str:
    return make_webhook(cast.pi).public_id


def _dead_letter(cast: Cast) -> str:
    return Delivery.objects.get_or_create(webhook=make_webhook(cast.pi), kind="resync", state="dead")[0].public_id


def _check_in(cast: Cast) -> str:
    if begun := SessionCheckIn.objects.filter(agent=cast.agent).first():
        return begun.public_id
    login = factories.make_cluster_user(cast.cluster, cast.colleague)
    told = {"cluster_user": login, "host": "login01", "started": clock.now()}
    session = AgentSession.objects.create(cluster=cast.cluster, harness="claude-code", agent=cast.agent, **told)
    return SessionCheckIn.objects.create(agent=cast.agent, session=session, pid=7, **told).public_id


def _asked_by_infosec(cast: Cast) -> int:
    return KillSwitch.objects.create(
        target_kind="all", target_label="Every agent", reason="A test.", until=clock.now() + timedelta(hours=1),
        state="asked", asked_by=cast.infosec,
    ).pk  # fmt: skip


def _appeal(cast: Cast) -> int:
    hold = Hold.objects.create(
        subject_kind="agent", subject_id=cast.agent.pk, kind="flood", code="flood", reason="x", placed_by="staff"
    )
    return Appeal.objects.create(
        person=cast.colleague, hold=hold, about="A hold", reason="No.", due=clock.now() + timedelta(days=5)
    ).pk


# name in a path → what stands there; made from the cast's lab (not the outsider's).
WORLD: dict[str, Callable[[Cast], object]] = {
    "agent": lambda cast: cast.agent.name,
    "lab": lambda cast: cast.lab.name,
    "table": lambda cast: "days",
    "kind": lambda cast: "csv",
    "provider": lambda cast: "oidc",
    "switch": _asked_by_infosec,
    "appeal": _appeal,
    "slug": lambda cast: "lines",
    "key": lambda cast: "NoSuchKey123",
    "handover": lambda cast: 999_999,
    "claim": lambda cast: 999_999,
    "check_in": _check_in,
    "unregistered_session": lambda cast: 999_999,
    "cluster": lambda cast: cast.cluster.name,
    "batch": _foreign_batch,
    "job_pk": _pk_of_that_job,
    "job": _job_of_the_agents_owner,
    "incident": lambda cast: make_incident(cast).pk,
    "published_month": _published_month,
    "figure": lambda cast: "by-day",
    "lesson": _lesson,
    "webhook": _webhook,
    "dead_letter": _dead_letter,
    "trial": lambda cast: worlds.make_trial(cast).public_id,
    "queued_extension": lambda cast: worlds.make_release(cast.colleague).pk,
    "admitted_extension": lambda cast: (
        worlds.make_release(cast.colleague, state="admitted", decided_by=cast.staff, decided_at=clock.now()).pk
    ),
    "aup": lambda cast: policy_services.current_aup().version,
    "aup_draft": lambda cast: worlds.make_aup_draft(cast.staff).pk,
    "agents_extension": lambda cast: worlds.make_release(cast.colleague, submitted_by_agent=cast.agent).pk,
}


def paths_of(cast: Cast, path: str) -> str:
    """Fill in the objects a path names."""
    for name, make in WORLD.items():
        if "{" + name + "}" in path:
            path = path.replace("{" + name + "}", str(make(cast)))
    return path
