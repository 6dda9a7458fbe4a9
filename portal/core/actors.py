"""Who acts, as plain words: what an audit row needs to know, without a reference to rows that may go away."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ActorRef:
    """A name for the one who acts. `kind` is user, agent, service or system."""

    kind: str
    id: str
    label: str
    on_behalf_of: str = ""


SYSTEM = ActorRef(kind="system", id="gatehouse", label="gatehouse")
