"""What `principals` announces: live event names, and signals for the apps above (ids only)."""

from typing import TypedDict

from django.dispatch import Signal

AGENT_CHANGED = "agent.changed"
HOLD_PLACED = "hold.placed"
HOLD_LIFTED = "hold.lifted"
NOTICE = "notice.made"
TOKEN_REVOKED = "token.revoked"  # noqa: S105 - a name of an event


class AgentChanged(TypedDict):
    """Payload of `agent.changed`."""

    agent: str
    status: str
    reason: str


class HoldChanged(TypedDict):
    """Payload of `hold.placed` and `hold.lifted`."""

    subject_kind: str
    subject_id: int
    code: str
    reason: str
    remedy: str


# Sent within the transaction that ties them to their agent; receivers write rows in it.
sessions_adopted = Signal()  # session_ids
# Sent after commit; receivers only enqueue a task.
hold_changed = Signal()  # hold_id, in_force
