"""The budget of questions about jobs that the policy in force sets, kept for a minute: each question asks for it."""

from typing import Final

from django.core.cache import cache

from policies.engine.clauses import by_type
from policies.services.aup import aup_in_force

CLAUSE: Final = "scheduler.portal_questions"
_KEY: Final = "policies:questions-a-minute"
_KEPT_S: Final = 60


def questions_a_minute() -> int | None:
    """Return the number of the clause `scheduler.portal_questions`; None where the policy in force has none."""
    kept: int | None = cache.get(_KEY)
    if kept is None:
        clause = by_type(aup_in_force().policy.clauses).get(CLAUSE)
        kept = -1 if clause is None or clause.value is None else int(clause.value)
        cache.set(_KEY, kept, timeout=_KEPT_S)
    return None if kept < 0 else kept
