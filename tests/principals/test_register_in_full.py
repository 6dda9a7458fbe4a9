"""What a registration declares beside its name: accounts, hours, the site's threshold, the lab's own rule."""

from dataclasses import replace
from datetime import time, timedelta

import pytest
from pytest_django import Settings

from portal.core import clock
from portal.core.errors import Invalid, NotAllowed
from portal.core.models import AuditEvent
from principals import selectors
from principals import services as principal_services
from principals.engine.hours import Hours
from principals.models import Agent, AgentApproval, Association, Lab, LabMembership, SlurmAccount, User
from principals.services.agents import Registration
from tests import factories
from tests.conftest import Cast

WISH = Registration(
    name="okafor-membrane", harness="claude-code", purpose="Prepares membranes.", expires=clock.now() + timedelta(90),
    partitions=["shared"],
)  # fmt: skip


def _register(cast: Cast, user: User, **changes: object) -> Agent:
    wish = replace(WISH, **changes)  # type: ignore[arg-type]
    return principal_services.register_agent(
        actor=factories.actor_of(user), lab=Lab.objects.get(pk=cast.lab.pk), owner=user, registration=wish
    )


def _associate(cast: Cast, user: User, account: str, partition: str = "") -> None:
    row, _ = SlurmAccount.objects.get_or_create(cluster=cast.cluster, name=account, defaults={"lab": cast.lab})
    login = factories.make_cluster_user(cast.cluster, user)
    Association.objects.create(cluster_user=login, account=row, partition=partition)


def _switch_on(cast: Cast) -> None:
    principal_services.set_low_risk_rule(actor=factories.actor_of(cast.pi), lab=cast.lab, on=True)


def test_it_keeps_what_was_declared(cast: Cast) -> None:
    _associate(cast, cast.colleague, "okafor_lab")
    hours = Hours((0, 1), time(8), time(18), "Europe/Zurich")
    agent = _register(cast, cast.colleague, accounts=["okafor_lab"], hours=hours, harness_version="2.1.0")
    agent.refresh_from_db()
    assert (agent.accounts, agent.working_hours, agent.harness_version) == (["okafor_lab"], hours, "2.1.0")


def test_only_accounts_that_slurm_lets_its_owner_charge(cast: Cast) -> None:
    _associate(cast, cast.pi, "okafor_lab")
    _associate(cast, cast.pi, "okafor_gpu")
    _associate(cast, cast.colleague, "okafor_lab")
    Association.objects.create(
        cluster_user=factories.make_cluster_user(cast.cluster, cast.colleague), ended=clock.now(),
        account=SlurmAccount.objects.get(name="okafor_gpu"),
    )  # fmt: skip
    with pytest.raises(Invalid) as caught:
        _register(cast, cast.colleague, accounts=["okafor_gpu"])
    assert (caught.value.code, caught.value.extra["field"]) == ("account_not_associated", "accounts")
    assert "okafor_lab" in caught.value.remedy
    assert _register(cast, cast.pi, accounts=["okafor_gpu"]).accounts == ["okafor_gpu"]


def test_only_partitions_of_those_accounts_where_slurm_binds_them(cast: Cast) -> None:
    _associate(cast, cast.colleague, "okafor_lab", "shared")
    with pytest.raises(Invalid) as caught:
        _register(cast, cast.colleague, partitions=["gpu"])
    assert caught.value.code == "partition_not_associated"
    _associate(cast, cast.colleague, "okafor_any")  # any partition
    _register(cast, cast.colleague, partitions=["gpu"])


def test_the_site_says_from_which_risk_on_staff_approve(cast: Cast, settings: Settings) -> None:
    settings.STAFF_APPROVE_FROM = 2
    agent = _register(cast, cast.pi, autonomy="unattended")
    assert selectors.approvals_missing(agent) == {"staff"}
    settings.STAFF_APPROVE_FROM = 5
    assert _register(cast, cast.pi, name="okafor-two", autonomy="unattended", partitions=["gpu"]).status == "active"


def test_leaving_the_partitions_out_is_no_way_around_staff(cast: Cast) -> None:
    assert selectors.approvals_missing(_register(cast, cast.pi, autonomy="unattended", partitions=[])) == {"staff"}


def test_the_labs_rule_lets_low_risk_in_and_says_so(cast: Cast) -> None:
    assert _register(cast, cast.colleague, name="okafor-before").status == Agent.Status.REQUESTED
    _switch_on(cast)
    agent = _register(cast, cast.colleague)
    assert agent.status == Agent.Status.ACTIVE
    approval = AgentApproval.objects.get(agent=agent)
    assert (approval.kind, approval.by, approval.by_rule) == ("lab", cast.pi, True)
    row = AuditEvent.objects.get(verb="agent.approve", object_id=str(agent.pk))
    assert row.payload["after"]["by_rule_of"] == "pi" and row.actor_kind == "system"
    assert AuditEvent.objects.filter(verb="lab.rule_on", actor_label="pi").count() == 1
    assert [hold.code for hold in selectors.holds_on_agent(agent)] == ["aup_required"]


def test_the_rule_lets_nothing_else_in(cast: Cast, settings: Settings) -> None:
    _switch_on(cast)
    high = _register(cast, cast.colleague, autonomy="unattended", partitions=["gpu"])
    assert selectors.approvals_missing(high) == {"lab", "staff"}
    settings.STAFF_APPROVE_FROM = 9  # staff look at little: what is not of the standard tier is the PI's still
    other = _register(cast, cast.colleague, name="okafor-two", autonomy="unattended", partitions=["gpu"])
    assert selectors.approvals_missing(other) == {"lab"}


def test_the_rule_ends_with_who_switched_it_on(cast: Cast) -> None:
    _switch_on(cast)
    LabMembership.objects.filter(user=cast.pi).update(role="member")
    assert _register(cast, cast.colleague).status == Agent.Status.REQUESTED


@pytest.mark.parametrize("who", ["manager", "colleague", "staff", "outsider"])
def test_only_the_pi_sets_the_rule(cast: Cast, who: str) -> None:
    with pytest.raises(NotAllowed):
        principal_services.set_low_risk_rule(actor=factories.actor_of(getattr(cast, who)), lab=cast.lab, on=True)
    assert not Lab.objects.exclude(low_risk_rule_by=None).exists()


def test_switching_it_twice_is_one_change(cast: Cast) -> None:
    _switch_on(cast)
    _switch_on(cast)
    assert AuditEvent.objects.filter(verb="lab.rule_on").count() == 1
