"""Giving out, and erasing, what is held about a person."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from django.apps import apps
from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction

from portal.core import audit, clock
from portal.core.errors import Conflict
from portal.rights.inventory import BY_SLUG, INVENTORY, Holding, OnErase
from portal.rights.not_keyed import LABELS
from principals import permissions
from principals import services as principal_services
from principals.actors import Actor
from principals.models import Agent, ClusterUser, KillSwitch, User
from security.models import Incident
from telemetry.models import Job

ERASED: Final = "The person was erased."
_encoder = DjangoJSONEncoder(ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Held:
    """How many rows of a table are about a person."""

    holding: Holding
    count: int


def held_about(person: User) -> list[Held]:
    """Count what is held about a person, table by table: a query each."""
    return [Held(holding, holding.rows(person).count()) for holding in INVENTORY]


def export(person: User, *, table: str = "") -> Iterator[str]:
    """Yield the pieces of a JSON text with all that is held about a person; of one table where its slug is given."""
    chosen = [BY_SLUG[table]] if table else list(INVENTORY)
    head = {"person": person.username, "at": clock.now(), "format": "gatehouse-subject-1"}
    yield f'{_encoder.encode(head)[:-1]}, "tables": ['
    for number, holding in enumerate(chosen):
        said = {"table": holding.table, "purpose": holding.purpose, "kept": holding.kept,
                "on_erasure": str(holding.on_erase)}  # fmt: skip
        yield f'{"," if number else ""}\n{_encoder.encode(said)[:-1]}, "rows": ['
        for at, row in enumerate(holding.records(person)):
            yield f"{',' if at else ''}\n{_encoder.encode(_plain(row))}"
        yield "]}"
    yield "\n]}\n"


def _plain(row: dict[str, object]) -> dict[str, object]:
    return {name: bytes(value).hex() if isinstance(value, bytes | memoryview) else value for name, value in row.items()}


def pseudonym(person: User) -> str:
    """Return the name that stands for a person after an erasure."""
    return f"erased-{person.pk}"


def _agent_pseudonym(agent: Agent) -> str:
    return f"erased-agent-{agent.pk}"


def _new_logins(person: User) -> list[tuple[ClusterUser, str]]:
    """Return the login names that are to be, one of each cluster the pseudonym itself."""
    seen: Counter[int] = Counter()
    new = []
    for login in ClusterUser.objects.filter(user=person).order_by("pk"):
        seen[login.cluster_id] += 1
        number = seen[login.cluster_id]
        new.append((login, pseudonym(person) + (f"-{number}" if number > 1 else "")))
    return new


def _find_taken(person: User) -> str:
    """Return a name that an erasure would give and that somebody else has, "" where there is none."""
    if User.objects.filter(username=pseudonym(person)).exists():
        return pseudonym(person)
    for login, name in _new_logins(person):
        others = ClusterUser.objects.filter(cluster=login.cluster_id, login=name)
        if others.exclude(user=person).exists():
            return name
    names = {_agent_pseudonym(agent) for agent in Agent.objects.filter(owner=person)}
    return Agent.objects.filter(name__in=names).exclude(owner=person).values_list("name", flat=True).first() or ""


def require_erasable(person: User) -> None:
    """Refuse an erasure that would not hold.

    Errors: `jobs_running`, `incident_open`, `last_pi`, `erased`, `pseudonym_taken`.
    """
    if person.username == pseudonym(person):
        raise Conflict("This person is erased already.", code="erased")
    if taken := _find_taken(person):
        raise Conflict(
            f"{taken} is somebody else’s name, and would be the pseudonym.", code="pseudonym_taken",
            remedy="Rename that one first, then try again.",
        )  # fmt: skip
    if Job.objects.filter(cluster_user__user=person, end=None).exists():
        raise Conflict(
            "Jobs of theirs wait or run: the reader would name them again.", code="jobs_running",
            remedy="Close the login name in Slurm, wait until their jobs ended, then try again.",
        )  # fmt: skip
    concerned = Incident.objects.open().filter(cluster_user__user=person) | Incident.objects.open().filter(
        agent__owner=person
    )
    if concerned.exists():
        raise Conflict(
            "An incident that concerns them is open.", code="incident_open", remedy="Close it, then try again."
        )
    for place in person.memberships.filter(role="pi").select_related("lab"):
        if not place.lab.memberships.filter(role="pi").exclude(user=person).exists():
            raise Conflict(
                f"They are the only PI of {place.lab}.", code="last_pi", remedy="Give the lab another PI first."
            )


@dataclass(frozen=True, slots=True)
class Step:
    """What an erasure does to one table: to how many rows what, and how many stay under the pseudonym."""

    holding: Holding
    touched: int
    kept: int


def plan(person: User) -> list[Step]:
    """Return what an erasure would do, and do nothing."""
    steps = []
    for holding in INVENTORY:
        rows, own = holding.rows(person).count(), holding.own_rows(person).count()
        deletes = holding.on_erase is OnErase.DELETE
        touched = own if deletes or (holding.blank and holding.on_erase is OnErase.KEEP) else 0
        steps.append(Step(holding, touched, rows - (own if deletes else 0)))
    return [step for step in steps if step.touched or step.kept]


def erase(*, actor: Actor, person: User, reason: str) -> list[Step]:
    """Erase a person: what accounting and proof need stays under a pseudonym, the rest is deleted. In one transaction.

    Their account is closed and their agents retired. Of the audit trail the contents go and the chain still verifies;
    its fixed columns, of which the chain is made, keep the login name. Errors: as `require_erasable`.
    """
    permissions.require(actor, "facility.run")
    with transaction.atomic():
        person = User.objects.select_for_update(no_key=True).get(pk=person.pk)
        require_erasable(person)
        done = plan(person)
        was, name = person.username, pseudonym(person)
        for event in _audited(person):
            audit.erase_payload(event, actor=actor.ref, reason=ERASED)
        _retire_agents(actor, person)
        for holding in INVENTORY:
            if holding.on_erase is OnErase.DELETE:
                holding.own_rows(person).delete()
            elif holding.on_erase is OnErase.KEEP and holding.blank:
                holding.own_rows(person).update(**holding.blank)
        _rename(person, was, name)
        audit.record(
            actor=actor.ref, verb="person.erase", object_kind="user", object_id=person.pk, object_label=name,
            after={"tables": {step.holding.table: [step.touched, step.kept] for step in done}}, reason=reason,
        )  # fmt: skip
    return done


def _audited(person: User) -> list[int]:
    return list(BY_SLUG["core-auditevent"].rows(person).exclude(payload=None).values_list("pk", flat=True))


def _retire_agents(actor: Actor, person: User) -> None:
    for agent in Agent.objects.filter(owner=person):
        agent.name, agent.purpose = _agent_pseudonym(agent), ERASED
        agent.save(update_fields=["name", "purpose"])
        if agent.status != Agent.Status.RETIRED:
            principal_services.retire_agent(actor=actor, agent=agent, reason=ERASED)


def _rename(person: User, was: str, name: str) -> None:
    """Put the pseudonym wherever the login name stands as a key or a label."""
    for label, column in LABELS:
        apps.get_model(label)._base_manager.filter(**{column: was}).update(**{column: name})
    on_them = KillSwitch.objects.filter(target_kind__in=("user", "owner"), target_id=person.pk)
    for switch in on_them:  # the name as a word: a short one stands in others
        label = re.sub(rf"(?<![\w-]){re.escape(was)}(?![\w-])", name, switch.target_label)
        on_them.filter(pk=switch.pk).update(target_label=label[:200])
    for login, new in _new_logins(person):
        ClusterUser.objects.filter(pk=login.pk).update(login=new)
    person.username, person.full_name, person.email = name, "", ""
    person.is_active = person.is_superuser = False
    person.is_research_computing = person.is_infosec = person.is_auditor = False
    person.roles_from_groups, person.last_login = [], None
    person.set_unusable_password()
    person.save()
