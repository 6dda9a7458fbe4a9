"""Verbs of `memory`, called through this module: `memory_services.record_lesson(actor=…, …)`."""

from memory.services.content import LessonContent
from memory.services.decisions import approve_lesson, propose_lesson, reject_lesson, withdraw_lesson
from memory.services.evidence import confirm_lesson
from memory.services.lookups import look_up, prune_lookups
from memory.services.recording import Recorded, record_lesson

__all__ = [
    "LessonContent",
    "Recorded",
    "approve_lesson",
    "confirm_lesson",
    "look_up",
    "propose_lesson",
    "prune_lookups",
    "record_lesson",
    "reject_lesson",
    "withdraw_lesson",
]
