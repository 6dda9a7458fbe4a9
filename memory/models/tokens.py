"""The index by which lessons are found: the telling words of every lesson in force."""

from django.db import models

from memory.models.lessons import Lesson

MAX_TOKEN = 64


class LessonToken(models.Model):
    """A word of a lesson's error. Rows exist only while the lesson is active, so that no look-up meets another.

    `scope_key` and `signature` are the lesson's, kept here so that counting a word in a scope reads one index.
    """

    lesson = models.ForeignKey(Lesson, on_delete=models.CASCADE, related_name="tokens")
    token = models.CharField(max_length=MAX_TOKEN)
    scope_key = models.CharField(max_length=60)
    signature = models.CharField(max_length=12)

    class Meta:
        indexes = [models.Index(fields=["token", "scope_key", "signature", "lesson"], name="memory_token_words")]

    def __str__(self) -> str:
        return self.token
