"""Reads of `memory`."""

from memory.selectors.listing import LessonFilter, find_lesson, lessons, lessons_to_approve
from memory.selectors.lookup import FoundLesson, look_up

__all__ = ["FoundLesson", "LessonFilter", "find_lesson", "lessons", "lessons_to_approve", "look_up"]
