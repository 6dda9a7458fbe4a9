"""The demo's agents: registered, approved, suspended and retired by the people who answer for them."""

from collections.abc import Iterator
from datetime import timedelta

from policies import services as policy_services
from portal.core import clock
from portal.demo import cast
from portal.demo.history import Act, Stage, agent_named, person
from principals import permissions, selectors
from principals import services as principal_services
from principals.models import Lab, User
from principals.services.agents import Registration

_SERVICES = (
    ("aster-reader", "Reads Slurm's accounting and queue on aster.", ("ingest:jobs",)),
    ("login-collector", "Reports sessions and findings of login nodes.", ("ingest:sessions", "ingest:findings")),
)  # fmt: skip


def acts(stage: Stage) -> Iterator[Act]:
    """Tell what happened to agents and to the accounts of site automation."""
    yield Act(stage.start, policy_services.current_aup)
    yield Act(stage.start + timedelta(minutes=5), lambda: _make_services(stage))
    for plan in cast.AGENTS:
        yield from _life(stage, plan)


def _make_services(stage: Stage) -> None:
    staff = person(cast.STAFF)
    for name, purpose, scopes in _SERVICES:
        service = principal_services.create_service_account(
            actor=staff, name=name, purpose=purpose, cluster=stage.cluster
        )
        principal_services.issue_service_token(actor=staff, service=service, scope_names=scopes, label="first")


def _life(stage: Stage, plan: cast.AgentPlan) -> Iterator[Act]:
    began = stage.now - timedelta(days=plan.days_ago) + timedelta(minutes=stage.rng.randrange(10, 300))
    pi = cast.LAB_OF[plan.owner].people[0]
    yield Act(began, lambda: _register(plan))
    if plan.state == "waiting":
        return
    if plan.state != "held":
        yield Act(began + timedelta(minutes=4), lambda: _accept(plan))
    yield Act(began + timedelta(minutes=50), lambda: _approve(plan, pi))
    yield Act(began + timedelta(hours=5), lambda: _approve(plan, cast.STAFF))
    if plan.state == "held":
        return
    yield Act(began + timedelta(hours=6), lambda: _issue_token(plan))
    if plan.state == "suspended":
        yield Act(stage.now - timedelta(days=2), lambda: _suspend(plan))
    elif plan.state == "retired":
        yield Act(stage.now - timedelta(days=5), lambda: _retire(plan, pi))


def _register(plan: cast.AgentPlan) -> None:
    principal_services.register_agent(
        actor=person(plan.owner),
        lab=Lab.objects.get(name=cast.LAB_OF[plan.owner].name),
        owner=User.objects.get(username=plan.owner),
        registration=Registration(
            name=plan.name, harness=plan.harness, purpose=plan.purpose, expires=clock.now() + timedelta(days=120),
            autonomy=plan.autonomy, hosts=list(plan.hosts), partitions=list(plan.partitions),
        ),
    )  # fmt: skip


def _accept(plan: cast.AgentPlan) -> None:
    version = policy_services.current_aup().version
    policy_services.accept_aup(actor=person(plan.owner), agent=agent_named(plan.name), version=version)


def _approve(plan: cast.AgentPlan, login: str) -> None:
    """Give the approval that is still missing and that this person may give."""
    agent, actor = agent_named(plan.name), person(login)
    verbs = {"lab": "agent.approve_for_lab", "staff": "agent.approve_for_facility"}
    if any(permissions.can(actor, verbs[kind], agent) for kind in selectors.approvals_missing(agent)):
        principal_services.approve_agent(actor=actor, agent=agent)


def _issue_token(plan: cast.AgentPlan) -> None:
    principal_services.issue_agent_token(actor=person(plan.owner), agent=agent_named(plan.name), label=plan.hosts[0])


def _suspend(plan: cast.AgentPlan) -> None:
    principal_services.suspend_agent(
        actor=person(cast.STAFF), agent=agent_named(plan.name), reason="Asked the scheduler 40 times a minute."
    )


def _retire(plan: cast.AgentPlan, login: str) -> None:
    principal_services.retire_agent(actor=person(login), agent=agent_named(plan.name), reason="Its work is done.")
