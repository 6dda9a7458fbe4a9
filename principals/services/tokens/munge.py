"""Logging in by MUNGE: a credential that a node's munged made, verified by that of the portal's host, gives a token."""

import hashlib
import pwd
import re
import secrets
import shutil
import subprocess
from typing import Final

from django.conf import settings
from django.core import signing
from django.core.cache import cache

from portal.core.errors import Conflict, DomainError, Invalid, NotAllowed
from principals.engine import munge as rules
from principals.engine import networks
from principals.engine.munge import Decoded, Statement
from principals.models import Agent, AgentToken, ClusterUser, User
from principals.services.tokens.issuing import IssuedToken
from principals.services.tokens.logins import agent_of, issue_login_token

NONCE_LIFE_S: Final = 300
UNMUNGE_PATIENCE_S: Final = 10
_SIGNER: Final = "gatehouse.munge"
_NO_PERSON = "Ask the facility’s staff to add the login name to the portal."


def require_munge() -> None:
    """Refuse where the site did not switch it on. Errors: `Conflict`."""
    if not settings.MUNGE_CLUSTERS:
        raise Conflict(
            "This portal takes no MUNGE credential.", code="munge_off",
            remedy="Run gatehouse login --device, or use a token from the agent’s page.",
        )  # fmt: skip


def make_nonce() -> str:
    """Give a number to put into one credential. Errors: `Conflict` where the site did not switch it on."""
    require_munge()
    return signing.TimestampSigner(salt=_SIGNER).sign(secrets.token_urlsafe(18))


def login_by_munge(*, credential: str, address: str) -> IssuedToken:
    """Exchange a credential for a token of a person's agent, for twelve hours and the address that it came from.

    It is the act of the person whom the credential proves. Errors, each with its code and remedy: `Invalid` for a
    credential or statement that is not good, `NotAllowed` for people and hosts, `Conflict` while the agent may not
    work.
    """
    require_munge()
    decoded = _unmunge(credential)
    said = rules.read_statement(decoded.payload)
    if said is None:
        raise Invalid(
            "The credential holds no login to Gatehouse.", code="munge_statement", remedy="Run gatehouse login."
        )
    _require_here(said)
    person = _person_of(decoded, said)
    agent = agent_of(person, said.agent)
    _require_host(agent, decoded, said)
    return issue_login_token(
        person=person, agent=agent, how=AgentToken.How.MUNGE, host=decoded.attested_host or said.host,
        scope_names=said.scopes or None, address=address,
    )  # fmt: skip


def _unmunge(credential: str) -> Decoded:
    """Let the munged of this host decode a credential, which it does once. Errors: `Invalid`, `Conflict`."""
    if re.fullmatch(rules.CREDENTIAL, credential, re.ASCII) is None:
        raise _refused(rules.refusal_of(8, None))
    program = shutil.which("unmunge", path="/usr/bin:/usr/local/bin:/opt/munge/bin")
    if program is None:
        raise _refused(rules.AWAY)
    where = [f"--socket={settings.MUNGE_SOCKET}"] if settings.MUNGE_SOCKET else []
    try:
        ran = subprocess.run(
            [program, *where], input=credential.encode(), env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            capture_output=True, timeout=UNMUNGE_PATIENCE_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        raise _refused(rules.AWAY) from None
    decoded = rules.read_unmunged(ran.stdout)
    refusal = rules.refusal_of(ran.returncode, decoded)
    if refusal is not None or decoded is None:
        raise _refused(refusal)
    return decoded


def _refused(refusal: rules.Refusal | None) -> DomainError:
    found = refusal or rules.AWAY
    kind = Conflict if found is rules.AWAY else Invalid
    return kind(found.sentence, code=found.code, remedy=found.remedy)


def _require_here(said: Statement) -> None:
    """Refuse what was said to another portal, or with a number that is not ours, too old, or used."""
    if said.portal.rstrip("/").lower() != settings.BASE_URL.lower():
        raise Invalid(
            "The credential is for another portal.", code="munge_other_portal",
            remedy=f"Set GATEHOUSE_URL to {settings.BASE_URL}, as this portal calls itself.",
        )  # fmt: skip
    again = "Run gatehouse login again: it asks for a new one."
    try:
        signing.TimestampSigner(salt=_SIGNER).unsign(said.nonce, max_age=NONCE_LIFE_S)
    except signing.SignatureExpired:
        raise Invalid("The portal’s number in it is too old.", code="nonce_expired", remedy=again) from None
    except signing.BadSignature:
        raise Invalid("The number in it is not the portal’s.", code="nonce_unknown", remedy=again) from None
    # munged knows what it decoded itself; this is for portals on several hosts, each with a munged of its own.
    digest = hashlib.sha256(said.nonce.encode()).hexdigest()
    if not cache.add(f"munge-nonce:{digest}", 1, timeout=NONCE_LIFE_S * 2):
        raise Invalid("The portal’s number in it was used already.", code="nonce_used", remedy=again)


def _person_of(decoded: Decoded, said: Statement) -> User:
    """Return the person of a uid: whose login name it is, on a cluster that the portal takes credentials of."""
    if decoded.uid == 0:
        raise NotAllowed(
            "Root speaks for nobody.", code="munge_root", remedy="Log in as the person who answers for the agent."
        )
    try:  # hosts of one realm have common users (munge(7))
        login = pwd.getpwuid(decoded.uid).pw_name
    except KeyError:
        raise NotAllowed(
            f"The portal’s host knows no user with the uid {decoded.uid}.", code="munge_uid_unknown", remedy=_NO_PERSON
        ) from None
    named = [name for name in settings.MUNGE_CLUSTERS if not said.cluster or name.lower() == said.cluster.lower()]
    if not named:
        raise NotAllowed(
            f"This portal takes no credential of the cluster {said.cluster}.", code="munge_cluster",
            remedy=f"It takes those of {', '.join(settings.MUNGE_CLUSTERS)}.",
        )  # fmt: skip
    taken = ClusterUser.objects.filter(cluster__name__in=settings.MUNGE_CLUSTERS, login=login).exclude(user=None)
    rows = list(taken.select_related("user", "cluster"))
    if len({row.user_id for row in rows}) > 1:  # a credential does not tell clusters apart: their word would choose
        raise Conflict(
            f"The login name {login} belongs to different people on {', '.join(settings.MUNGE_CLUSTERS)}.",
            code="munge_ambiguous",
            remedy="Run gatehouse login --device; and tell staff: hosts of one MUNGE realm have common users.",
        )  # fmt: skip
    person = next((row.user for row in rows if row.cluster.name in named), None)
    if person is None:
        raise NotAllowed(
            f"The portal knows no person with the login name {login}.", code="munge_person_unknown", remedy=_NO_PERSON
        )
    return person


def _require_host(agent: Agent, decoded: Decoded, said: Statement) -> None:
    """Refuse hosts that an agent is not registered for. What the node's munged says of itself goes before its word."""
    host = decoded.attested_host or said.host
    if agent.hosts and _short(host) not in {_short(name) for name in agent.hosts}:
        raise NotAllowed(
            f"{agent.name} is not registered for {host}.", code="host_not_allowed",
            remedy=f"It may log in on {', '.join(agent.hosts)}.",
        )  # fmt: skip


def _short(host: str) -> str:
    """Return a host's name without its domain; an address whole."""
    return host if networks.only(host) else host.partition(".")[0]
