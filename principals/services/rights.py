"""Rights of the person behind an agent: appeals with a clock, and who opened what is held about whom."""

from datetime import timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q

from portal.core import audit, clock
from portal.core.errors import Conflict, Invalid, NotAllowed, NotFound
from principals import permissions, selectors
from principals.actors import Actor
from principals.engine.harnesses import harness_name
from principals.models import Agent, AgentSession, Appeal, DataAccess, Hold, User
from principals.services import agents, holds
from principals.services.notices.telling import local_time
from principals.services.notices.writing import notify, plain_text

MOST_WAITING = 20  # appeals of a person: each is told to the whole office
ANSWERS_AT = "/appeals/"
ASKED_AT = "/held/"


def file_hold_appeal(*, actor: Actor, hold: Hold, reason: str) -> Appeal:
    """Appeal a hold that concerns the person. Errors: `NotFound` for another's; `Invalid`; `Conflict` where one waits.

    A person who is held themselves may: it is what is left to them.
    """
    person = permissions.person_of(actor)
    if not selectors.holds_concerning(person).filter(pk=hold.pk).exists():
        raise NotFound("There is no such hold that concerns you.", code="hold_unknown")
    return _file(person, actor, reason, hold=hold, about=f"{hold.get_kind_display()}: {hold.reason}")


def file_label_appeal(*, actor: Actor, session: AgentSession, reason: str) -> Appeal:
    """Appeal that a session under one's login name is called an agent's, or this agent's. Errors: as for a hold."""
    person = permissions.person_of(actor)
    own = Q(cluster_user__user=person) | Q(agent__owner=person)
    if not AgentSession.objects.filter(own, pk=session.pk).exists():
        raise NotFound("There is no such session of yours.", code="session_unknown")
    label = harness_name(session.harness) if session.harness else session.get_kind_display()
    about = f"A session on {session.host} from {local_time(session.started)}, called {label}"
    return _file(person, actor, reason, session=session, about=about)


def _file(
    person: User, actor: Actor, reason: str, *, about: str, hold: Hold | None = None,
    session: AgentSession | None = None,
) -> Appeal:  # fmt: skip
    text = plain_text(reason)[:1000]
    if not text:
        raise Invalid("Say why it is wrong.", code="reason_missing", extra={"field": "reason"})
    if Appeal.objects.waiting().filter(person=person).count() >= MOST_WAITING:
        raise Conflict(
            f"{MOST_WAITING} appeals of yours wait for an answer.", code="appeals_many",
            remedy="Wait for an answer; what is left can be said in one appeal, too.",
        )  # fmt: skip
    now = clock.now()
    due = now + timedelta(days=settings.APPEAL_DAYS)
    try:
        with transaction.atomic():
            appeal = Appeal.objects.create(
                person=person, hold=hold, session=session, about=about[:200], reason=text, filed=now, due=due
            )
            _record(actor, appeal, "appeal.file", reason=text)
            notify(
                people=_office(), kind="appeal_filed", url=ANSWERS_AT,
                title=f"{person.username} appeals; an answer is due on {local_time(due)}", text=f"{about}\n{text}",
                key=f"appeal_filed:{appeal.pk}",
            )  # fmt: skip
    except IntegrityError as error:
        raise Conflict(
            "You appealed this already, and it waits for an answer.", code="appeal_waits",
            remedy="Wait for the answer; after it you can appeal anew.",
        ) from error  # fmt: skip
    return appeal


def tell_of_late_appeals() -> int:
    """Tell staff and InfoSec of each appeal that waits past its time, once; return how many were told."""
    return sum(
        notify(
            people=_office(), kind="appeal_filed", url=ANSWERS_AT, key=f"appeal_late:{late.pk}",
            title=f"The appeal of {late.person.username} waits past its time", text=f"{late.about}\n{late.reason}",
        )
        for late in Appeal.objects.waiting().filter(due__lte=clock.now()).select_related("person")
    )  # fmt: skip


def _office() -> list[int]:
    office = User.objects.filter(Q(is_research_computing=True) | Q(is_infosec=True))
    return list(office.values_list("pk", flat=True))


