"""The demo's people, labs and Slurm names as rows. No service makes these: at a site they come from its directory."""

from django.contrib.auth.hashers import make_password

from portal.core import audit
from portal.core.rows import create_rows
from portal.demo import cast
from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR
from principals.models import Association, Cluster, ClusterUser, Lab, LabMembership, SlurmAccount, User

_ROLES = (LabMembership.Role.PI, LabMembership.Role.MANAGER)
_QOS = ["normal", "long", "trial"]


def make_people() -> Cluster:
    """Make cluster, people, labs, accounts and associations, all marked demo; return the cluster."""
    cluster = principal_services.ensure_cluster(cast.CLUSTER, is_demo=True)
    users = _make_users()
    labs = _make_labs(users)
    accounts = create_rows(
        SlurmAccount,
        (SlurmAccount(cluster=cluster, name=plan.account, lab=labs[plan.name]) for plan in cast.LABS),
    )
    account_of = {account.name: account for account in accounts}
    logins = create_rows(
        ClusterUser, (ClusterUser(cluster=cluster, login=login, user=users[login]) for login in cast.LAB_OF)
    )
    Association.objects.bulk_create(
        Association(cluster_user=row, account=account_of[cast.LAB_OF[row.login].account], qos=_QOS, is_default=True)
        for row in logins
    )
    audit.record(
        actor=SYSTEM_ACTOR.ref, verb="demo.load", object_kind="cluster", object_id=cluster.pk,
        object_label=cluster.name, after={"people": len(users), "labs": len(labs)},
    )  # fmt: skip
    return cluster


def _make_users() -> dict[str, User]:
    nobody, everybody = make_password(None), make_password(cast.PASSWORD)
    users = create_rows(
        User,
        (
            User(
                username=login, is_demo=True, password=everybody if login in cast.LOGINS else nobody,
                is_research_computing=login == cast.STAFF, is_infosec=login in cast.INFOSEC_TEAM,
                is_auditor=login == cast.AUDITOR,
            )
            for login in (*cast.OFFICERS, *cast.LAB_OF)
        ),
    )  # fmt: skip
    return {user.username: user for user in users}


def _make_labs(users: dict[str, User]) -> dict[str, Lab]:
    made = create_rows(Lab, (Lab(name=plan.name, title=plan.title, is_demo=True) for plan in cast.LABS))
    labs = {lab.name: lab for lab in made}
    LabMembership.objects.bulk_create(
        LabMembership(
            lab=labs[plan.name], user=users[login],
            role=_ROLES[place] if place < len(_ROLES) else LabMembership.Role.MEMBER,
        )
        for plan in cast.LABS
        for place, login in enumerate(plan.people)
    )  # fmt: skip
    return labs
