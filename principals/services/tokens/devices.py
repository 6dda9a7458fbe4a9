"""Logging in from a device without a browser (RFC 8628): asked for there, approved by its person elsewhere."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Least
from django.utils.crypto import salted_hmac

from portal.core import audit, clock
from portal.core.errors import Conflict, DomainError, NotFound
from principals import permissions
from principals.actors import Actor
from principals.engine import device as rules
from principals.engine import munge, scopes, tokens
from principals.engine.device import Answer
from principals.models import Agent, AgentToken, DeviceLogin
from principals.services.tokens.issuing import IssuedToken, require_working
from principals.services.tokens.logins import agent_of, issue_login_token

KEPT = timedelta(hours=1)  # after its end, so that whoever comes late is told that it ended
_AGAIN = "Run gatehouse login --device again."
_SENTENCES = {
    Answer.PENDING: ("Its person has not answered yet.", "Ask again after the interval."),
    Answer.SLOW_DOWN: ("That was too early: the interval is five seconds longer now.", "Wait for the interval."),
    Answer.DENIED: ("Its person refused it.", "Ask them, then run gatehouse login --device again."),
    Answer.EXPIRED: ("The code ended before anybody answered.", _AGAIN),
    Answer.USED: ("There is no such code, or it was used.", _AGAIN),
}


@dataclass(frozen=True, slots=True)
class Begun:
    """The codes of a login that begins; they are kept nowhere else."""

    row: DeviceLogin
    device_code: str = field(repr=False)
    user_code: str = field(repr=False)


def oauth_refusal(error: str, sentence: str, remedy: str, *, interval_s: int | None = None) -> DomainError:
    """Return a refusal as OAuth writes it (RFC 6749, 5.2) within a problem: `error` is its code."""
    said = {"error": error, "error_description": sentence}
    return DomainError(
        sentence, code=error, remedy=remedy, retry_after_s=interval_s,
        extra=said if interval_s is None else {**said, "interval": interval_s},
    )  # fmt: skip


def begin_device_login(*, agent_name: str, host: str, scope_names: Collection[str], address: str) -> Begun:
    """Note that a device asks for a token. Whether there is such an agent is told to nobody but its person."""
    if not re.fullmatch(munge.NAME, agent_name) or not re.fullmatch(munge.NAME, host):
        raise oauth_refusal(
            "invalid_request", "client_id is the name of an agent, host that of this machine.",
            "Name both in letters, digits, dots and dashes.",
        )  # fmt: skip
    if refused := scopes.refused_scopes(scope_names, tokens.TokenKind.AGENT):
        raise oauth_refusal(
            "invalid_scope", f"No such scope: {', '.join(name[:40] for name in refused[:5])}.",
            "Scopes are listed in docs/harnesses.md.",
        )  # fmt: skip
    now = clock.now()
    prune()
    device_code, user_code = rules.make_device_code(), rules.make_user_code()
    wanted = set(scope_names) or scopes.default_scopes(tokens.TokenKind.AGENT)
    row = DeviceLogin.objects.create(
        device_digest=_digest(device_code), user_digest=_digest(user_code), agent_name=agent_name, host=host,
        address=address[:45], scopes=sorted(wanted), interval_s=rules.INTERVAL_S,
        expires=now + timedelta(seconds=rules.LIFE_S),
    )  # fmt: skip
    return Begun(row, device_code, user_code)


def prune() -> int:
    """Delete logins past their keeping time; return how many."""
    deleted, _ = DeviceLogin.objects.filter(expires__lt=clock.now() - KEPT).delete()
    return deleted


def _digest(code: str) -> str:
    return salted_hmac("gatehouse.device", code, algorithm="sha256").hexdigest()


def find_device_login(user_code: str) -> DeviceLogin:
    """Return the login that waits for a code. Errors: `NotFound`, in the same words for every code that is none."""
    code = rules.read_user_code(user_code)
    waiting = DeviceLogin.objects.filter(state=DeviceLogin.State.WAITING, expires__gt=clock.now())
    row = waiting.filter(user_digest=_digest(code)).first() if code else None
    if row is None:
        raise NotFound(
            "No login waits for this code.", code="user_code_unknown",
            remedy="Look at the terminal again; a code ends after ten minutes, and is good for once.",
            extra={"field": "user_code"},
        )  # fmt: skip
    return row


def agent_asked_for(*, actor: Actor, login: DeviceLogin) -> Agent:
    """Return the agent that a device asks for, to the person who answers for it alone, while it may work.

    Errors: `NotAllowed`, `Conflict`.
    """
    if actor.user is None or not actor.is_person:
        raise NotFound("Only a person looks at a login.")
    agent = agent_of(actor.user, login.agent_name)
    permissions.require(actor, "agent.issue_token", agent)
    require_working(agent)
    return agent


def approve_device_login(*, actor: Actor, login: DeviceLogin) -> Agent:
    """Let a device have a token of one's own agent, when it asks next. Errors: `Conflict` where that is decided."""
    agent = agent_asked_for(actor=actor, login=login)
    _decide(actor, login, DeviceLogin.State.APPROVED, agent)
    return agent


