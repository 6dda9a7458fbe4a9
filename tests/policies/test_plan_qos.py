"""`manage.py plan_qos`: names where a stopped agent's trials could be withdrawn in Slurm, and touches nothing."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command

from policies.engine.qos_withdrawal import Standing, plan_withdrawal
from portal.core import clock
from principals.models import Association
from principals.services import kill_switches
from tests import factories
from tests.conftest import Cast

WHERE = ["sacctmgr", "-i", "modify", "user", "where", "name=colleague", "account=okafor_lab", "cluster=aster"]


def planned() -> list[dict[str, object]]:
    out = StringIO()
    call_command("plan_qos", stdout=out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.fixture
def association(cast: Cast) -> Association:
    account = cast.lab.accounts.get()
    user = factories.make_cluster_user(cast.cluster, cast.colleague)
    return Association.objects.create(cluster_user=user, account=account, qos=["normal", "trial"])


def stop(cast: Cast):
    target = kill_switches.find_target("agent", cast.agent.name)
    until = clock.now() + timedelta(hours=1)
    return kill_switches.pull(actor=factories.actor_of(cast.staff), target=target, reason="Loops.", until=until)


@pytest.mark.django_db
def test_it_is_planned_while_the_switch_stands(cast: Cast, association: Association) -> None:
    assert planned() == []
    switch = stop(cast)
    (line,) = planned()
    assert (line["stands"], line["qos"]) == (["normal", "trial"], "trial")
    assert line["withdraw"] == [*WHERE, "set", "qos-=trial"]
    assert line["restore"] == [*WHERE, "set", "qos+=trial"]
    kill_switches.end(actor=factories.actor_of(cast.staff), switch=switch, reason="Over.")
    assert planned() == []


@pytest.mark.django_db
def test_what_another_agent_shares_is_left(cast: Cast, association: Association) -> None:
    factories.make_agent(cast.lab, cast.colleague, "okafor-other")
    stop(cast)
    assert [(line["left"], "withdraw" in line) for line in planned()] == [
        ("Agents that nobody stopped share it: 1.", False)
    ]


@pytest.mark.parametrize(
    ("at", "why"),
    [
        (Standing("aster", "u1", "side", "", ("normal",)), "does not stand"),
        (Standing("aster", "u1", "side", "", ("trial",)), "only one"),
        (Standing("aster", "u1,root", "side", "", ("normal", "trial")), "characters"),
        (Standing("aster", "u1", "side", "p set adminlevel=admin", ("normal", "trial")), "characters"),
        (Standing("aster", "-i", "side", "", ("normal", "trial")), "characters"),
    ],
    ids=["not there", "the only one", "two users", "words in a partition", "an option"],
)
def test_what_is_unsafe_is_left(at: Standing, why: str) -> None:
    plan = plan_withdrawal(at, "trial", others=0)
    assert why in plan.left and not plan.withdraw and not plan.restore
