"""What people are told of holds, agents that wait, and tokens that end."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from portal.core import clock
from principals import selectors
from principals.engine.harnesses import harness_name
from principals.models import (
    Agent,
    AgentApproval,
    AgentHandover,
    AgentToken,
    Hold,
    Lab,
    LabMembership,
    NoticePreference,
    User,
)
from principals.permissions import MANAGING_ROLES
from principals.services.notices.writing import notify

TOKEN_WITHIN: Final = timedelta(days=7)  # of its end
_PEOPLE: Final[dict[str, str]] = {Hold.Subject.USER: Hold.Subject.USER, Hold.Subject.OWNER: Hold.Subject.USER}


def local_time(at: datetime) -> str:
    """Write an instant as the facility's people read it."""
    return f"{at.astimezone(ZoneInfo(settings.FACILITY_TIME_ZONE)):%Y-%m-%d %H:%M %Z}"


def subscribers(kind: str) -> list[int]:
    """Return who asked for a kind that is off by itself."""
    asked = NoticePreference.objects.filter(kind=kind).exclude(mailed=NoticePreference.Mailed.OFF)
    return list(asked.order_by("person_id").values_list("person_id", flat=True))


def tell_of_hold(hold: Hold, *, placed: bool, reason: str) -> int:
    """Tell the owners and PIs of the agents that a hold stops; return how many were told. Called in its transaction.

    A hold of the acceptable use is told by its own reminders (`aup_due`), and lifted by the person's own yes.
    """
    if hold.kind == Hold.Kind.AUP or hold.subject_kind == Hold.Subject.SERVICE:
        return 0
    what = subject_words(hold)
    if placed:
        until = f"It ends by itself on {local_time(hold.until)}." if hold.until else "It has no end."
        lift = f"What would lift it: {hold.remedy}" if hold.remedy else ""
        lines = [
            hold.reason,
            lift,
            until,
            "Jobs in Slurm go on. If it is wrong, appeal it under What is held about you.",
        ]
        kind, title = "hold_placed", f"Stopped: {what}"
    else:
        lines = [reason, "Another hold may still stand; the agent’s page says so."]
        kind, title = "hold_lifted", f"A hold was lifted: {what}"
    text = "\n".join(line for line in lines if line)
    return notify(people=people_of_hold(hold), kind=kind, title=title, text=text, url=_url_of(hold))


def people_of_hold(hold: Hold) -> set[int]:
    """Return whom a hold concerns: who answers for the agents it stops, the PIs of their labs, the person it is on."""
    agents = selectors.agents_at(hold.place)
    labs = set(agents.values_list("lab_id", flat=True))
    people = set(agents.values_list("owner_id", flat=True))
    if hold.subject_kind == Hold.Subject.LAB:
        labs.add(hold.subject_id)
    if hold.subject_kind in (Hold.Subject.USER, Hold.Subject.OWNER):
        people.add(hold.subject_id)
    heads = LabMembership.objects.filter(lab__in=labs, role=LabMembership.Role.PI)
    return people | set(heads.values_list("user_id", flat=True))


def subject_words(hold: Hold) -> str:
    """Say what a hold is on, as people call it."""
    return subjects_in_words([hold])[hold.pk]


def subjects_in_words(holds: Collection[Hold]) -> dict[int, str]:
    """Say for each of some holds (ids) what it is on, as people call it: three queries at most."""
    on = defaultdict[str, set[int]](set)
    for hold in holds:
        on[_PEOPLE.get(hold.subject_kind, hold.subject_kind)].add(hold.subject_id)
    names = {kind: dict(rows.filter(pk__in=on[kind]).values_list("pk", name)) if on[kind] else {}
             for kind, rows, name in _named()}  # fmt: skip
    return {hold.pk: _in_words(hold, names) for hold in holds}


def _named() -> list[tuple[str, QuerySet[Any], str]]:
    kinds = Hold.Subject
    return [
        (kinds.AGENT, Agent.objects.all(), "name"),
        (kinds.USER, User.objects.all(), "username"),
        (kinds.LAB, Lab.objects.all(), "title"),
    ]


def _in_words(hold: Hold, names: Mapping[str, Mapping[int, str]]) -> str:
    kind = hold.subject_kind
    name = names.get(_PEOPLE.get(kind, kind), {}).get(hold.subject_id)
    if kind == Hold.Subject.AGENT:
        return name or "an agent"
    if kind in _PEOPLE:
        return f"{'the account' if kind == Hold.Subject.USER else 'the agents'} of {name}"
    if kind == Hold.Subject.LAB:
        return f"the agents of {name}"
    return f"agents on {harness_name(hold.subject_name)}" if kind == Hold.Subject.HARNESS else "every agent"


def _url_of(hold: Hold) -> str:
    if hold.subject_kind != Hold.Subject.AGENT:
        return "/agents/"
    agent = Agent.objects.filter(pk=hold.subject_id).first()
    return agent.get_absolute_url() if agent else "/agents/"


