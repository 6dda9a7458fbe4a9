"""Sums of jobs, and medians of whole numbers that were counted."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

_MINUTE_S: Final = 60
_FIVE_MINUTES_S: Final = 300


@dataclass(slots=True)
class Sums:
    """What some jobs come to; `run_times` counts those that ran by their seconds."""

    submissions: int = 0
    in_office: int = 0
    core_s: int = 0
    gpu_s: int = 0
    ended: int = 0
    cancelled: int = 0
    run_times: Counter[int] = field(default_factory=Counter)
    people: set[int] = field(default_factory=set)

    def note_submitted(self, person: int, jobs: int, *, in_office: bool) -> None:
        """Count jobs of a submission."""
        self.people.add(person)
        self.submissions += jobs
        self.in_office += jobs if in_office else 0

    def note_ended(self, cancelled: bool, elapsed_s: int | None) -> None:
        """Count a job that ended; `elapsed_s` None where it never started."""
        self.ended += 1
        self.cancelled += cancelled
        if elapsed_s is not None:
            self.run_times[elapsed_s] += 1

    def loads(self, people: int) -> dict[str, float]:
        """Return the four measures of Figure 2, with so many people."""
        return {
            "users": people, "submissions": self.submissions, "core_hours": self.core_s / 3600,
            "gpu_hours": self.gpu_s / 3600,
        }  # fmt: skip

    def behaviour(self) -> dict[str, Any]:
        """Return how the jobs went."""
        ran = self.run_times.total()

        def within(limit_s: int) -> float | None:
            return share_of(sum(jobs for seconds, jobs in self.run_times.items() if seconds <= limit_s), ran)

        return {
            "outside_office_hours": share_of(self.submissions - self.in_office, self.submissions),
            "ended": self.ended, "ran": ran, "cancelled": share_of(self.cancelled, self.ended),
            "within_a_minute": within(_MINUTE_S), "within_five_minutes": within(_FIVE_MINUTES_S),
            "run_time_median_s": median_of(self.run_times),
        }  # fmt: skip


def share_of(part: float, whole: float) -> float | None:
    """Divide; None where there is nothing."""
    return part / whole if whole else None


def median_of(counted: Counter[int]) -> float:
    """Return the median of counted numbers, of two in the middle the lower; 0 of none."""
    half, seen = (counted.total() + 1) // 2, 0
    for value in sorted(counted):
        seen += counted[value]
        if seen >= half:
            return value
    return 0
