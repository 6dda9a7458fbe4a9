"""The API of `memory`: record a lesson, look one up by the text of an error, say whether it held."""

from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router

from memory import selectors
from memory import services as memory_services
from memory.engine.match import MAX_MATCHES
from memory.schemas import EvidenceIn, LessonIn, LessonOut, LookUpIn, MatchesOut, RecordedOut, show_lesson, show_matches
from memory.services import LessonContent
from portal.core.errors import Invalid, NotAllowed
from portal.core.idempotency import idempotent
from portal.core.problems import answers
from principals.auth import actor_of, requires
from principals.models import Cluster

router = Router()
MAX_QUERY = 4000  # characters in an address; longer texts are posted


@router.post(
    "/lessons", auth=requires("lessons:write"), response=answers(201, RecordedOut) | {200: RecordedOut},
    summary="Record a lesson",
)  # fmt: skip
@idempotent
def record_lesson(request: HttpRequest, body: LessonIn) -> tuple[int, RecordedOut]:
    """Record a lesson in the agent's project; the same again is a word for it (200). Takes an Idempotency-Key."""
    actor = actor_of(request)
    if body.scope == "cluster":
        raise NotAllowed(
            "An agent records for its project, or proposes to its lab.", code="scope_not_allowed",
            remedy="Use scope project or lab; the PI proposes it for the cluster.",
        )  # fmt: skip
    said = body.model_dump()
    scope = said.pop("scope")
    content = LessonContent(**said | {"conditions": tuple(said["conditions"])})
    recorded = memory_services.record_lesson(actor=actor, content=content, scope=scope)
    return 201 if recorded.created else 200, RecordedOut(
        lesson=show_lesson(selectors.find_lesson(actor, recorded.lesson.public_id), actor),
        created=recorded.created,
        proposal=recorded.proposal.public_id if recorded.proposal else None,
    )


@router.get("/lessons", auth=requires("lessons:read"), response=answers(200, MatchesOut), summary="Look lessons up")
def find_lessons(
    request: HttpRequest,
    text: Annotated[str, Query(min_length=1, max_length=MAX_QUERY)],
    cluster: Annotated[str, Query(max_length=200)] = "",
    limit: Annotated[int, Query(ge=1, le=MAX_MATCHES)] = MAX_MATCHES,
) -> MatchesOut:
    """Return at most three lessons that fit an error text, each cause once; none where the error is unknown."""
    return _look_up(request, text, cluster, limit)


@router.post(
    "/lessons/look-up", auth=requires("lessons:read"), response=answers(200, MatchesOut),
    summary="Look lessons up by a long text",
)  # fmt: skip
def look_up(request: HttpRequest, body: LookUpIn) -> MatchesOut:
    """As `GET /lessons`, for texts too long or too private for an address."""
    return _look_up(request, body.text, body.cluster, body.limit)


@router.get(
    "/lessons/{public_id}", auth=requires("lessons:read"), response=answers(200, LessonOut), summary="Read a lesson"
)
def get_lesson(request: HttpRequest, public_id: str) -> LessonOut:
    """Return one lesson in force that the token may read."""
    actor = actor_of(request)
    return show_lesson(selectors.find_lesson(actor, public_id), actor)


@router.post(
    "/lessons/{public_id}/evidence", auth=requires("lessons:write"), response=answers(200, LessonOut),
    summary="Say whether a lesson held",
)  # fmt: skip
@idempotent
def add_evidence(request: HttpRequest, public_id: str, body: EvidenceIn) -> tuple[int, LessonOut]:
    """Confirm or refute a lesson; an agent and its owner are one voice. Takes an Idempotency-Key."""
    actor = actor_of(request)
    lesson = selectors.find_lesson(actor, public_id)
    memory_services.confirm_lesson(actor=actor, lesson=lesson, holds=body.holds, job_key=body.job_key)
    return 200, show_lesson(selectors.find_lesson(actor, public_id), actor)


def _look_up(request: HttpRequest, text: str, cluster: str, limit: int) -> MatchesOut:
    actor = actor_of(request)
    named = None
    if cluster:
        named = Cluster.objects.named(cluster).first()
        if named is None:
            raise Invalid("No cluster has this name.", code="cluster_unknown", remedy="Send the name Slurm gives it.")
    return show_matches(memory_services.look_up(actor=actor, text=text, cluster=named, limit=limit), actor)
