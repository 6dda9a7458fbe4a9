"""Who looks: a browser's session or a token, and the way to build its actor again when its rights may have changed."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest

from portal.core import topics as kernel_topics
from portal.core.errors import Invalid, Unauthenticated
from portal.realtime import fingerprints
from principals import auth, permissions
from principals.actors import Actor
from principals.sign_in import DUE

SCOPE = "events:read"
MAX_TOPICS = 100


@dataclass(frozen=True, slots=True)
class Viewer:
    """A distinct credential. `principal` is whom it speaks for (`user:7`, `agent:3`); many may speak for one.

    `standing` is the fingerprint of its rights when it was let in: who opened under others is another viewer.
    """

    key: str
    principal: str
    load: Callable[[], Actor] = field(compare=False, repr=False)  # raises a DomainError once the right is gone
    user_id: int | None = None
    session_key: str = ""
    token_key: str = ""
    address: str = ""
    standing: Hashable = field(default=None, repr=False)


def of_session(session_key: str | None) -> tuple[Viewer, Actor]:
    """Return the signed-in person of a session. Errors: `Unauthenticated`. Touches the database."""
    key = session_key or ""
    actor = _actor_of_session(key)
    user_id = int(actor.ref.id)
    viewer = Viewer(
        f"session:{key}", f"user:{user_id}", lambda: _actor_of_session(key), user_id=user_id, session_key=key,
        standing=fingerprints.of_actor(actor),
    )  # fmt: skip
    return viewer, actor


def _actor_of_session(key: str) -> Actor:
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    user = get_user(request) if key else None  # checks the password's hash and that the person is active
    if user is None or not user.is_authenticated or request.session.get(DUE):
        raise Unauthenticated("You are not signed in.", remedy="Sign in, or send a bearer token.")
    return permissions.actor_for_user(user)


def of_token(request: HttpRequest, actor: Actor | None = None) -> tuple[Viewer, Actor]:
    """Return whom the request's bearer token stands for. Errors: those of `principals.auth`. Touches the database."""

    def load() -> Actor:
        loaded: Actor = auth.requires(SCOPE)(request)
        return loaded

    actor, address = actor or load(), auth.client_address(request)
    viewer = Viewer(
        f"token:{actor.token_key}@{address}", f"{actor.ref.kind}:{actor.ref.id}", load, token_key=actor.token_key,
        address=address, standing=fingerprints.of_actor(actor),
    )  # fmt: skip
    return viewer, actor


def admit(scope: Mapping[str, Any], asked: list[str]) -> tuple[Viewer, list[str]]:
    """Return who opened a WebSocket (by session, or by bearer token where one was sent) and what it hears."""
    found = of_session(scope["session"].session_key) if "session" in scope else of_token(request_of_scope(scope))
    viewer, actor = found
    return viewer, topics_for(actor, asked)


def request_of_scope(scope: Mapping[str, Any]) -> HttpRequest:
    """Return a request with what the token check reads of a WebSocket's scope: headers and the peer's address."""
    request = HttpRequest()
    request.META["REMOTE_ADDR"] = (scope.get("client") or ("",))[0]
    for name, value in scope.get("headers", ()):
        request.META["HTTP_" + name.decode("latin-1").upper().replace("-", "_")] = value.decode("latin-1")
    return request


def split_topics(text: str) -> list[str]:
    """Return the topics of a comma-separated list, each once. Errors: `Invalid` past `MAX_TOPICS`."""
    topics = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    return within_limit(topics)


def within_limit(topics: list[str]) -> list[str]:
    """Return the topics where they are not too many. Errors: `Invalid` past `MAX_TOPICS`."""
    if len(topics) > MAX_TOPICS:
        raise Invalid(f"More than {MAX_TOPICS} topics were named.", code="too_many_topics")
    return topics


def topics_for(actor: Actor, asked: list[str]) -> list[str]:
    """Return what the actor listens to: what it asked for, where it may, or its defaults. Errors: of `core.topics`."""
    for topic in asked:
        kernel_topics.require(actor, topic)
    return asked or kernel_topics.default_topics(actor)[:MAX_TOPICS]


def require_topics(viewer: Viewer, topics: list[str]) -> None:
    """Let a viewer listen to more topics, by the rights it has now. Errors: of rights and topics."""
    actor = viewer.load()
    for topic in topics:
        kernel_topics.require(actor, topic)
