"""How jobs ended, what they waited for, and what was submitted again (paper §IV-A)."""

from telemetry.engine import usage
from telemetry.engine.assessment.figures.kinds import ENDED, LABELS, RAN, Reading, compare, ratio, share_of
from telemetry.engine.assessment.figures.rhythm import histogram
from telemetry.engine.iteration import (
    MEDIAN_WAIT_WORDS,
    OUTCOME_NAMES,
    REPEATED_NOTE,
    REPEATED_OF,
    REPEATED_WORDS,
    RESUBMITTED,
    RESUBMITTED_NOTE,
    RESUBMITTED_OF,
    RESUBMITTED_WORDS,
    WITHIN_MINUTES,
)
from telemetry.engine.repeated_failures import COLUMNS, NONE
from telemetry.engine.report_content import Column, Figure, Row
from telemetry.engine.resubmissions import Gaps


def figures(reading: Reading) -> list[Figure]:
    """Return the outcomes, the waits and the gaps."""
    return [
        _share(reading, "never-started", "Jobs that never started", "Ended without a start.", "never_started"),
        _share(reading, "cancelled", "Jobs cancelled", "Ended as CANCELLED, queued or running.", "cancelled"),
        _share(reading, "failed", "Jobs failed",
               "Ended as failed, out of memory, by node or boot failure or past a deadline; time limits are apart.",
               "failed"),
        _share(reading, "timed-out", "Jobs that reached their time limit", "Ended as TIMEOUT.", "timeout"),
        _lost(reading), _mean_wait(reading), _median_wait(reading), _again(reading), _repeated(reading),
    ]  # fmt: skip


def _share(reading: Reading, key: str, title: str, definition: str, part: str) -> Figure:
    figure = Figure(key, title, definition, ENDED, "share")
    return compare(reading, figure, "Share", share_of(reading, part, "over"), "over")


def _lost(reading: Reading) -> Figure:
    figure = Figure(
        "core-time-lost", "Core time of jobs that came to nothing",
        "Core time of jobs that failed, timed out or were cancelled, as a share of that of all jobs ended.", RAN,
        "share",
    )  # fmt: skip
    return compare(reading, figure, "Lost", share_of(reading, "lost_core_s", "ended_core_s"), "ran")


def _mean_wait(reading: Reading) -> Figure:
    figure = Figure("mean-wait", "Mean wait", "Start minus submit.", RAN, "s")
    return compare(reading, figure, "Mean wait", share_of(reading, "wait_s", "ran"), "ran")


def _median_wait(reading: Reading) -> Figure:
    waits = reading.found.sums.waits
    figure = Figure("median-wait", "Median wait", MEDIAN_WAIT_WORDS, RAN, "s")
    return compare(reading, figure, "Median wait", lambda agent: usage.histogram_median(histogram(waits, agent)), "ran")


def _again(reading: Reading) -> Figure:
    gaps = reading.found.gaps
    columns = (
        Column("jobs", "Jobs", "jobs", adds_up=True),
        *(Column(f"within_{minutes}", f"Within {minutes} min", "share") for minutes in WITHIN_MINUTES),
        Column("median", "Median gap", "s"),
    )
    rows = [_gap_row(one) for one in sorted(gaps, key=lambda one: (one.outcome, one.actor))]
    jobs, again = sum(one.jobs for one in gaps), sum(one.again[-1] for one in gaps)
    unknown = sum(one.jobs for one in gaps if one.actor == "unknown")
    return Figure(
        "resubmitted", RESUBMITTED, RESUBMITTED_WORDS, RESUBMITTED_OF, "share", ratio(again, jobs),
        ratio(unknown, jobs), note=RESUBMITTED_NOTE,
        columns=columns, rows=tuple(rows),
    )  # fmt: skip


def _gap_row(gaps: Gaps) -> Row:
    key, label = LABELS[gaps.actor == "agent"]
    shares = (ratio(count, gaps.jobs) for count in gaps.again)
    name = f"{OUTCOME_NAMES[gaps.outcome]}, {label[0].lower()}{label[1:]}"
    return Row(f"{gaps.outcome}-{key}", name, (gaps.jobs, *shares, gaps.median_s))


def _repeated(reading: Reading) -> Figure:
    found = {one.actor == "agent": one for one in reading.found.failures}
    rows = tuple(
        Row(*LABELS[agent], found[agent].values if agent in found else NONE.values) for agent in reading.classes
    )
    jobs = sum(one.jobs for one in found.values())
    unknown = ratio(found[False].jobs if False in found else 0, jobs)
    return Figure(
        "repeated-failures", "People whose jobs fail twice the same way", REPEATED_WORDS, REPEATED_OF, "share",
        rows[0].values[0], unknown, note=REPEATED_NOTE, columns=COLUMNS, rows=rows,
    )  # fmt: skip
