"""What login nodes tell of what runs on them: taking it, adding it up by days, and the studies that may name people."""

from telemetry.services.activity.days import refresh_activity
from telemetry.services.activity.judging import Rejected
from telemetry.services.activity.record import RecordedActivity, record_activity
from telemetry.services.activity.silence import end_silent_sessions
from telemetry.services.activity.studies import end_study, start_study

__all__ = [
    "RecordedActivity",
    "Rejected",
    "end_silent_sessions",
    "end_study",
    "record_activity",
    "refresh_activity",
    "start_study",
]
