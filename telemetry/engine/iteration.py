"""How people and agents repeat work: bounds and words that reports and an assessment have in common."""

from typing import Final

WITHIN_MINUTES: Final = (10, 30, 60, 180)  # as the paper cuts experimentation loops
OUTCOME_NAMES: Final = {"cancelled": "Cancelled", "failed": "Failed", "timeout": "Timed out"}
LIKENESS_NAMES: Final = {
    "command": "Same command", "submit_line": "Same submit line", "script": "Same script name",
    "template": "Same command but for numbers and folders", "application": "Same application",
    "work_dir": "Same folder",
}  # fmt: skip

RESUBMITTED: Final = f"Jobs submitted again within {WITHIN_MINUTES[-1]} minutes"
RESUBMITTED_WORDS: Final = (
    "Jobs that were cancelled, failed or timed out, after whose end the same user submitted the same again: the "
    "same job name, script and folder. The gap runs from that end to the next submission; its median is of those "
    f"within {WITHIN_MINUTES[-1]} minutes."
)
RESUBMITTED_OF: Final = "jobs that were cancelled, failed or timed out"
RESUBMITTED_NOTE: Final = (
    "One submission may follow many jobs, as after an array. Changed names or folders are not seen."
)
SIMILAR: Final = "Work shared between people"
SIMILAR_WORDS: Final = (
    "Jobs that have the same as a job of another user. The rows loosen what “the same” is, from the command that "
    "was submitted to the program it runs; the folder stands apart. The headline is the application’s share."
)
SIMILAR_NOTE: Final = (
    "Compared are hashes of submit lines and folders; what stands inside a batch script, accounting does not know."
)
MEDIAN_WAIT_WORDS: Final = "Start minus submit, interpolated inside the bucket of the histogram that holds it."
REPEATED_WORDS: Final = (
    "Of the people with a failed job, those whose jobs failed in the same way in two submissions or more; the tasks of "
    "an array are one. The same way is the same command but for numbers and folders, the same state (failed or out of "
    "memory), exit code and signal. Beside it, of the further submissions that failed like an earlier one: those "
    "submitted after the first such failure, those that failed on another UTC day than the failure before, and the "
    "median time between the two. Failures of nodes, and time limits, are left out."
)
REPEATED_OF: Final = "people with a job that failed or ran out of memory, and whose command is known"
REPEATED_NOTE: Final = (
    "An exit code says little of a cause: what differs in a job’s output alone counts as the same, and what is run "
    "under another name as another."
)
