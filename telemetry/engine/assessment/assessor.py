"""Read dumps block by block and keep sums alone; what they say is asked for at the end."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO, Final

import polars as pl

from telemetry.engine.assessment.formats import open_dump
from telemetry.engine.assessment.frames import SCHEMA, Framer, Known, Lines
from telemetry.engine.assessment.gpus import GpuJobs, GpuUse, Readings
from telemetry.engine.assessment.seen import Seen
from telemetry.engine.assessment.sums import UTC as UTC_ZONE
from telemetry.engine.assessment.sums import Sums
from telemetry.engine.assessment.waiting import Waiting
from telemetry.engine.job_outcomes import with_outcome
from telemetry.engine.likeness import Alike, Likeness
from telemetry.engine.repeated_failures import RepeatedFailures, Repeats
from telemetry.engine.resubmissions import Gaps, Resubmissions
from telemetry.engine.similarity_columns import key_columns
from telemetry.engine.slurm.values import ENDED_STATES

_ENDED: Final = sorted(ENDED_STATES)


@dataclass(frozen=True, slots=True)
class Assessment:
    """What dumps said. `repeated` are records that had been read before; `sums` are tallies by user and place."""

    lines: Lines
    repeated: int
    live: int
    known: Known
    sums: Sums
    alike: list[Alike]
    gaps: list[Gaps]
    gpus: GpuUse | None = None
    failures: tuple[Repeats, ...] = ()

    @property
    def jobs(self) -> int:
        """Records counted, each once."""
        return self.lines.jobs - self.repeated

    @property
    def period(self) -> tuple[datetime, datetime]:
        """First and last submission, UTC. Errors: `ValueError` without any job."""
        span = self.sums.span.table()
        first, last = int(span["first_s"].min()), int(span["last_s"].max())  # type: ignore[arg-type]
        return datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC)


class Assessor:
    """Fold dumps of one cluster into an `Assessment`; `cluster` leaves out what another cluster's name stands on.

    Of several records of a job the last word counts, by the rule of ingest. Where records of an ended job differ, which
    one that is, is known behind the last dump alone: then `again` reads all of them once more, in the same order.
    """

    def __init__(
        self, *, now_s: int, known: Known, cluster: str = "", zone: str = UTC_ZONE, readings: Readings | None = None,
        last: pl.DataFrame | None = None,
    ) -> None:  # fmt: skip
        """Prepare to read; hours of the week are those of `zone`, and `readings` those of GPUs, if there are any.

        Errors: `ValueError` where there is no such zone.
        """
        self._now_s, self._known, self._cluster = now_s, known, cluster
        self._lines, self._seen, self._sums = Lines(), Seen(last), Sums(zone)
        self._likeness, self._resubmissions, self._failures = Likeness(), Resubmissions(), RepeatedFailures()
        self._readings, self._gpus = readings, None if readings is None else GpuJobs(readings)
        self._waiting, self._repeated, self._told = Waiting(SCHEMA), 0, 0

    def read(self, source: BinaryIO, *, note: Callable[[int], None] = lambda offset: None) -> None:
        """Read one dump; `note` is told how many bytes were read. Errors: `FormatError` when it is none."""
        dump = open_dump(source, now_s=self._now_s)
        self._lines.warnings.update(dump.warnings)
        framer = Framer(dump.plan, self._known, self._lines, cluster=self._cluster)
        for block in dump.blocks:
            self._fold(framer.frame(block))
            note(block.offset)

    def again(self) -> "Assessor | None":
        """Return who must read all dumps once more, for records of an ended job differ; None where none do."""
        last = self._seen.last_words()
        if last.is_empty():
            return None
        return Assessor(
            now_s=self._now_s, known=self._known, cluster=self._cluster, zone=self._sums.zone,
            readings=self._readings, last=last,
        )  # fmt: skip

    def finish(self) -> Assessment:
        """Count what was live when it was last told of, and work out what needs all jobs at once."""
        last = self._waiting.last()
        last = last.filter(~self._seen.among(last))
        self._repeated += self._told - len(last)
        self._add(last)
        live = len(last.filter(pl.col("end_s").is_null()))
        some = self._lines.jobs > 0
        gpus = self._gpus.finish() if self._gpus and some else None
        alike, gaps = (self._likeness.table(), self._resubmissions.gaps()) if some else ([], [])
        failures = tuple(self._failures.repeats()) if some else ()
        return Assessment(self._lines, self._repeated, live, self._known, self._sums, alike, gaps, gpus, failures)

    def _fold(self, jobs: pl.DataFrame) -> None:
        """Add those that have ended; the others wait, for a later record may tell of their end."""
        has_ended = pl.col("state").is_in(_ENDED)
        self._waiting.add(jobs.filter(~has_ended))
        ended = jobs.filter(has_ended)
        new = self._seen.only_new(ended)
        self._told += len(jobs) - len(ended)
        self._repeated += len(ended) - len(new)
        self._add(new)

    def _add(self, jobs: pl.DataFrame) -> None:
        if jobs.is_empty():
            return
        keys, told = key_columns(jobs), with_outcome(jobs)
        self._sums.add(told)
        self._likeness.add(told, keys)
        if self._gpus is not None:
            self._gpus.add(told)
        actor = pl.when("agent").then(pl.lit("agent")).otherwise(pl.lit("unknown")).alias("actor")
        told = told.with_columns(actor)
        self._resubmissions.add(told, keys["script"])
        self._failures.add(told, keys["template"])
