"""The figure of people whose agents fail twice the same way (paper §VI-A)."""

from telemetry.engine import iteration
from telemetry.engine.cells import LEFT_OUT, enough
from telemetry.figures.behaviour import BY_JOB
from telemetry.figures.kinds import Figure, Measured, Number, Row, Section, Unit
from telemetry.figures.load import LABELS
from telemetry.figures.readings import Readings
from telemetry.models import Actor
from telemetry.selectors import ratio


def _repeated(readings: Readings) -> Measured:
    from telemetry.engine.repeated_failures import COLUMNS, NONE, Repeats  # columns: nothing that a page loads

    def values(found: Repeats) -> tuple[Number | None, ...]:
        """Return what `COLUMNS` ask for, nothing of it about fewer than five people."""
        share, people, *rest, untold = found.values
        shown = untold if enough(found.untold_people) else None
        if not enough(found.people):
            return (None,) * len(COLUMNS)
        return (share, people, *rest, shown) if enough(found.repeated) else (None, people, *(None,) * len(rest), shown)

    found = {one.actor: one for one in readings.study.failures}
    rows = tuple(
        Row(actor.value, LABELS[actor], values(found.get(actor.value, NONE)), {"actor": actor.value}) for actor in Actor
    )
    jobs = {actor: one.jobs for actor, one in found.items()}
    unknown: float | None = ratio(jobs.get(Actor.UNKNOWN.value, 0), sum(jobs.values()))
    if not all(enough(one.people) for one in found.values()):
        unknown = None  # the failures of few could be had from it
    hidden = any(not enough(count) for one in found.values() for count in (one.people, one.repeated, one.untold_people))
    return Measured(rows[0].values[0], COLUMNS, rows, unknown, LEFT_OUT if hidden else "")


LIMIT = iteration.REPEATED_NOTE
FIGURES = [
    Figure(
        "repeated-failures", Section.MEMORY, "People whose agents fail twice the same way",
        f"{iteration.REPEATED_WORDS} {BY_JOB} The headline is of agents’ jobs.",
        f"{iteration.REPEATED_OF}, in the period", Unit.SHARE, _repeated, facility_only=True,
    ),
]  # fmt: skip
