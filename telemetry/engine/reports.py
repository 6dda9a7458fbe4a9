"""A report about a job that is known already: is it new, the same, newer, or older than what is known?"""

from typing import Literal, NamedTuple, TypeAlias

from telemetry.engine.touched import Footprint
from telemetry.engine.transitions import supersedes

Verdict: TypeAlias = Literal["created", "updated", "duplicate", "late"]


class Known(NamedTuple):
    """What is known of one record: its digest, its state, where it counts."""

    digest: int
    state: str
    footprint: Footprint


def judge_report(known: Known | None, *, digest: int, state: str, start_s: int | None, elapsed_s: int) -> Verdict:
    """Decide what a report is. `late`: a live state after the end, or less run time of the same run than known."""
    if known is None:
        return "created"
    if known.digest == digest:
        return "duplicate"
    if not supersedes(known.state, state):
        return "late"
    seen = known.footprint
    same_run = start_s is not None and start_s == seen.start_s
    # Two accounts of an ended job are not ordered by run time: the later one is a correction.
    if same_run and known.state == state == "RUNNING" and elapsed_s < seen.elapsed_s:
        return "late"
    return "updated"
