"""The API of `policies`: trials, their budget, extensions, and the site's rules."""

import posixpath
import re
from dataclasses import replace
from datetime import timedelta
from typing import Annotated

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja import Query, Router

from policies import selectors
from policies import services as policy_services
from policies.engine import agents_md
from policies.engine.aup import Aup
from policies.engine.data_gate import labels_of, may_see
from policies.models import ExtensionRelease, TrialGrant
from policies.schemas import (
    CURSOR,
    BudgetOut,
    DataGateIn,
    DataGateOut,
    ExtensionIn,
    ExtensionOut,
    ExtensionPage,
    TrialGranted,
    TrialOut,
    TrialPage,
    TrialProblem,
    TrialRequestIn,
)
from policies.services import TrialOutcome
from portal.core import clock
from portal.core.conditional import answer_once
from portal.core.errors import Invalid, NotFound, TooMany
from portal.core.idempotency import idempotent
from portal.core.paging import cut_page
from portal.core.problems import EVERY_OPERATION, Problem, answers
from principals.actors import Actor
from principals.auth import actor_of, requires
from principals.models import Agent

router = Router()
LARGEST_ID = 2**63 - 1
Limit = Annotated[int, Query(ge=1, le=200)]
After = Annotated[str | None, Query(pattern=CURSOR)]
RowAfter = Annotated[int | None, Query(ge=1, le=LARGEST_ID)]
_MARKDOWN = {
    "responses": {
        200: {"description": "Markdown.", "content": {"text/markdown": {"schema": {"type": "string"}}}},
        304: {"description": "The caller has it already, by the ETag in `If-None-Match`."},
    }
}  # fmt: skip
_REASONED = {422: TrialProblem, 429: TrialProblem}


def _agent(actor: Actor) -> Agent:
    if actor.agent is None:  # the scopes of these operations exist for agents' tokens only
        raise NotFound("This token is not an agent's.", code="not_an_agent")
    return actor.agent


def _budget(actor: Actor) -> BudgetOut:
    agent = _agent(actor)
    return BudgetOut.of(selectors.trial_budget(agent.owner, agent.lab))


@router.post(
    "/trials", auth=requires("trials:request"), response=answers(201, TrialGranted) | _REASONED,
    summary="Ask for a trial",
)  # fmt: skip
@idempotent
def request_trial(request: HttpRequest, body: TrialRequestIn) -> tuple[int, TrialGranted]:
    """Grant a trial with a receipt, or refuse it with every reason and the moment when budget returns.

    With an `Idempotency-Key` a retry gets the first grant again. 429 where waiting helps, 422 where the request is too
    large as it stands.
    """
    actor = actor_of(request)
    agent = _agent(actor)
    wish = policy_services.TrialWish(**body.model_dump())
    outcome = policy_services.request_trial(actor=actor, lab=agent.lab, wish=wish)
    if outcome.grant is None:
        raise _refusal(outcome)
    return 201, TrialGranted(**TrialOut.of(outcome.grant).model_dump(), budget=_budget(actor))


def _refusal(outcome: TrialOutcome) -> Invalid | TooMany:
    reasons = outcome.refusal.reasons if outcome.refusal else []
    detail = " ".join(reason["sentence"] for reason in reasons)
    remedy = reasons[0]["remedy"]
    at = outcome.returns_at
    # To the next millisecond: whoever asks again at that very instant is not too early.
    returns_at = clock.written(at + timedelta(microseconds=999)) if at else None
    extra = {"reasons": reasons, "returns_at": returns_at}
    if at is None:
        return Invalid(detail, code="trial_too_large", remedy=remedy, extra=extra)
    # Rounded up: asked again at the promised second, it passes.
    wait = int((at - clock.now()).total_seconds()) + 1
    return TooMany(detail, code="trial_budget_spent", remedy=remedy, retry_after_s=wait, extra=extra)


@router.get("/trials", auth=requires("trials:request"), response=answers(200, TrialPage), summary="My trials")
def list_trials(request: HttpRequest, limit: Limit = 50, after: After = None) -> TrialPage:
    """List the trials of the person the agent acts for, in its lab, newest first."""
    rows = _visible(actor_of(request)).order_by("-pk")
    if after is not None:
        rows = rows.filter(pk__lt=_find(actor_of(request), after).pk)
    page, last = cut_page(rows, limit)
    return TrialPage(
        items=[TrialOut.of(trial) for trial in selectors.mark_withdrawn(page)], next=last.public_id if last else None
    )


@router.get(
    "/trials/budget", auth=requires("trials:request"), response=answers(200, BudgetOut), summary="My trial budget"
)
def trial_budget(request: HttpRequest) -> BudgetOut:
    """Say what is used and left of the trial budget, and when it comes back."""
    return _budget(actor_of(request))


@router.get("/trials/{trial_id}", auth=requires("trials:request"), response=answers(200, TrialOut), summary="One trial")
def read_trial(request: HttpRequest, trial_id: str) -> TrialOut:
    """Say where one trial stands."""
    return TrialOut.of(*selectors.mark_withdrawn([_find(actor_of(request), trial_id)]))


