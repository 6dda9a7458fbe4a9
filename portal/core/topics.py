"""Topics: what a live event is about, and who may hear of it.

A topic is `kind:key` (`job:aster:123`, `lab:12`, `my-jobs:7`). Apps register their kinds here when they start; the one
WebSocket consumer and the long-poll ask this registry and know no app. The kernel stands below the apps, so an actor is
an opaque object that only the kinds look into.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from portal.core.errors import Invalid, NotAllowed, NotFound

MAX_LENGTH = 100  # of LiveEventTopic.topic
_FORM = re.compile(r"[a-z][a-z0-9-]{0,30}:[^\s,]{1,80}\Z")


@dataclass(frozen=True, slots=True)
class TopicKind:
    """A kind of topic: its name, what it tells, who may listen to a key, and what an actor hears unless it asks."""

    name: str
    describe: str
    authorise: Callable[[Any, str], bool]
    default_topics: Callable[[Any], list[str]] = lambda actor: []


_kinds: dict[str, TopicKind] = {}


def register(kind: TopicKind) -> None:
    """Add a kind of topic. Two kinds of one name are a programming error and raise `ValueError`."""
    if _kinds.setdefault(kind.name, kind) is not kind:
        raise ValueError(f"Topic kind {kind.name} is registered twice.")


def unregister(name: str) -> None:
    """Take a kind away again; its topics then refuse everybody."""
    _kinds.pop(name, None)


def kinds() -> list[TopicKind]:
    """Return the registered kinds by name."""
    return sorted(_kinds.values(), key=lambda kind: kind.name)


def require(actor: object, topic: str) -> None:
    """Let `actor` listen to `topic`, or say why not.

    Errors: `Invalid` for text that is no topic, `NotFound` for an unknown kind, `NotAllowed` otherwise.
    """
    if not _FORM.match(topic) or len(topic) > MAX_LENGTH:
        raise Invalid(
            f"{topic[:MAX_LENGTH]!r} is not a topic.", code="topic_malformed", remedy="Write topics as kind:key."
        )
    name, _, key = topic.partition(":")
    kind = _kinds.get(name)
    if kind is None:
        known = ", ".join(sorted(_kinds)) or "none"
        raise NotFound(f"There are no topics of kind {name}.", code="topic_unknown", remedy=f"Kinds: {known}.")
    if not kind.authorise(actor, key):
        raise NotAllowed(
            f"You may not listen to {topic}.",
            code="topic_not_allowed",
            remedy="Leave `topics` out to hear all that is yours.",
        )


def authorise(actor: object, topic: str) -> bool:
    """Say whether `actor` may listen to `topic`."""
    try:
        require(actor, topic)
    except (Invalid, NotFound, NotAllowed):
        return False
    return True


def default_topics(actor: object) -> list[str]:
    """Return what `actor` hears when it names no topics: the defaults of every kind, each once.

    Kinds of which there are few come first: whoever takes some of all cuts a long list (a person's hundreds of agents),
    and no other kind with it.
    """
    by_kind = sorted((kind.default_topics(actor) for kind in kinds()), key=len)
    return list(dict.fromkeys(topic for topics in by_kind for topic in topics))
