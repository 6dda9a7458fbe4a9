"""Labs, their people and accounts from a file: added and changed, never taken away."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from portal.core import audit
from portal.core.errors import DomainError
from principals import permissions
from principals.actors import Actor
from principals.engine.lab_csv import LabLine
from principals.models import Cluster, ClusterUser, Lab, LabMembership, SlurmAccount, User
from principals.services.directory import add_lab_member, add_person, ensure_cluster, ensure_lab

LONGEST_EMAIL: Final = 254  # that a row keeps; Django's validator lets 320 pass


class ImportedLine(NamedTuple):
    """What became of a line: `changed`, `unchanged` or `refused`, and what was done or why not."""

    number: int
    outcome: str
    words: str


def import_labs(
    *, actor: Actor, lines: Iterable[LabLine], cluster_name: str = "", dry_run: bool = False
) -> list[ImportedLine]:
    """Write what a file says of labs, line by line; a line that is refused leaves the others as they are.

    Doing it again changes nothing. With `dry_run` all of it is tried and nothing is kept. Accounts are tied to their
    lab, and login names to their people, where `cluster_name` says on which cluster they are.
    """
    permissions.require(actor, "facility.run")
    with transaction.atomic():
        cluster = ensure_cluster(cluster_name) if cluster_name else None
        done = [_import(actor, line, cluster) for line in lines]
        if dry_run:
            transaction.set_rollback(True)
    return done


def _import(actor: Actor, line: LabLine, cluster: Cluster | None) -> ImportedLine:
    if line.fault:
        return ImportedLine(line.number, "refused", line.fault)
    try:
        with transaction.atomic():
            changes = list(_changes(actor, line, cluster))
    except DomainError as error:
        return ImportedLine(line.number, "refused", error.words)
    if not changes:
        return ImportedLine(line.number, "unchanged", line.lab)
    return ImportedLine(line.number, "changed", f"{line.lab}: {', '.join(changes)}")


def _changes(actor: Actor, line: LabLine, cluster: Cluster | None) -> Iterator[str]:
    known = Lab.objects.filter(name=line.lab).exists()
    lab = ensure_lab(actor=actor, name=line.lab)
    if not known:
        yield "new lab"
    if line.title and lab.title != line.title:
        before, lab.title = lab.title, line.title
        lab.save(update_fields=["title"])
        audit.record(
            actor=actor.ref, verb="lab.rename", object_kind="lab", object_id=lab.pk, object_label=lab.name,
            lab_id=lab.pk, before={"title": before}, after={"title": line.title},
        )  # fmt: skip
        yield f"titled {line.title}"
    if line.account and cluster is not None:
        yield from _tie(actor, lab, cluster, line.account)
    if line.pi:
        yield from _place(actor, lab, line.pi, LabMembership.Role.PI, line.email if line.pi == line.login else "")
        yield from _name_on(actor, cluster, line.pi)
    if line.login and line.login != line.pi:  # ColdFront has a project's PI among its managers, too
        yield from _place(actor, lab, line.login, line.role, line.email)
        yield from _name_on(actor, cluster, line.login)


def _tie(actor: Actor, lab: Lab, cluster: Cluster, name: str) -> Iterator[str]:
    account, new = SlurmAccount.objects.get_or_create(cluster=cluster, name=name, defaults={"lab": lab})
    # An account that Slurm told of first has a lab of its own name, of which nobody knows anything yet.
    untouched = account.lab.name == name and not account.lab.memberships.exists() and not account.lab.agents.exists()
    if not new and account.lab_id != lab.pk and untouched:
        account.lab, new = lab, True
        account.save(update_fields=["lab"])
    if new:
        audit.record(
            actor=actor.ref, verb="lab.tie_account", object_kind="lab", object_id=lab.pk, object_label=lab.name,
            lab_id=lab.pk, after={"cluster": cluster.name, "account": name},
        )  # fmt: skip
        yield f"account {name}"
    elif account.lab_id != lab.pk:
        yield f"account {name} stays with {account.lab.name}"


def _name_on(actor: Actor, cluster: Cluster | None, login: str) -> Iterator[str]:
    """Tie the login name on the cluster to its person, as the first job under it would: agents check in under it.

    One that is somebody else's stays theirs: jobs were counted, and agents answered for, under it.
    """
    if cluster is None:
        return
    person = User.objects.get(username=login)
    name, new = ClusterUser.objects.get_or_create(cluster=cluster, login=login, defaults={"user": person})
    if new or (name.user_id is None and ClusterUser.objects.filter(pk=name.pk, user=None).update(user=person)):
        audit.record(
            actor=actor.ref, verb="person.tie_login", object_kind="user", object_id=person.pk, object_label=login,
            after={"cluster": cluster.name, "login": login},
        )  # fmt: skip
        yield f"{login} on {cluster.name}"
    elif name.user_id not in (None, person.pk):
        yield f"{login} on {cluster.name} stays {name.user}’s"


def _place(actor: Actor, lab: Lab, login: str, role: str, email: str) -> Iterator[str]:
    user = User.objects.filter(username=login).first()
    if user is None:
        user = add_person(actor=actor, login=login, email=_address(email), roles={})
        yield f"new person {login}"
    held = LabMembership.objects.filter(lab=lab, user=user).values_list("role", flat=True).first()
    if held != role:
        add_lab_member(actor=actor, lab=lab, user=user, role=role)
        yield f"{login} is its {role}" + (f", was {held}" if held else "")


def _address(email: str) -> str:
    try:
        validate_email(email)
    except ValidationError:
        return ""
    return email if len(email) <= LONGEST_EMAIL else ""
