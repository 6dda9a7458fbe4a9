"""Read dumps block by block and keep sums alone; what they say is asked for at the end."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import polars as pl

from telemetry.engine.assessment.frames import SCHEMA, Framer, Known, Lines
from telemetry.engine.assessment.seen import Seen, keys_of
from telemetry.engine.assessment.sums import UTC as UTC_ZONE
from telemetry.engine.assessment.sums import Sums
from telemetry.engine.job_outcomes import with_outcome
from telemetry.engine.likeness import Alike, Likeness
from telemetry.engine.resubmissions import Gaps, Resubmissions
from telemetry.engine.similarity_columns import key_columns
from telemetry.engine.slurm.bulk import BulkReader
from telemetry.engine.slurm.columns import compile_plan
from telemetry.engine.slurm.lines import Source

BLOCK_ROWS: Final = 50_000


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
    """Fold dumps of one cluster into an `Assessment`; `cluster` leaves out what another cluster's name stands on."""

    def __init__(self, *, now_s: int, known: Known, cluster: str = "", zone: str = UTC_ZONE) -> None:
        """Prepare to read; hours of the week are those of `zone`. Errors: `ValueError` where there is no such zone."""
        self._now_s, self._known, self._cluster = now_s, known, cluster
        self._lines, self._seen, self._sums = Lines(), Seen(), Sums(zone)
        self._likeness, self._resubmissions = Likeness(), Resubmissions()
        self._live, self._repeated = [pl.DataFrame(schema=SCHEMA)], 0

    def read(self, source: Source, *, note: Callable[[int], None] = lambda offset: None) -> None:
        """Read one dump; `note` is told how many bytes were read. Errors: `FormatError` when it is none."""
        reader = BulkReader(source, now_s=self._now_s, block_rows=BLOCK_ROWS)
        framer = Framer(compile_plan(reader.header), self._known, self._lines, cluster=self._cluster)
        for block in reader:
            self._fold(framer.frame(block))
            note(block.offset)

    def finish(self) -> Assessment:
        """Count what was live when it was last told of, and work out what needs all jobs at once."""
        live = self._last_of_live()
        self._add(live)
        some = self._lines.jobs > 0
        alike, gaps = (self._likeness.table(), self._resubmissions.gaps()) if some else ([], [])
        return Assessment(self._lines, self._repeated, len(live), self._known, self._sums, alike, gaps)

    def _fold(self, jobs: pl.DataFrame) -> None:
        """Add those that have ended; the others wait, for a later dump may tell of their end."""
        self._live.append(jobs.filter(pl.col("end_s").is_null()))
        ended = jobs.filter(pl.col("end_s").is_not_null())
        new = self._seen.only_new(ended)
        self._repeated += len(ended) - len(new)
        self._add(new)

    def _last_of_live(self) -> pl.DataFrame:
        """Return what was told last of each job that no dump has seen end."""
        live = pl.concat(self._live)
        last = live.with_columns(keys_of(live)).sort("elapsed_s", maintain_order=True).unique("key", keep="last")
        last = last.filter(~self._seen.among(last)).drop("key")
        self._repeated += len(live) - len(last)
        return last

    def _add(self, jobs: pl.DataFrame) -> None:
        if jobs.is_empty():
            return
        keys, told = key_columns(jobs), with_outcome(jobs)
        self._sums.add(told)
        self._likeness.add(told, keys)
        actor = pl.when("agent").then(pl.lit("agent")).otherwise(pl.lit("unknown")).alias("actor")
        self._resubmissions.add(told.with_columns(actor), keys["script"])
