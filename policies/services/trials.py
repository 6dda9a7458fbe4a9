"""Granting, refusing and cancelling trials."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from django.db import transaction

from policies import events, permissions, selectors
from policies.engine import trials as engine
from policies.models import TrialGrant, TrialRefusal
from policies.services.text import stored_text
from portal.core import audit, clock, live
from portal.core.errors import Conflict, Invalid
from principals.actors import Actor
from principals.models import Lab, SlurmAccount, User
from telemetry import services as telemetry_services

LARGEST = 100_000  # beyond it a number is a mistake, not a request


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What became of a request: a grant, or a refusal with every reason."""

    decision: engine.Decision
    grant: TrialGrant | None = None
    refusal: TrialRefusal | None = None

    @property
    def returns_at(self) -> datetime | None:
        """When the same request would pass; `None` where waiting does not help."""
        at_s = self.decision.returns_at_s
        return None if at_s is None else datetime.fromtimestamp(at_s, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialWish:
    """One trial asked for. An empty cluster means the only one the lab has an account on."""

    minutes: int
    gpus: int = 0
    nodes: int = 1
    cluster: str = ""
    purpose: str = ""


def request_trial(*, actor: Actor, lab: Lab, wish: TrialWish) -> TrialOutcome:
    """Grant a trial with a receipt, or refuse it with every reason. Budgets are never overspent by concurrent calls.

    A refusal is an outcome, not an error. Errors: `NotAllowed` outside the lab, `Invalid` for sizes below one or a
    cluster the lab has no account on.
    """
    permissions.require(actor, "trial.request", lab, remedy="Ask for trials in a lab you belong to.")
    request = _request_of(wish)
    account = _account(lab, wish.cluster)
    purpose = stored_text(wish.purpose, 500)
    with transaction.atomic():
        # The lab's row is the lock of its budget and of those inside it: requests of one lab are decided one by one.
        # Without the key part, so that inserting a lab's jobs or agents does not wait. SQLite has one writer anyway.
        Lab.objects.select_for_update(no_key=True).get(pk=lab.pk)
        user = _person(actor)
        now = clock.now()
        decision = _decide(request, lab, user, now)
        if decision.granted:
            grant = _grant(actor, user, account, request, purpose, now)
            return TrialOutcome(decision, grant=grant)
        return TrialOutcome(decision, refusal=_refuse(actor, user, account, request, purpose, decision, now))


def _person(actor: Actor) -> User:
    if actor.user is None:
        raise Invalid("A trial is charged to a person.", code="not_a_person")
    return actor.user


def _request_of(wish: TrialWish) -> engine.TrialRequest:
    for name, value, low in (("minutes", wish.minutes, 1), ("gpus", wish.gpus, 0), ("nodes", wish.nodes, 1)):
        if not low <= value <= LARGEST:
            raise Invalid(
                f"A trial’s {name} lie between {low} and {LARGEST}; this one asks for {value}.",
                code="trial_size_invalid", extra={"field": name},
            )  # fmt: skip
    return engine.TrialRequest(minutes=wish.minutes, gpus=wish.gpus, nodes=wish.nodes)


def _account(lab: Lab, cluster: str) -> SlurmAccount:
    accounts = list(lab.accounts.select_related("cluster").order_by("cluster__name", "name"))
    clusters = sorted({account.cluster.name for account in accounts})
    if cluster:
        accounts = [account for account in accounts if account.cluster.name == cluster]
    elif len(clusters) > 1:
        raise Invalid(
            f"The lab has accounts on {', '.join(clusters)}.", code="cluster_missing",
            remedy="Name the cluster.", extra={"field": "cluster"},
        )  # fmt: skip
    if not accounts:
        raise Invalid(
            "The lab has no account there." if cluster else "The lab has no account on any cluster.",
            code="cluster_unknown",
            remedy=f"Name one of {', '.join(clusters)}." if clusters else "Ask the facility for an account.",
            extra={"field": "cluster"},
        )
    return accounts[0]


def _decide(request: engine.TrialRequest, lab: Lab, user: User, now: datetime) -> engine.Decision:
    return engine.decide_trial(
        request,
        selectors.policy_for(lab).limits,
        person_usage=selectors.usage_of(TrialGrant.objects.filter(user=user, lab=lab), now),
        lab_usage=selectors.usage_of(TrialGrant.objects.filter(lab=lab), now),
        now_s=now.timestamp(),
    )


def _grant(
    actor: Actor, user: User, account: SlurmAccount, request: engine.TrialRequest, purpose: str, now: datetime
) -> TrialGrant:
    policy = selectors.policy_for(account.lab)
    grant = TrialGrant.objects.create(
        agent=actor.agent, user=user, lab=account.lab, cluster=account.cluster, account=account.name,
        minutes=request.minutes, gpus=request.gpus, nodes=request.nodes, gpu_minutes=int(request.gpu_minutes),
        partition=policy.partition, qos=policy.qos, purpose=purpose, granted_at=now,
        valid_until=now + timedelta(minutes=policy.valid_minutes),
    )  # fmt: skip
    if actor.agent is not None:  # a job that names it says whose it is
        telemetry_services.note_receipt(
            name=grant.public_id, agent=actor.agent, cluster=account.cluster, issued=now, valid_until=grant.valid_until
        )
    audit.record(
        actor=actor.ref, verb="trial.grant", object_kind="trial", object_id=grant.pk, object_label=grant.public_id,
        lab_id=grant.lab_id, after={"minutes": grant.minutes, "gpus": grant.gpus, "nodes": grant.nodes,
                                    "cluster": account.cluster.name},
    )  # fmt: skip
    tell(grant, events.TRIAL_GRANTED)
    transaction.on_commit(partial(events.trial_granted.send_robust, TrialGrant, trial_id=grant.pk))
    return grant


def _refuse(
    actor: Actor, user: User, account: SlurmAccount, request: engine.TrialRequest, purpose: str,
    decision: engine.Decision, now: datetime,
) -> TrialRefusal:  # fmt: skip
    returns = decision.returns_at_s
    refusal = TrialRefusal.objects.create(
        agent=actor.agent, user=user, lab=account.lab, cluster=account.cluster, minutes=request.minutes,
        gpus=request.gpus, nodes=request.nodes, purpose=purpose, code=decision.reasons[0].code, at=now,
        reasons=[
            {"code": reason.code, "sentence": reason.sentence, "remedy": reason.remedy, "value": reason.value,
             "limit": reason.limit}
            for reason in decision.reasons
        ],
        returns_at=None if returns is None else datetime.fromtimestamp(returns, UTC),
    )  # fmt: skip
    # A refusal is its own record; an audit event for each would let a polling agent flood the trail.
    payload = events.TrialRefused(
        codes=[reason.code for reason in decision.reasons],
        returns_at=clock.written(refusal.returns_at) if refusal.returns_at else None,
    )
    live.announce([live.News(events.TRIAL_REFUSED, topics_of(refusal), dict(payload))])
    return refusal


def topics_of(row: TrialGrant | TrialRefusal) -> tuple[str, ...]:
    """Return the topics on which news of a trial is told: its agent, person, lab and the facility's desk."""
    own = (f"agent:{row.agent_id}",) if row.agent_id else ()
    return (*own, f"user:{row.user_id}", f"lab:{row.lab_id}", "facility:policies")


def tell(grant: TrialGrant, name: str) -> None:
    """Announce what became of a trial, in the caller's transaction."""
    payload = events.TrialChanged(
        trial=grant.public_id, state=grant.state, cluster=grant.cluster.name, minutes=grant.minutes, gpus=grant.gpus
    )
    live.announce([live.News(name, topics_of(grant), dict(payload))])


def cancel_trial(*, actor: Actor, trial: TrialGrant, reason: str = "") -> TrialGrant:
    """Cancel a trial that has no job; what it was charged comes back at once.

    Errors: `Conflict` where it was used, expired or cancelled: what ran or could have run stays charged.
    """
    permissions.require(actor, "trial.cancel", trial, remedy="Its person, PI, lab manager or staff cancel a trial.")
    with transaction.atomic():
        now = clock.now()
        if trial.valid_until <= now or not trial.move(old=TrialGrant.State.GRANTED, new=TrialGrant.State.CANCELLED):
            state = TrialGrant.objects.get(pk=trial.pk).get_state_display().lower()
            ended = "over" if state == "granted" else state
            raise Conflict(
                f"Trial {trial.public_id} is {ended}; only one that waits for its job is cancelled.",
                code="trial_not_open", remedy="What it was charged comes back a day after it was granted.",
            )  # fmt: skip
        audit.record(
            actor=actor.ref, verb="trial.cancel", object_kind="trial", object_id=trial.pk,
            object_label=trial.public_id, lab_id=trial.lab_id, reason=stored_text(reason, 300),
            before={"state": TrialGrant.State.GRANTED}, after={"state": trial.state},
        )  # fmt: skip
        tell(trial, events.TRIAL_CANCELLED)
    return trial