def answer_appeal(*, actor: Actor, appeal: Appeal, granted: bool, answer: str) -> Appeal:
    """Answer an appeal, as staff or InfoSec. Granting one of a hold that is in force lifts it.

    What is wrong with a label is mended by hand. Errors: `NotAllowed` to who filed it; `Conflict` where it is answered,
    or the hold is a kill switch's, which ends with its switch, or the policy's, which ends with its acceptance.
    """
    permissions.require(actor, "appeal.answer")
    person = permissions.person_of(actor)
    text = plain_text(answer)[:1000]
    if not text:
        raise Invalid("Say why.", code="answer_missing", extra={"field": "answer"})
    if appeal.person_id == person.pk:
        raise NotAllowed("Nobody answers their own appeal.", code="own_appeal", remedy="Ask a colleague.")
    state = Appeal.State.GRANTED if granted else Appeal.State.REFUSED
    with transaction.atomic():
        moved = Appeal.objects.filter(pk=appeal.pk, state=Appeal.State.OPEN).update(
            state=state, answer=text, answered=clock.now(), answered_by=person
        )
        if not moved:
            raise Conflict("Somebody answered this already.", code="appeal_answered", remedy="Load the page again.")
        appeal.refresh_from_db()
        if granted and appeal.hold is not None:
            _lift(actor, appeal.hold, text)
        _record(actor, appeal, "appeal.grant" if granted else "appeal.refuse", reason=text)
        notify(
            people=[appeal.person_id], kind="appeal_answered", url=ASKED_AT, key=f"appeal_answered:{appeal.pk}",
            title=f"Your appeal was {appeal.get_state_display().lower()}", text=f"{appeal.about}\n{text}",
        )  # fmt: skip
    return appeal


def _lift(actor: Actor, hold: Hold, reason: str) -> None:
    if not Hold.objects.in_force().filter(pk=hold.pk).exists():
        return
    if hold.kind == Hold.Kind.KILL_SWITCH:
        raise Conflict(
            "This hold is a kill switch’s: it ends with it.", code="kill_switch_in_force",
            remedy="End the switch on its page, then grant the appeal.",
        )  # fmt: skip
    if hold.kind == Hold.Kind.AUP:
        raise Conflict(
            "This hold ends when the policy is accepted: lifted by hand it would be placed again.",
            code="acceptance_missing", remedy="Refuse the appeal, and say who can accept the policy.",
        )  # fmt: skip
    agent = Agent.objects.filter(pk=hold.subject_id).first() if hold.subject_kind == Hold.Subject.AGENT else None
    if hold.kind == Hold.Kind.SUSPENSION and agent is not None and agent.status == Agent.Status.SUSPENDED:
        agents.resume_agent(actor=actor, agent=agent, reason=reason)
    else:
        holds.lift_hold(actor=actor, hold=hold, reason=reason)


def open_data(*, actor: Actor, person: User, by: str, what: str, purpose: str) -> DataAccess:
    """Note that somebody opens what is held about a named person, before they do. The person is told, and reads it.

    `by` names who asked where no account of the portal acts, as at the command line. Whoever reads their own leaves no
    row. Errors: `Invalid` without a purpose.
    """
    permissions.require(actor, "person.open_data")
    text = plain_text(purpose)[:500]
    if not text:
        raise Invalid(
            "Say what for: the person reads it.", code="purpose_missing",
            remedy="Give a purpose (on the command line: --purpose TEXT).",
        )  # fmt: skip
    with transaction.atomic():
        row = DataAccess.objects.create(
            person=person, by=actor.user, by_label=(by or actor.ref.label)[:150], what=what[:100], purpose=text
        )
        audit.record(
            actor=actor.ref, verb="person.open_data", object_kind="user", object_id=person.pk,
            object_label=person.username, after={"what": row.what, "by": row.by_label}, reason=text,
        )  # fmt: skip
        notify(
            people=[person.pk], kind="data_opened", url=ASKED_AT, key=f"data_opened:{row.pk}",
            title=f"{row.by_label} opened what is held about you", text=f"{row.what}\nWhat for: {text}",
        )  # fmt: skip
    return row


def _record(actor: Actor, appeal: Appeal, verb: str, *, reason: str) -> None:
    audit.record(
        actor=actor.ref, verb=verb, object_kind="appeal", object_id=appeal.pk, object_label=appeal.about,
        after={"state": appeal.state, "due": appeal.due}, reason=reason,
    )  # fmt: skip
