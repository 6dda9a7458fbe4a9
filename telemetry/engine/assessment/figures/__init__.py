"""The figures of an assessment, section by section."""

from dataclasses import asdict, dataclass
from typing import Any, Final

from telemetry.engine.assessment.assessor import Assessment
from telemetry.engine.assessment.figures import alike, dumps, gpus, load, missing, places, rhythm, scheduling
from telemetry.engine.assessment.figures.kinds import Reading
from telemetry.engine.report_content import Column, Figure, Row, Section

SCHEMA: Final = 1
MISSING_TITLE: Final = "What this cannot say yet"
LIMITS: Final = (
    "Who is not known to use an agent is not attributed; that is no claim that a person typed it.",
    "Agent users and others are different people; not every difference is caused by agents.",
    "Days are UTC days, as far as sacct ran with TZ=UTC: its text does not say its zone.",
    "Submit lines, comments and folders are compared as hashes; none is shown.",
)
OWN_SIGHT: Final = (
    "These are the jobs that sacct shows to whoever ran this: where a site hides other people’s, their own alone. What "
    "was cancelled before it could start is in no span of time that sacct is asked for."
)


@dataclass(frozen=True, slots=True)
class Content:
    """A whole assessment, in the form of a report's content. Equal dumps give an equal content."""

    schema: int
    title: str
    cluster: str
    first: str
    last: str
    knows_agents: bool
    absent: tuple[str, ...]  # login names said to run agents, of whom there is no job
    definitions: dict[str, str]
    limits: tuple[str, ...]
    sections: tuple[Section, ...]

    def as_json(self) -> dict[str, Any]:
        """Return plain values, for JSON and for templates: what may be handed on, so without anybody's name."""
        plain = asdict(self)
        del plain["absent"]
        return plain


def content_of(found: Assessment, *, cluster: str, asked: bool = False) -> Content:
    """Put the figures together; `asked` says that sacct was, by whoever sees them.

    Errors: `ValueError` where no job was counted.
    """
    if not found.jobs:
        raise ValueError("no job was counted")
    reading = Reading(found)
    first, last = found.period
    use = found.gpus
    gpu_sections = () if use is None else (Section("What jobs do with their GPUs", tuple(gpus.figures(reading, use))),)
    sections = (
        Section("The load", tuple(load.figures(reading))),
        Section("When jobs come and how long they run", tuple(rhythm.figures(reading))),
        Section("Outcomes, waits and trials", (*scheduling.figures(reading), *places.figures(reading))),
        *gpu_sections,
        Section("Work shared between people", tuple(alike.figures(reading))),
        Section("How the dumps were read", tuple(dumps.figures(reading))),
        Section(MISSING_TITLE, tuple(missing.figures(has_gpus=found.gpus is not None))),
    )
    return Content(
        SCHEMA, "First assessment", cluster, first.date().isoformat(), last.date().isoformat(),
        not found.known.is_nothing, tuple(reading.absent()), {"account": load.DEFINITION},
        (*LIMITS, *_absent_words(reading), *([OWN_SIGHT] if asked else [])), sections,
    )  # fmt: skip


def _absent_words(reading: Reading) -> list[str]:
    given, absent = len(reading.found.known.users), len(reading.absent())
    return [f"Of {given} login names that were given as agents’, {absent} have no job here."] if absent else []


__all__ = ["LIMITS", "Column", "Content", "Figure", "Row", "Section", "content_of"]