@router.post(
    "/trials/{trial_id}/cancel", auth=requires("trials:request"), response=answers(200, TrialOut),
    summary="Give a trial back",
)  # fmt: skip
@idempotent
def cancel_trial(request: HttpRequest, trial_id: str) -> tuple[int, TrialOut]:
    """Cancel a trial that has no job; what it was charged comes back at once."""
    actor = actor_of(request)
    return 200, TrialOut.of(policy_services.cancel_trial(actor=actor, trial=_find(actor, trial_id)))


@router.get(
    "/site/agents.md", auth=requires("me:read"), response=dict.fromkeys(EVERY_OPERATION, Problem),
    openapi_extra=_MARKDOWN, summary="The site's rules, as agents read them",
)  # fmt: skip
def read_site_rules(request: HttpRequest) -> HttpResponseBase:
    """Give the block that stands in an `AGENTS.md`: the policy in force, as far as it binds this agent."""
    text = agents_md.agents_md(_policy_for(actor_of(request)), url=settings.BASE_URL)
    answer = HttpResponse(text, content_type="text/markdown; charset=utf-8")
    return answer_once(request, answer, cache="private, no-cache")  # kept, and asked for anew each time


@router.post(
    "/site/data-gate", auth=requires("me:read"), response=answers(200, DataGateOut),
    summary="Whether a model may see data",
)  # fmt: skip
def ask_data_gate(request: HttpRequest, body: DataGateIn) -> DataGateOut:
    """Judge a model of a provider against the policy in force and the labels of a path or project.

    What is asked stands in the body, for addresses come into logs; it is not kept. An answer is the policy's word, and
    no proof that nothing was shown.
    """
    clauses = _policy_for(actor_of(request)).clauses
    path = body.path and posixpath.normpath(f"/{body.path.lstrip('/')}")
    labels = frozenset(body.labels) | labels_of(clauses, path=path, project=body.project)
    verdict = may_see(clauses, provider=body.provider, model=body.model, labels=labels)
    return DataGateOut(
        allowed=verdict.allowed, labels=sorted(labels), clause=verdict.clause, why=verdict.why, remedy=verdict.remedy
    )


def _policy_for(actor: Actor) -> Aup:
    """Return the policy in force, as far as it binds the agent that asks."""
    policy = policy_services.aup_in_force().policy
    if (agent := actor.agent) is None:
        return policy
    bound = (each for each in policy.clauses if each.applies.reaches(lab=agent.lab.name, harness=agent.harness))
    return replace(policy, clauses=tuple(bound))


def _visible(actor: Actor) -> QuerySet[TrialGrant]:
    return TrialGrant.objects.visible_to(actor).select_related("agent", "lab", "cluster", "job", "user")


def _find(actor: Actor, trial_id: str) -> TrialGrant:
    trial: TrialGrant | None = None
    if re.fullmatch(CURSOR, trial_id):
        trial = _visible(actor).filter(public_id=trial_id).first()
    if trial is None:
        raise NotFound("There is no such trial of yours.", code="trial_not_found", remedy="GET /api/v1/trials lists.")
    return trial


@router.get(
    "/extensions", auth=requires("extensions:read"), response=answers(200, ExtensionPage),
    summary="Extensions that may be loaded",
)  # fmt: skip
def list_extensions(request: HttpRequest, limit: Limit = 50, after: RowAfter = None) -> ExtensionPage:
    """List admitted releases, newest submission first. What is not listed, or has another digest, is not admitted."""
    rows = ExtensionRelease.objects.admitted().select_related("extension").order_by("-pk")
    if after is not None:
        rows = rows.filter(pk__lt=after)
    page, last = cut_page(rows, limit)
    return ExtensionPage(items=[ExtensionOut.of(row) for row in page], next=last.pk if last else None)


@router.post(
    "/extensions", auth=requires("extensions:submit"), response=answers(201, ExtensionOut),
    summary="Submit an extension for review",
)  # fmt: skip
@idempotent
def submit_extension(request: HttpRequest, body: ExtensionIn) -> tuple[int, ExtensionOut]:
    """Queue a release for review by staff or InfoSec; an `Idempotency-Key` makes a retry harmless."""
    submission = policy_services.Submission(**body.model_dump())
    return 201, ExtensionOut.of(policy_services.submit_extension(actor=actor_of(request), submission=submission))


@router.get(
    "/extensions/{release_id}", auth=requires("extensions:read"), response=answers(200, ExtensionOut),
    summary="One release of an extension",
)  # fmt: skip
def read_extension(request: HttpRequest, release_id: int) -> ExtensionOut:
    """Say where a release stands: one that is admitted, or one that this agent submitted."""
    rows = ExtensionRelease.objects.visible_to(actor_of(request)).select_related("extension")
    row = rows.filter(pk=release_id).first() if 0 < release_id <= LARGEST_ID else None
    if row is None:
        raise NotFound("There is no such release, or none you may see.", code="extension_not_found")
    return ExtensionOut.of(row)
