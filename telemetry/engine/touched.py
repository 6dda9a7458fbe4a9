"""Which days of a user a change of a job touches: those whose rollups must be computed anew."""

from datetime import date
from typing import Final, NamedTuple

from telemetry.engine.usage import DAY_S

_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()


class Footprint(NamedTuple):
    """Where a job counts. Times: UTC epoch seconds; `usage_end_s` is its end or the last instant it was seen running.

    `shape` is all else that its share of a day depends on: lab, partition, QoS, actor, harness, sizes.
    """

    user_id: int
    submit_s: int
    start_s: int | None
    usage_end_s: int | None
    elapsed_s: int
    shape: tuple[object, ...]

    @property
    def is_steady(self) -> bool:
        """Whether it used its cores without a break, so that a later end changes no earlier day."""
        start, end = self.start_s, self.usage_end_s
        return start is not None and end is not None and self.elapsed_s == end - start


def days_of(job: Footprint) -> set[int]:
    """Return the days (since 1970) on which a job counts: of its submit, its end, and each on which it ran."""
    submitted = job.submit_s // DAY_S
    if job.usage_end_s is None:
        return {submitted}
    last = job.usage_end_s // DAY_S
    first = last if job.start_s is None else job.start_s // DAY_S
    return {submitted, last} if first >= last else {submitted, *range(first, last + 1)}


def touched_days(old: Footprint | None, new: Footprint) -> set[tuple[int, int]]:
    """Return the (day since 1970, user id) pairs that a change touches, under the old and the new key both.

    A job that only ran on touches no day before the one it was last seen on.
    """
    if old is not None and _only_ran_on(old, new):
        first, last = sorted((old.usage_end_s or 0, new.usage_end_s or 0))
        return {(day, new.user_id) for day in range(first // DAY_S, last // DAY_S + 1)}
    pairs = {(day, new.user_id) for day in days_of(new)}
    if old is not None:
        pairs.update((day, old.user_id) for day in days_of(old))
    return pairs


def _only_ran_on(old: Footprint, new: Footprint) -> bool:
    same = (old.user_id, old.submit_s, old.start_s, old.shape) == (new.user_id, new.submit_s, new.start_s, new.shape)
    return same and old.is_steady and new.is_steady


def as_date(day: int) -> date:
    """Return the date of a day since 1970."""
    return date.fromordinal(_EPOCH_ORDINAL + day)
