"""The numbers that the policy in force sets for the portal itself, kept for a minute: each request asks for them."""

from typing import Final

from django.core.cache import cache

from policies.engine.clauses import EVERYTHING, Action, Clause, Modality, by_type
from policies.services.aup import aup_in_force
from principals.engine.concurrency import Limit

QUESTIONS: Final = "scheduler.portal_questions"
SESSIONS: Final = "sessions.max"
_KEPT_S: Final = 60


def questions_a_minute() -> int | None:
    """Return the number of the clause `scheduler.portal_questions`; None where the policy in force has none."""
    kept: int | None = cache.get("policies:questions-a-minute")
    if kept is None:
        clause = _clause(QUESTIONS)
        kept = -1 if clause is None or clause.value is None else int(clause.value)
        cache.set("policies:questions-a-minute", kept, timeout=_KEPT_S)
    return None if kept < 0 else kept


def sessions_on_a_node() -> Limit | None:
    """Return the limit of the clause `sessions.max`, which binds where its action is to refuse; None where none is.

    It is one where the clause is a limit, on login nodes, of every lab and harness.
    """
    kept: tuple[int, bool] | None = cache.get("policies:sessions-on-a-node")
    if kept is None:
        clause = _clause(SESSIONS)
        limits = clause is not None and _limits_everybody_there(clause)
        kept = (int(clause.value or 0), clause.action is Action.REFUSE) if clause and limits else (0, False)
        cache.set("policies:sessions-on-a-node", kept, timeout=_KEPT_S)
    return Limit(kept[0], binds=kept[1]) if kept[0] > 0 else None


def _clause(name: str) -> Clause | None:
    return by_type(aup_in_force().policy.clauses).get(name)


def _limits_everybody_there(clause: Clause) -> bool:
    everybody = clause.applies.labs == EVERYTHING == clause.applies.harness
    return clause.modality is Modality.LIMIT and "login" in clause.place and everybody
