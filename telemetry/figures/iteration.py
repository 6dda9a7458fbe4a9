"""Figures of how work is repeated and shared, which only a look at all jobs can tell (paper §IV-A, §VI-A, Table II)."""

from typing import TYPE_CHECKING

from telemetry.engine import iteration
from telemetry.engine.cells import enough
from telemetry.figures.behaviour import BY_JOB, RAN_WORDS, compare
from telemetry.figures.kinds import Column, Figure, Measured, Number, Row, Section, Unit
from telemetry.figures.load import JOB_WORDS, LABELS
from telemetry.figures.readings import Readings
from telemetry.models import Actor
from telemetry.selectors import MIN_PEOPLE, ratio

if TYPE_CHECKING:
    from telemetry.engine.cancellations import Pause
    from telemetry.engine.likeness import Alike
    from telemetry.engine.resubmissions import Gaps

HIDDEN = f"What fewer than {MIN_PEOPLE} people share is left out."
_LOST_STATES = {"cancelled": "CANCELLED", "timeout": "TIMEOUT"}


def _median_wait(readings: Readings) -> Measured:
    waits = readings.study.waits
    return compare(
        readings, "Median wait", Unit.SECONDS,
        lambda actor: (waits[actor].median_s, waits[actor].jobs) if actor in waits else (None, 0),
    )  # fmt: skip


def _pause(readings: Readings) -> Measured:
    pauses = {one.actor: one for one in readings.study.pauses}
    rows = tuple(
        Row(actor.value, LABELS[actor], _pause_values(pauses.get(actor)), {"actor": actor.value, "state": "CANCELLED"})
        for actor in Actor
    )
    columns = (
        Column("value", "Median", Unit.SECONDS), Column("cancellations", "Cancellations", Unit.CALLS, adds_up=True),
        Column("followed", "Followed by an act", Unit.SHARE),
    )  # fmt: skip
    total = sum(one.cancellations for one in pauses.values())
    unknown = pauses[Actor.UNKNOWN].cancellations if Actor.UNKNOWN in pauses else 0
    return Measured(rows[0].values[0], columns, rows, ratio(unknown, total))


def _pause_values(pause: "Pause | None") -> tuple[Number | None, ...]:
    return (
        (pause.median_s, pause.cancellations, ratio(pause.followed, pause.cancellations)) if pause else (None, 0, None)
    )


def _again(readings: Readings) -> Measured:
    gaps = sorted(readings.study.gaps, key=lambda one: (one.outcome, Actor.values.index(one.actor)))
    columns = (
        Column("jobs", "Jobs", Unit.JOBS, adds_up=True),
        *(Column(f"within_{minutes}", f"Within {minutes} min", Unit.SHARE) for minutes in iteration.WITHIN_MINUTES),
        Column("median", "Median gap", Unit.SECONDS),
    )

    def jobs(actor: str = "") -> int:
        return sum(one.jobs for one in gaps if actor in ("", one.actor))

    agents = ratio(sum(one.again[-1] for one in gaps if one.actor == Actor.AGENT), jobs(Actor.AGENT))
    unknown = ratio(jobs(Actor.UNKNOWN), jobs())
    return Measured(agents, columns, tuple(map(_gap_row, gaps)), unknown, note=iteration.RESUBMITTED_NOTE)


def _gap_row(gaps: "Gaps") -> Row:
    label = LABELS[Actor(gaps.actor)]
    shares = (ratio(count, gaps.jobs) for count in gaps.again)
    state = _LOST_STATES.get(gaps.outcome)
    name = f"{iteration.OUTCOME_NAMES[gaps.outcome]}, {label[0].lower()}{label[1:]}"
    query = {"actor": gaps.actor, "state": state} if state else None
    return Row(f"{gaps.outcome}-{gaps.actor}", name, (gaps.jobs, *shares, gaps.median_s), query)


def _similar(readings: Readings) -> Measured:
    found = readings.study
    rows = tuple(_likeness_row(one, found.submitted) for one in found.alike)
    columns = (
        Column("jobs", "Jobs", Unit.JOBS), Column("share", "Of all", Unit.SHARE),
        Column("keys", "Different ones", Unit.KEYS), Column("users", "Most people", Unit.PEOPLE),
    )  # fmt: skip
    share = next((row.values[1] for row in rows if row.key == "application"), None)
    hidden = any(not enough(one.users) for one in found.alike)
    return Measured(share, columns, rows, note=f"{iteration.SIMILAR_NOTE} {HIDDEN if hidden else ''}".strip())


def _likeness_row(one: "Alike", submitted: int) -> Row:
    values = (one.jobs, ratio(one.jobs, submitted), one.keys, one.most_users or None)
    return Row(one.kind, iteration.LIKENESS_NAMES[one.kind], values if enough(one.users) else (None,) * len(values))


LIMIT = "Work is told apart by names, folders and submit lines: a script that is renamed is another one."
FIGURES = [
    Figure(
        "median-wait", Section.SCHEDULING, "Median wait", f"{iteration.MEDIAN_WAIT_WORDS} {BY_JOB}",
        RAN_WORDS, Unit.SECONDS, _median_wait, facility_only=True,
    ),
    Figure(
        "cancel-gap", Section.SCHEDULING, "Time from one cancellation to the next act",
        "From a second in which somebody’s jobs were cancelled to the same login name’s next submission or "
        f"cancellation, a second later at least; the median of those that an act followed. {BY_JOB}",
        "seconds in which a login name’s jobs were cancelled, however many", Unit.SECONDS, _pause, facility_only=True,
    ),
    Figure(
        "resubmitted", Section.SCHEDULING, iteration.RESUBMITTED, f"{iteration.RESUBMITTED_WORDS} {BY_JOB}",
        f"{iteration.RESUBMITTED_OF} in the period", Unit.SHARE, _again, facility_only=True,
    ),
    Figure(
        "similar-jobs", Section.MEMORY, iteration.SIMILAR, iteration.SIMILAR_WORDS, JOB_WORDS, Unit.SHARE, _similar,
        facility_only=True,
    ),
]  # fmt: skip
