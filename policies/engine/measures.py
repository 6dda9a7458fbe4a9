"""What this portal really measures of a clause. A clause that names anything else is shown as not yet enforced.

Guard rules and limits of QoS are added here once they exist, not before.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Measure:
    """A number somebody takes: in words for people, and whether what is over the limit is refused.

    With `refuses_if_said` it is refused where the clause's action is to refuse, and warned of otherwise.
    """

    words: str
    unit: str
    refuses: bool = False
    refuses_if_said: bool = False


MEASURES: Final = {
    "aup_acceptances": Measure("Accepted in the portal by version; without it the agent is held.", "agents", True),
    "portal_questions_per_minute": Measure(
        "The API counts them and answers 429 beyond the budget.", "questions/min", True
    ),
    "sessions_open": Measure(
        "Open sessions on one host, as the portal knows them. One more that checks in is warned, or refused where the "
        "clause’s action is to refuse.", "sessions", refuses_if_said=True,
    ),
    "sessions_on_login_nodes": Measure("Open sessions on login nodes, as the portal knows them.", "sessions"),
    "scheduler_queries_per_minute": Measure(
        "Counted by the collector: a mean over the minutes in which anything ran.", "queries/min"
    ),
    "polling_loops": Measure("Counted by the collector: the same question again and again.", "loops"),
    "tree_walks": Measure("Counted by the collector: walks through folders, wherever; a sign only.", "commands"),
    "exposed_secrets": Measure("What detectors report as a finding; silence proves nothing.", "findings"),
}  # fmt: skip
