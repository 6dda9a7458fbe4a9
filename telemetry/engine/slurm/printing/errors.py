"""Why an answer is left to the real command."""

from typing import Final

# What the login node may say; whoever asks could name any other, and each is a row that is counted.
REASONS: Final = frozenset({
    "accounting", "all_users", "array", "busy", "environment", "field", "folding", "format", "hidden", "job_id",
    "job_state", "null", "old", "option", "order", "other_user", "queue_not_kept", "queue_unknown", "slurm",
    "state", "steps", "time", "unknown_job", "withheld",
})  # fmt: skip
OTHER: Final = "other"


class PassedOn(Exception):
    """The real command must answer. `reason` is one of a few stable words, for counting."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
