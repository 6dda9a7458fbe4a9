"""What the rows of a figure's table are, by the figure's key: the heading of its first column.

Published reports hold no such words, and do not change: they are found here for them too.
"""

from typing import Any, Final

Json = dict[str, Any]
ACTORS: Final = {"agent", "human", "unknown", "all"}
WHO: Final = "Submitted by"  # of what stands an actor a row
RUN_BY: Final = "Run by"  # of commands: agents, people, a harness
TOLD_BY: Final = "Harness"
UNSAID: Final = "What"
_OF_FIGURES: Final = {
    "harnesses": "Harness", "labs": "Lab", "partitions": "Partition", "daily": "Day (UTC)",
    "hour-of-week": "Hour of the week", "runtime-distribution": "Run time, at most",
    "resubmitted": "Ended as, submitted by",
    **dict.fromkeys(("oom-unchanged", "repeated-failures", "queries-per-job", "queries-high-volume"), WHO),
    "gpu-utilisation": "Heavy on", "gpu-would-fit": "What would do", "gpu-stranded-partitions": "Partition",
    "gpu-stranded-labs": "Lab", "session-age": "Session", "similar-jobs": "What is the same",
    "records": "Records", "set-aside": "Reason", "attribution-methods": "Evidence", "command-classes": "Class",
    "file-tools": "Tool", "destructive-commands": "Command", "external-fetches": "From",
    **dict.fromkeys(("where-agents-work", "where-agents-run-commands", "where-agents-submit"), "Place"),
    "login-node-bias": "Share",
    **dict.fromkeys(("command-rate", "loop-time", "loops-closed", "query-commands", "polling-loops", "tree-walks",
                     "recursive-searches"), RUN_BY),
    **dict.fromkeys(("harness-cost", "decisions-declined"), TOLD_BY),
    "extensions-run": "Extension", "exposed-keys": "Seen in", "weakened-safeguards": "Kind", "open-services": "Kind",
    "trial-wait": "Jobs", "acceptance-trial-abuse": "Sign",
}  # fmt: skip


def heading_of(figure: Json) -> str:
    """Return what a row of a figure is: `Lab`, `Day`, …; `What` where nobody has said."""
    if figure["key"] in _OF_FIGURES:
        return _OF_FIGURES[figure["key"]]
    return WHO if {row["key"] for row in figure["rows"]} <= ACTORS else UNSAID
