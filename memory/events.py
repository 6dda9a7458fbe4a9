"""What `memory` announces. Payloads carry no text of a lesson: who may read it asks for it."""

from typing import TypedDict

LESSON_RECORDED = "lesson.recorded"
LESSON_PROPOSED = "lesson.proposed"
LESSON_CHANGED = "lesson.changed"


class LessonNews(TypedDict):
    """Payload of every event of a lesson."""

    lesson: str
    scope: str
    status: str
    derived_from: str
