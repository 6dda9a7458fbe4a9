"""Pages of `memory`."""

from memory.views.detail import lesson
from memory.views.listing import lessons
from memory.views.recording import record

__all__ = ["lesson", "lessons", "record"]
