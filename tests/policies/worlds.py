"""Rows that tests of trials and extensions share."""

from datetime import datetime, timedelta
from typing import Any

from policies import services as policy_services
from policies.models import AupDraft, Extension, ExtensionRelease, TrialGrant, TrialPolicy
from portal.core import clock
from principals.actors import Actor
from principals.models import Agent, Cluster, Lab, User
from principals.permissions import actor_for_agent
from telemetry.models import Job
from tests import factories

DIGEST = "sha256:" + "a" * 64
OTHER_DIGEST = "sha256:" + "b" * 64


def agent_actor(agent: Agent, *scopes: str) -> Actor:
    """The actor of an agent with a fresh token."""
    token = factories.token_row(factories.make_token(agent, *(scopes or ("trials:request",))))
    return actor_for_agent(token)


def make_trial(cast: Any, user: User | None = None, lab: Lab | None = None, **fields: Any) -> TrialGrant:
    """A trial granted now, unless said otherwise, to the colleague."""
    at: datetime = fields.pop("granted_at", clock.now())
    fields = {"valid_until": at + timedelta(hours=1), "minutes": 10, "account": "okafor_lab", "qos": "trial"} | fields
    return TrialGrant.objects.create(
        user=user or cast.colleague, lab=lab or cast.lab, cluster=cast.cluster, granted_at=at, **fields
    )


def set_limits(lab: Lab | None = None, **limits: int) -> TrialPolicy:
    return TrialPolicy.objects.create(lab=lab, **limits)


def make_release(user: User, identity: str = "okafor/mdtools-mcp", **fields: Any) -> ExtensionRelease:
    """A queued release, unless said otherwise."""
    extension, _ = Extension.objects.get_or_create(kind=fields.pop("kind", "mcp_server"), identity=identity)
    defaults = {"version": "1.0.0", "digest": DIGEST, "capabilities": ["fs.read"]}
    return ExtensionRelease.objects.create(extension=extension, submitted_by=user, **(defaults | fields))


def submission(**fields: Any) -> policy_services.Submission:
    """A submission that is in order."""
    defaults: dict[str, Any] = {
        "kind": "mcp_server", "identity": "okafor/mdtools-mcp", "version": "1.0.0", "digest": DIGEST,
        "capabilities": ["fs.read", "net.fetch"],
    }  # fmt: skip
    return policy_services.Submission(**(defaults | fields))


def make_job(cluster: Cluster, user: User, lab: Lab, *, submit: datetime, **fields: Any) -> Job:
    """A job under a person's login, in the trial QoS unless said otherwise."""
    number = Job.objects.count() + 1
    defaults = {
        "raw_id": number, "job_id": str(number), "qos": "trial", "state": "RUNNING", "digest": number,
        "changed": submit, "cluster_user": factories.make_cluster_user(cluster, user),
    }  # fmt: skip
    return Job.objects.create(cluster=cluster, lab=lab, submit=submit, **(defaults | fields))


def make_aup_draft(staff: User, pack: str = "cautious") -> AupDraft:
    """A draft that staff started from a pack."""
    return policy_services.start_aup_draft(actor=factories.actor_of(staff), pack=pack)
