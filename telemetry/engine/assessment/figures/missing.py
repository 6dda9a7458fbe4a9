"""What accounting alone cannot say, and what would: listed, so that nothing is left out unnoticed."""

from typing import Final

from telemetry.engine.assessment.figures.kinds import Unit
from telemetry.engine.report_content import Figure

_REGISTRATION: Final = "agents registered, and their sessions declared"
_COLLECTOR: Final = "the collector’s process events from login nodes"
_GPUS: Final = "the GPUs’ own counters (--gpu with a file of jobstats or DCGM)"
_MISSING: Final[tuple[tuple[str, str, str, Unit, str], ...]] = (
    ("agents-by-job", "Which jobs were an agent’s", "Each job by the session it was submitted in.", "share",
     _REGISTRATION),
    ("harnesses", "Agents’ load by harness", "Jobs by the program that submitted them.", "share", _REGISTRATION),
    ("unregistered", "Agents that nobody registered", "Agents’ processes without a session.", "people", _COLLECTOR),
    ("command-rate", "Commands a minute", "Calls of agents and of people at a terminal.", "ratio", _COLLECTOR),
    ("queries-per-job", "Scheduler queries for each job", "squeue, sacct, sinfo and scontrol calls over jobs.", "ratio",
     "one reader of this Slurm (its RPC counts), or the collector"),
    ("loop-time", "Time between submissions of one experiment", "From a submission, through an edit, to the next.", "s",
     _COLLECTOR),
    ("file-tools", "File reads and directory walks", "Calls of head, sed, grep, find and the like.", "ratio",
     _COLLECTOR),
    ("gpu-use", "What jobs use of their GPUs", "Hours by high and low use of compute and memory.", "share", _GPUS),
    ("failures-of-others", "Failures that others had before", "The same cause again, of another person.", "share",
     "failure signatures from jobs’ output"),
    ("unsafe-actions", "Unsafe commands and exposed keys", "Destructive commands, weakened safeguards, keys in reach.",
     "keys", _COLLECTOR),
)  # fmt: skip


def figures(*, has_gpus: bool) -> list[Figure]:
    """Return what cannot be said; what jobs use of their GPUs can, where there are readings."""
    return [
        Figure(key, title, definition, "", unit, needs=needs)
        for key, title, definition, unit, needs in _MISSING if not (has_gpus and key == "gpu-use")
    ]  # fmt: skip
