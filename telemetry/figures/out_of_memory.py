"""The figure of jobs that ran out of memory and were submitted again unchanged (paper §VI-A)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from telemetry.engine import iteration
from telemetry.engine.cells import enough, withhold
from telemetry.figures.behaviour import BY_JOB
from telemetry.figures.kinds import Column, Figure, Measured, Number, Row, Section, Unit
from telemetry.figures.load import LABELS, OTHER_HARNESSES, SUPPRESSED, harness_row
from telemetry.figures.readings import Readings
from telemetry.models import Actor
from telemetry.selectors import ratio

if TYPE_CHECKING:
    from telemetry.engine.out_of_memory import MemoryAgain

_STATE = {"state": "OUT_OF_MEMORY"}
_COLUMNS = (
    Column("unchanged", "Unchanged", Unit.SHARE), Column("jobs", "Out of memory", Unit.JOBS),
    Column("again", "Submitted again", Unit.JOBS), Column("same", "With the same", Unit.JOBS),
    Column("more", "With more", Unit.JOBS), Column("less", "With less", Unit.JOBS),
    Column("unknown", "Memory not known", Unit.JOBS),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Group:
    """Some people's jobs that ended out of memory."""

    key: str
    label: str
    members: tuple["MemoryAgain", ...]
    query: dict[str, str] | None

    @property
    def people(self) -> int:
        return _people([self])

    @property
    def row(self) -> Row:
        """What `_COLUMNS` ask for; nothing of fewer than five people."""
        if not enough(self.people):
            return Row(self.key, self.label, (None,) * len(_COLUMNS))
        sums = {
            name: sum(getattr(one, name) for one in self.members)
            for name in ("jobs", "again", "same", "more", "less", "unknown")
        }
        unchanged: Number | None = ratio(sums["same"], sums["again"] - sums["unknown"])
        return Row(self.key, self.label, (unchanged, *sums.values()), self.query)


def _people(groups: Sequence[_Group]) -> int:
    return len({one.user for group in groups for one in group.members})


def _unchanged(readings: Readings) -> Measured:
    found = readings.study.out_of_memory
    if not found:
        return Measured(None, _COLUMNS)
    actors = [
        _Group(actor.value, LABELS[actor], tuple(one for one in found if one.actor == actor), {"actor": actor} | _STATE)
        for actor in Actor
    ]
    harnesses, few = _harnesses([one for one in found if one.actor == Actor.AGENT])
    rows = tuple(group.row for group in (*actors, *harnesses))
    jobs = sum(one.jobs for one in found)
    unknown: float | None = ratio(sum(one.jobs for one in found if one.actor == Actor.UNKNOWN), jobs)
    if not all(enough(group.people) for group in actors):
        few, unknown = True, None  # from a share of all and the rows that are shown the withheld one could be had
    return Measured(rows[0].values[0], _COLUMNS, rows, unknown, SUPPRESSED if few else "")


def _harnesses(found: Sequence["MemoryAgain"]) -> tuple[list[_Group], bool]:
    """Part agents' jobs by harness, those of fewer than five people together; say whether there are such."""
    groups = [
        _Group(
            *harness_row(name), tuple(one for one in found if one.harness == name),
            {"actor": Actor.AGENT.value, "harness": name} | _STATE if name else None,
        )
        for name in sorted({one.harness for one in found})
    ]  # fmt: skip
    by_people = sorted(groups, key=lambda one: -one.people)
    shown, rest = withhold(by_people, limit=len(groups), people_in=_people)
    if rest:
        members = tuple(one for group in rest for one in group.members)
        shown.append(_Group("harness-others", OTHER_HARNESSES, members, None))
    return shown, bool(rest)


LIMIT = "What is submitted again under another name or from another folder is not found."
FIGURES = [
    Figure(
        "oom-unchanged", Section.SCHEDULING, "Out-of-memory jobs submitted again with the same memory",
        "Jobs that ended out of memory and were submitted again by the same user within "
        f"{iteration.WITHIN_MINUTES[-1]} minutes (the same job name, script and folder): the share whose next "
        "submission had as much memory in all, what Slurm allocated or, before a start, what was asked for, in MiB. "
        f"Where either is not known, the job stands apart. {BY_JOB} Rows of harnesses part the agents’ row.",
        "jobs that ended out of memory in the period", Unit.SHARE, _unchanged, query=_STATE, facility_only=True,
    ),
]  # fmt: skip