def refuse_device_login(*, actor: Actor, login: DeviceLogin) -> None:
    """Let a device have none; whoever was shown the code may say so. Errors: `Conflict` where that is decided."""
    own = Agent.objects.filter(name=login.agent_name, owner=actor.user).first()
    _decide(actor, login, DeviceLogin.State.REFUSED, own)


def _decide(actor: Actor, login: DeviceLogin, state: str, agent: Agent | None) -> None:
    with transaction.atomic():
        if login.expires <= clock.now() or not login.move(old=DeviceLogin.State.WAITING, new=state):
            raise Conflict("This login was answered already, or ended.", code="login_decided", remedy=_AGAIN)
        DeviceLogin.objects.filter(pk=login.pk).update(agent=agent, decided_by=actor.user)
        audit.record(
            actor=actor.ref, verb=f"device_login.{state}", object_kind="agent", object_id=agent.pk if agent else 0,
            object_label=agent.name if agent else "", lab_id=agent.lab_id if agent else None,
            after={"host": login.host, "scopes": login.scopes},
        )  # fmt: skip


def finish_device_login(*, device_code: str, agent_name: str) -> IssuedToken:
    """Exchange a code for the token, once, after its person approved it.

    Errors: a `DomainError` of status 400 whose code is the error of RFC 8628, 3.5.
    """
    login = DeviceLogin.objects.filter(device_digest=_digest(device_code)).first()
    if login is None or login.agent_name != agent_name:  # a code is its agent's
        raise _told(Answer.USED)
    now = clock.now()
    asked = rules.Asked(rules.Standing(login.state), login.expires, login.last_asked, login.interval_s)
    answer = rules.answer_to(asked, now)
    if answer is Answer.TOKEN:
        return _issue(login)
    slower = rules.INTERVAL_S if answer is Answer.SLOW_DOWN else 0
    interval_s = Least(F("interval_s") + slower, rules.LIFE_S)  # however often it comes too early
    DeviceLogin.objects.filter(pk=login.pk).update(last_asked=now, interval_s=interval_s)
    waits = min(login.interval_s + slower, rules.LIFE_S) if answer in (Answer.PENDING, Answer.SLOW_DOWN) else None
    raise _told(answer, waits)


def _issue(login: DeviceLogin) -> IssuedToken:
    if login.decided_by is None or login.agent is None:
        raise _told(Answer.USED)
    try:
        with transaction.atomic():
            if not login.move(old=DeviceLogin.State.APPROVED, new=DeviceLogin.State.USED):
                raise _told(Answer.USED)
            return issue_login_token(
                person=login.decided_by, agent=login.agent, how=AgentToken.How.DEVICE, host=login.host,
                scope_names=login.scopes,
            )  # fmt: skip
    except DomainError as error:  # approved, and stopped since
        if error.code == Answer.USED.value:
            raise
        raise oauth_refusal(Answer.DENIED.value, error.detail, error.remedy or _AGAIN) from error


def _told(answer: Answer, interval_s: int | None = None) -> DomainError:
    sentence, remedy = _SENTENCES[answer]
    return oauth_refusal(answer.value, sentence, remedy, interval_s=interval_s)
