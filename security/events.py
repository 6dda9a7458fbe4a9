"""What `security` announces: live event names, and a signal for the apps above (ids only)."""

from typing import TypedDict

from django.dispatch import Signal

INCIDENT_OPENED = "incident.opened"
INCIDENT_CHANGED = "incident.changed"


class IncidentNews(TypedDict):
    """Payload of `incident.opened` and `incident.changed`. Nobody is named: the page says who, to whom it may."""

    id: int
    incident: str
    kind: str
    severity: str
    state: str
    due_at: str
    sightings: int


# Sent after commit; receivers only enqueue a task.
incident_changed = Signal()  # incident_id, state