def tell_of_waiting(agent: Agent) -> int:
    """Tell the PIs and managers of its lab that an agent waits for them, after their yes staff; return how many."""
    by_lab = AgentApproval.Kind.LAB in selectors.approvals_missing(agent)
    heads = LabMembership.objects.filter(lab=agent.lab_id, role__in=MANAGING_ROLES).values_list("user_id", flat=True)
    staff = User.objects.filter(is_research_computing=True).values_list("pk", flat=True)
    return notify(
        people=heads if by_lab else staff, kind="agent_waiting",
        key=f"agent_waiting:{agent.pk}{'' if by_lab else ':staff'}",
        title=f"{agent.name} waits for your approval", url=agent.get_absolute_url(),
        text=f"{agent.owner.username} registered it in {agent.lab.title}. What it is for: {agent.purpose}",
    )  # fmt: skip


def tell_of_approval(agent: Agent) -> int:
    """Tell an agent's owner that every approval is given; return how many were told."""
    return notify(
        people=[agent.owner_id], kind="agent_approved", key=f"agent_approved:{agent.pk}",
        title=f"{agent.name} is approved", url=agent.get_absolute_url(), text="Make its token on its page.",
    )  # fmt: skip


def tell_of_ending_registration(*, agent: Agent, days: int) -> int:
    """Tell an agent's owner that its registration ends in so many days; on the last its PIs as well. Once a step."""
    people = {agent.owner_id}
    if days <= 1:
        heads = LabMembership.objects.filter(lab=agent.lab_id, role=LabMembership.Role.PI)
        people |= set(heads.values_list("user_id", flat=True))
    return notify(
        people=people, kind="agent_ending", key=f"agent_ending:{agent.pk}:{agent.expires:%Y%m%d}:{days}",
        title=f"{agent.name} ends on {local_time(agent.expires)}", url=agent.get_absolute_url(),
        text="Its tokens die with it. Renew it on its page, or let it end.",
    )  # fmt: skip


def tell_of_asked_handover(handover: AgentHandover) -> int:
    """Tell both sides and the PIs of its lab that an agent is to pass to somebody else; return how many were told."""
    agent, taker, sides = handover.agent, handover.taker.username, (handover.giver, handover.taker)
    agreed = (handover.giver_agreed, handover.taker_agreed)
    waits = " and ".join(side.username for side, yes in zip(sides, agreed, strict=True) if not yes)
    return notify(
        people=_people_of_handover(handover), kind="handover_asked", key=f"handover_asked:{handover.pk}",
        title=f"{agent.name} is to pass to {taker}", url=agent.get_absolute_url(),
        text=f"{handover.asked_by.username} asked that {taker} answers for it instead of {handover.giver.username}.\n"
        f"It waits for {waits}. Agree or decline on its page.",
    )  # fmt: skip


def tell_of_settled_handover(handover: AgentHandover) -> int:
    """Tell the same people that an agent passed, or that it stays; return how many were told."""
    agent, giver, taker = handover.agent, handover.giver.username, handover.taker.username
    if handover.state == AgentHandover.State.DONE:
        title = f"{taker} answers for {agent.name} now"
        text = f"{giver} did before. Its tokens ended, and it is held until the policy is accepted for it anew."
    else:
        title, text = f"{agent.name} stays with {giver}", f"That it passes to {taker} was declined or withdrawn."
    return notify(
        people=_people_of_handover(handover), kind="handover_settled", key=f"handover_settled:{handover.pk}",
        title=title, url=agent.get_absolute_url(), text=text,
    )  # fmt: skip


def _people_of_handover(handover: AgentHandover) -> set[int]:
    heads = LabMembership.objects.filter(lab=handover.agent.lab_id, role=LabMembership.Role.PI)
    return {handover.giver_id, handover.taker_id, *heads.values_list("user_id", flat=True)}


def tell_of_ending_tokens() -> int:
    """Tell owners of tokens that end within seven days, once each: of those that live longer than a week.

    Not of one that was rolled over, and not of logins, which end within the day.
    """
    now = clock.now()
    next_one = AgentToken.objects.filter(replaces=OuterRef("pk"), revoked_at=None)
    ending = AgentToken.objects.filter(  # those of logins and sub-agents end every day
        ~Exists(next_one),
        how=AgentToken.How.MADE,
        revoked_at=None,
        expires__gt=now,
        expires__lte=now + TOKEN_WITHIN,
        agent__status=Agent.Status.ACTIVE,
    )
    told = 0
    for token in ending.select_related("agent").iterator(chunk_size=500):
        if token.expires - token.created <= TOKEN_WITHIN:
            continue
        agent = token.agent
        label = f" ({token.label})" if token.label else ""
        with transaction.atomic():
            told += notify(
                people=[agent.owner_id], kind="token_ending", key=f"token_ending:{token.key}",
                title=f"A token of {agent.name} ends on {local_time(token.expires)}", url=agent.get_absolute_url(),
                text=f"Token {token.key}{label}. Make a new one on the agent’s page before; both work until then.",
            )  # fmt: skip
    return told
