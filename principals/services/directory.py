"""Names that telemetry brings: clusters, login names, Slurm accounts and the labs that pay for them."""

import re
from collections.abc import Iterable, Mapping

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from portal.core import audit
from portal.core.errors import Invalid
from principals import permissions
from principals.actors import Actor
from principals.models import Cluster, ClusterUser, Lab, LabMembership, SlurmAccount, User

_LOGIN = re.compile(r"[\w.-]{1,64}")
_CLUSTER = re.compile(r"[A-Za-z0-9_-]{1,40}")
ROLE_COLUMNS = {"staff": "is_research_computing", "infosec": "is_infosec", "auditor": "is_auditor"}


def require_cluster_name(name: str) -> None:
    """Raise `Invalid` unless a cluster may have that name."""
    if not _CLUSTER.fullmatch(name):
        raise Invalid(
            "A cluster's name has 1 to 40 letters, digits, - and _.", code="cluster_name_invalid",
            remedy="Name the cluster as Slurm's ClusterName does.",
        )  # fmt: skip


def ensure_cluster(name: str, *, is_demo: bool = False) -> Cluster:
    """Return the cluster of that name, made on first use. Errors: `Invalid`.

    In any case it is the same one, as it is to Slurm (slurm.conf(5), ClusterName): two would count every job twice.
    """
    require_cluster_name(name)
    if known := Cluster.objects.named(name).first():
        return known
    try:
        with transaction.atomic():
            return Cluster.objects.create(name=name, is_demo=is_demo)
    except IntegrityError:  # somebody else did, perhaps in another case
        return Cluster.objects.named(name).get()


