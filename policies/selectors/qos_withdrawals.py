"""Where Slurm could be told that trials of stopped agents are withdrawn: planned here, carried out by nobody here."""

from collections.abc import Iterator

from policies.engine.qos_withdrawal import Standing, Withdrawal, plan_withdrawal
from policies.selectors.trials import policy_for
from principals import selectors as principal_selectors
from principals.models import Agent, Association, Hold

STOPS = frozenset({Hold.Kind.KILL_SWITCH.value, Hold.Kind.SUSPENSION.value})


def qos_withdrawals() -> Iterator[tuple[Standing, str, Withdrawal]]:
    """Yield each association of a stopped agent's owner and lab on which the QoS of trials stands, with its plan."""
    agents = list(Agent.objects.exclude(status=Agent.Status.RETIRED).select_related("lab"))
    holds = principal_selectors.holds_on_agents(agents)
    stopped = {agent.pk for agent in agents if STOPS & {str(hold.kind) for hold in holds[agent.pk]}}
    places = {(agent.owner_id, agent.lab_id): agent.lab for agent in agents if agent.pk in stopped}
    for (owner_id, lab_id), lab in sorted(places.items(), key=lambda each: each[0]):
        qos = policy_for(lab).qos
        sharing = [each for each in agents if (each.owner_id, each.lab_id) == (owner_id, lab_id)]
        others = sum(each.pk not in stopped and each.status == Agent.Status.ACTIVE for each in sharing)
        known = Association.objects.filter(cluster_user__user=owner_id, account__lab=lab_id, ended=None)
        for row in known.select_related("cluster_user__cluster", "account").order_by("pk"):
            if qos in row.qos:
                at = Standing(
                    row.cluster_user.cluster.name, row.cluster_user.login, row.account.name, row.partition,
                    tuple(row.qos),
                )  # fmt: skip
                yield at, qos, plan_withdrawal(at, qos, others=others)
