"""Receipts by which an agent declares its jobs: giving them out, and finding those that jobs name."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction

from portal.core import audit, clock
from portal.core.errors import Invalid, NotAllowed
from principals.actors import Actor
from principals.models import Agent, Cluster, ClusterUser, Lab
from telemetry.engine import receipts as engine
from telemetry.engine.attribution import Receipt
from telemetry.models import JobReceipt

VALID: Final = timedelta(hours=12)
_LEFT: Final = VALID / 2  # who asks again gets the same one while so much of its time is left
_NAMES_A_QUERY: Final = 5000


def request_receipt(*, actor: Actor, cluster_name: str = "") -> JobReceipt:
    """Return a receipt for the agent's jobs on a cluster; an empty name means the only one its lab has an account on.

    It is for any number of jobs submitted before it ends, and the same one for whoever asks again soon.
    Errors: `NotAllowed` for all but agents, `Invalid` for a cluster the lab has no account on.
    """
    agent = actor.agent
    if agent is None:
        raise NotAllowed("Only an agent declares its jobs.", code="not_an_agent", remedy="Send an agent’s token.")
    cluster = _find_cluster(agent.lab, cluster_name)
    now = clock.now().replace(microsecond=0)
    with transaction.atomic():
        found = JobReceipt.objects.filter(
            agent=agent, cluster=cluster, public_id__startswith=engine.JOB, valid_until__gte=now + _LEFT
        ).last()
        if found is not None:
            return found
        name = engine.new_receipt(engine.JOB)
        receipt = note_receipt(name=name, agent=agent, cluster=cluster, issued=now, valid_until=now + VALID)
        audit.record(
            actor=actor.ref, verb="receipt.issue", object_kind="receipt", object_id=receipt.pk, object_label=name,
            lab_id=agent.lab_id, after={"agent": agent.name, "cluster": cluster.name},
        )  # fmt: skip
    return receipt


def note_receipt(*, name: str, agent: Agent, cluster: Cluster, issued: datetime, valid_until: datetime) -> JobReceipt:
    """Remember a receipt that an agent was given, in the caller's transaction, before the agent hears of it."""
    begins, ends = (moment.replace(microsecond=0) for moment in (issued, valid_until))
    return JobReceipt.objects.create(public_id=name, agent=agent, cluster=cluster, issued=begins, valid_until=ends)


def _find_cluster(lab: Lab, name: str) -> Cluster:
    own = list(Cluster.objects.filter(accounts__lab=lab).distinct().order_by("name"))
    fitting = [cluster for cluster in own if cluster.is_named(name)] if name else own
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(cluster.name for cluster in own)
    if fitting:
        raise Invalid(
            f"The lab has accounts on {names}.", code="cluster_missing", remedy="Name the cluster.",
            extra={"field": "cluster"},
        )  # fmt: skip
    raise Invalid(
        "The lab has no account there." if name else "The lab has no account on any cluster.", code="cluster_unknown",
        remedy=f"Name one of {names}." if names else "Ask the facility for an account.", extra={"field": "cluster"},
    )  # fmt: skip


def find_receipts(cluster: Cluster, names: Collection[str]) -> dict[str, Receipt]:
    """Return those of some receipts that were given out for a cluster: no query without names, else two."""
    found: dict[str, Receipt] = {}
    ordered = sorted(names)
    for first in range(0, len(ordered), _NAMES_A_QUERY):
        rows = JobReceipt.objects.filter(cluster=cluster, public_id__in=ordered[first : first + _NAMES_A_QUERY])
        told = list(rows.values_list(
            "public_id", "pk", "agent", "agent__harness", "agent__owner", "issued", "valid_until"
        ))  # fmt: skip
        logins = _logins_of(cluster, {owner for _, _, _, _, owner, _, _ in told})
        for name, pk, agent, harness, owner, issued, until in told:
            users = logins.get(owner, frozenset())
            found[name] = Receipt(pk, harness, users, int(issued.timestamp()), int(until.timestamp()), agent)
    return found


def _logins_of(cluster: Cluster, owners: Collection[int]) -> dict[int, frozenset[str]]:
    """Return the login names, as the matcher knows them, of some people."""
    if not owners:
        return {}
    logins: dict[int, set[str]] = {}
    for owner, pk in ClusterUser.objects.filter(cluster=cluster, user__in=owners).values_list("user_id", "pk"):
        logins.setdefault(int(owner or 0), set()).add(str(pk))
    return {owner: frozenset(pks) for owner, pks in logins.items()}