class Directory:
    """Row ids of the names on one cluster, made on first use and remembered: a look-up per name, not per job.

    An account seen for the first time gets a lab of its own name, which people can be added to later. What it made in
    a transaction that was rolled back it still remembers: throw it away with the transaction.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._users: dict[str, int] = dict(cluster.cluster_users.values_list("login", "id"))
        self._accounts: dict[str, tuple[int, int]] = {
            name: (pk, lab) for name, pk, lab in cluster.accounts.values_list("name", "id", "lab_id")
        }
        self._labs: dict[str, int] = dict(Lab.objects.values_list("name", "id"))

    def user_id(self, login: str) -> int:
        """Return the id of a login name (`ClusterUser`), tied to the person who signs in under it, if any."""
        known = self._users.get(login)
        if known is None:
            person = User.objects.filter(username=login).first()
            row, _ = ClusterUser.objects.get_or_create(cluster=self.cluster, login=login, defaults={"user": person})
            known = self._users[login] = row.pk
        return known

    def learn_logins(self, logins: Iterable[str]) -> None:
        """Look many login names up at once, and make those that are new: a few queries, however many they are."""
        new = [login for login in dict.fromkeys(logins) if login not in self._users]
        if not new:
            return
        people = dict(User.objects.filter(username__in=new).values_list("username", "pk"))
        rows = (ClusterUser(cluster=self.cluster, login=login, user_id=people.get(login)) for login in new)
        ClusterUser.objects.bulk_create(rows, ignore_conflicts=True)  # somebody else may have made some meanwhile
        self._users |= dict(self.cluster.cluster_users.filter(login__in=new).values_list("login", "pk"))

    def lab_id(self, name: str) -> int:
        """Return the id of the lab of that name."""
        known = self._labs.get(name)
        if known is None:
            lab, _ = Lab.objects.get_or_create(name=name, defaults={"title": name, "is_demo": self.cluster.is_demo})
            known = self._labs[name] = lab.pk
        return known

    def account_ids(self, name: str, *, lab: str = "") -> tuple[int, int]:
        """Return (account id, lab id) of a Slurm account; one seen for the first time belongs to `lab` where named."""
        known = self._accounts.get(name)
        if known is None:
            row, _ = SlurmAccount.objects.get_or_create(
                cluster=self.cluster, name=name, defaults={"lab_id": self.lab_id(lab or name)}
            )
            known = self._accounts[name] = (row.pk, row.lab_id)
        return known


def add_lab_member(*, actor: Actor, lab: Lab, user: User, role: str) -> LabMembership:
    """Give a person a place in a lab, or change it."""
    permissions.require(actor, "lab.manage", lab)
    with transaction.atomic():
        membership, _ = LabMembership.objects.update_or_create(lab=lab, user=user, defaults={"role": role})
        audit.record(
            actor=actor.ref, verb="lab.add_member", object_kind="lab", object_id=lab.pk, object_label=lab.name,
            lab_id=lab.pk, after={"user": user.username, "role": role},
        )  # fmt: skip
    return membership


def ensure_lab(*, actor: Actor, name: str) -> Lab:
    """Return the lab of that name, made on first use."""
    permissions.require(actor, "facility.run")
    lab, new = Lab.objects.get_or_create(name=name, defaults={"title": name})
    if new:
        audit.record(
            actor=actor.ref, verb="lab.create", object_kind="lab", object_id=lab.pk, object_label=lab.name,
            lab_id=lab.pk,
        )  # fmt: skip
    return lab


def set_low_risk_rule(*, actor: Actor, lab: Lab, on: bool) -> bool:
    """Switch on or off that a lab lets agents of low risk of its members in by itself; say whether that changed it.

    Only its PI does: their name stands under each approval by the rule, which holds while they are the lab's PI.
    """
    permissions.require(actor, "lab.set_rule", lab, remedy="Ask the lab’s PI.")
    by = actor.user if on else None
    with transaction.atomic():
        changed = Lab.objects.filter(pk=lab.pk).exclude(low_risk_rule_by=by).update(low_risk_rule_by=by)
        if changed:
            audit.record(
                actor=actor.ref, verb="lab.rule_on" if on else "lab.rule_off", object_kind="lab", object_id=lab.pk,
                object_label=lab.name, lab_id=lab.pk, after={"approves_agents_of_low_risk": on},
            )  # fmt: skip
    lab.low_risk_rule_by = by
    return bool(changed)


def add_person(
    *, actor: Actor, login: str, email: str = "", password: str | None = None, roles: Mapping[str, bool]
) -> User:
    """Add a person, or set those roles of one who is known that are named; their logins on clusters become theirs.

    A password is set only where given. Errors: `Invalid` for a login name or password that will not do.
    """
    permissions.require(actor, "facility.run")
    if not _LOGIN.fullmatch(login):
        raise Invalid("A login name has 1 to 64 letters, digits, `.`, `_`, `-`.", code="login_malformed")
    with transaction.atomic():
        user = User.objects.filter(username=login).first() or User.objects.create_user(login)
        user.email = email or user.email
        for role, held in roles.items():
            setattr(user, role, held)
        # What is said by hand is by hand from now on, whatever groups said before.
        user.roles_from_groups = [role for role in user.roles_from_groups if ROLE_COLUMNS[role] not in roles]
        if password is not None:
            _set_password(user, password)
        user.save(update_fields=["email", "password", "roles_from_groups", *roles])
        ClusterUser.objects.filter(login=login, user=None).update(user=user)
        audit.record(
            actor=actor.ref, verb="person.add", object_kind="user", object_id=user.pk, object_label=login,
            after=dict(roles),
        )  # fmt: skip
    return user


def set_person_active(*, actor: Actor, user: User, active: bool) -> bool:
    """Switch a person's account on or off; say whether that changed it.

    Off ends their sessions, sockets and agents' tokens: each looks at it when it is used, sockets within seconds.
    """
    permissions.require(actor, "facility.run")
    with transaction.atomic():
        changed = bool(User.objects.filter(pk=user.pk, is_active=not active).update(is_active=active))
        if changed:
            audit.record(
                actor=actor.ref, verb="person.switch_on" if active else "person.switch_off", object_kind="user",
                object_id=user.pk, object_label=user.username,
            )  # fmt: skip
    user.is_active = active
    return changed


def _set_password(user: User, password: str) -> None:
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Invalid(" ".join(error.messages), code="password_weak") from error
    user.set_password(password)
