"""What `policies` announces: live event names with their payloads, and signals for the apps above (ids only)."""

from typing import TypedDict

from django.dispatch import Signal

AUP_PUBLISHED = "aup.published"
TRIAL_GRANTED = "trial.granted"
TRIAL_REFUSED = "trial.refused"
TRIAL_CANCELLED = "trial.cancelled"
TRIAL_USED = "trial.used"
EXTENSION_SUBMITTED = "extension.submitted"
EXTENSION_DECIDED = "extension.decided"
EXTENSION_REVOKED = "extension.revoked"


class TrialChanged(TypedDict):
    """Payload of `trial.granted`, `trial.cancelled` and `trial.used`; no names of people."""

    trial: str
    state: str
    cluster: str
    minutes: int
    gpus: int


class TrialRefused(TypedDict):
    """Payload of `trial.refused`."""

    codes: list[str]
    returns_at: str | None


class ExtensionChanged(TypedDict):
    """Payload of the news about extensions."""

    identity: str
    version: str
    digest: str
    state: str


# Sent after commit, with ids; receivers only enqueue a task.
trial_granted = Signal()  # trial_id
extension_revoked = Signal()  # release_id
