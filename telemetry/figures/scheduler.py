"""Figures of what login names ask of the scheduler, beside what they submit (paper §IV-A)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from telemetry.engine.cells import enough, withhold
from telemetry.figures.kinds import Column, Figure, Measured, Number, Row, Section, Unit
from telemetry.figures.load import LABELS, OTHER_HARNESSES, SUPPRESSED, harness_row
from telemetry.figures.readings import Readings
from telemetry.models import Actor
from telemetry.selectors import ratio
from telemetry.selectors.scheduler import Asking

NO_COUNTS = "The controller’s counts were not read in this period: slurm_reader reads them."
BY_ACCOUNT = "By account: a login name with agents is an agent’s, whatever it typed itself."
CALL_WORDS = "login names that submitted a job or asked something, on days of which the controller’s counts were read"
VOLUMES = ((1, "1 to 9 jobs"), (10, "10 to 99 jobs"), (100, "100 to 999 jobs"), (1000, "1,000 jobs and more"))
_COLUMNS = (
    Column("value", "Calls for each job", Unit.RATIO), Column("calls", "Calls", Unit.CALLS),
    Column("jobs", "Submissions", Unit.SUBMISSIONS), Column("people", "People", Unit.PEOPLE),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Group:
    """Login names of one kind."""

    key: str
    label: str
    members: tuple[Asking, ...]

    @property
    def people(self) -> int:
        return len(self.members)

    @property
    def values(self) -> tuple[Number | None, ...]:
        """What `_COLUMNS` ask for."""
        calls, jobs = (sum(getattr(one, name) for one in self.members) for name in ("calls", "submissions"))
        return (ratio(calls, jobs), calls, jobs, self.people)


def _of(actor: Actor, asking: Iterable[Asking]) -> _Group:
    return _Group(actor.value, LABELS[actor], tuple(one for one in asking if one.actor == actor))


def _per_job(readings: Readings) -> Measured:
    found = readings.asking
    groups = [_of(actor, found) for actor in Actor]
    names = sorted({one.harness for one in found if one.actor == Actor.AGENT})
    harnesses = [
        _Group(*harness_row(name), tuple(one for one in found if one.actor == Actor.AGENT and one.harness == name))
        for name in names
    ]
    shown = _parted(harnesses, "harness-others", OTHER_HARNESSES)
    # Harnesses part the agents' row: only the rows of actors add up.
    return _measured([*groups, *shown], Actor.AGENT.value, found)


def _by_volume(readings: Readings) -> Measured:
    found, shown = readings.asking, []
    for actor in Actor:
        groups = []
        for place, (least, label) in enumerate(VOLUMES):
            most = VOLUMES[place + 1][0] if place + 1 < len(VOLUMES) else None
            within = [one for one in found if least <= one.submissions and (most is None or one.submissions < most)]
            of_actor = _of(actor, within)
            groups.append(_Group(f"{actor.value}-{least}", f"{of_actor.label}, {label}", of_actor.members))
        shown += _parted(groups, f"{actor.value}-others", f"{LABELS[actor]}, all other volumes")
    return _measured(shown, f"{Actor.AGENT.value}-{VOLUMES[-1][0]}", found)


def _parted(groups: Sequence[_Group], key: str, label: str) -> list[_Group]:
    """Return the groups of five people and more, and the others as one, so that none is had by subtraction."""
    some = [group for group in groups if group.people]
    shown, rest = withhold(
        sorted(some, key=lambda one: -one.people), limit=len(some),
        people_in=lambda few: sum(one.people for one in few),
    )  # fmt: skip
    members = tuple(member for group in rest for member in group.members)
    return [group for group in some if group in shown] + ([_Group(key, label, members)] if rest else [])


def _measured(groups: Sequence[_Group], headline: str, found: Sequence[Asking]) -> Measured:
    rows = tuple(_row(group) if enough(group.people) else _hidden(group) for group in groups)
    value = next((row.values[0] for row in rows if row.key == headline), None)
    few = any(group.key.endswith("-others") for group in groups)
    return Measured(value, _COLUMNS, rows, _unknown(found), note=_note(found, SUPPRESSED if few else ""))


def _row(group: _Group) -> Row:
    return Row(group.key, group.label, group.values)


def _hidden(group: _Group) -> Row:
    return Row(group.key, group.label, (None,) * len(_COLUMNS))


def _unknown(found: Sequence[Asking]) -> float | None:
    """Return the share of calls that is not attributed; None where a row of few people could be had from it."""
    groups = [_of(actor, found) for actor in Actor]
    if not all(enough(group.people) for group in groups):
        return None
    unknown = sum(one.calls for one in found if one.actor == Actor.UNKNOWN)
    return ratio(unknown, sum(one.calls for one in found))


def _note(found: Sequence[Asking], more: str) -> str:
    return more if found else NO_COUNTS


LIMIT = "The controller counts by login name: what people with agents type themselves counts as their agents’."
FIGURES = [
    Figure(
        "queries-per-job", Section.SCHEDULING, "Scheduler queries for each job",
        "What login names asked of the controller, by every command and library, over what they submitted. "
        f"{BY_ACCOUNT} Rows of harnesses part the agents’ row, each login name by most of its agents’ jobs.",
        CALL_WORDS, Unit.RATIO, _per_job, facility_only=True,
    ),
    Figure(
        "queries-high-volume", Section.SCHEDULING, "Scheduler queries for each job, by how much a person submits",
        f"The same, by how many jobs a login name submitted. {BY_ACCOUNT} The headline is of agents with most jobs.",
        CALL_WORDS, Unit.RATIO, _by_volume, facility_only=True,
    ),
]  # fmt: skip
