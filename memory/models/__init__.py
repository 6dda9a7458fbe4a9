"""Rows of `memory`: lessons, the words they are found by, the evidence for them, and how often they were looked up."""

from memory.models.evidence import LessonEvidence
from memory.models.lessons import Lesson
from memory.models.lookups import LessonLookup
from memory.models.tokens import LessonToken

__all__ = ["Lesson", "LessonEvidence", "LessonLookup", "LessonToken"]
