"""What this portal really measures of a clause. A clause that names anything else is shown as not yet enforced.

Guard rules and limits of QoS are added here once they exist, not before.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Measure:
    """A number somebody takes: in words for people, and whether what is over the limit is refused."""

    words: str
    unit: str
    refuses: bool = False


MEASURES: Final = {
    "aup_acceptances": Measure("Accepted in the portal by version; without it the agent is held.", "agents", True),
    "portal_questions_per_minute": Measure(
        "The API counts them and answers 429 beyond the budget.", "questions/min", True
    ),
    "sessions_open": Measure("Open sessions of one login name on one host, as the portal knows them.", "sessions"),
    "sessions_on_login_nodes": Measure("Open sessions on login nodes, as the portal knows them.", "sessions"),
    "scheduler_queries_per_minute": Measure(
        "Counted by the collector: a mean over the minutes in which anything ran.", "queries/min"
    ),
    "polling_loops": Measure("Counted by the collector: the same question again and again.", "loops"),
    "tree_walks": Measure("Counted by the collector: walks and searches from near a root.", "commands"),
    "exposed_secrets": Measure("Submit lines are searched; what is found becomes a finding, redacted.", "findings"),
}  # fmt: skip
