"""What sacct on this host shows to who asks: a day at a time, believed only where it ends well and without a word.

What it prints goes to a file without a name, which is gone with the program: a facility's month is gigabytes.
"""

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import IO, Final

from portal.cli.shims.real import find_real
from portal.core.running import TooMuch, run_within
from telemetry.engine.slurm import asking

TIMEOUT_S: Final = 900.0  # of one day
DAYS: Final = 30
LONGEST_DAYS: Final = 800  # a call of sacct each
_MOST_COMPLAINT: Final = 1024 * 1024
_BY_HAND: Final = "Run sacct by hand, or make a dump where it works and name its file."
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FORMS: Final = ("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")


class NoAccounting(Exception):
    """Nothing that can be believed: why, a stable code, the remedy."""

    def __init__(self, detail: str, code: str, remedy: str) -> None:
        super().__init__(detail)
        self.detail, self.code, self.remedy = detail, code, remedy


@dataclass(frozen=True, slots=True)
class Window:
    """A span of time, UTC."""

    starts: datetime
    ends: datetime

    def days(self) -> Iterator["Window"]:
        """Cut at every midnight: sites limit the span of a question, and slurmdbd answers each as a whole."""
        first = self.starts
        while first < self.ends:
            midnight = first.replace(hour=0, minute=0, second=0) + timedelta(days=1)
            yield Window(first, min(midnight, self.ends))
            first = midnight


def window_of(start: str | None, end: str | None, *, now: datetime) -> Window:
    """Return the span between two instants as people write them; without them, the days before `now`.

    Errors: `NoAccounting`.
    """
    ends = _instant("--end", end) if end else now
    starts = _instant("--start", start) if start else ends - timedelta(days=DAYS)
    window = Window(starts, min(ends, now))
    if not window.starts < window.ends:
        raise NoAccounting("The window ends before it starts.", "window_empty", "Give an earlier --start.")
    if window.ends - window.starts > timedelta(days=LONGEST_DAYS):
        raise NoAccounting(f"The window is longer than {LONGEST_DAYS} days.", "window_long", "Give a later --start.")
    return window


def ask(window: Window, *, cluster: str, more: Sequence[str], into: IO[bytes], say: Callable[[str], None]) -> None:
    """Write every record of a window into a file, as one dump with some `more` columns; `say` is told how far it is.

    Errors: `NoAccounting` where any day of it cannot be had: half an answer is none.
    """
    days = list(window.days())
    for number, day in enumerate(days, start=1):
        say(f"Asking sacct: {day.starts:%Y-%m-%d}, day {number} of {len(days)}, {_size(into):,.0f} MB …")
        which = [*asking.between(day.starts, day.ends), *([f"--clusters={cluster}"] if cluster else [])]
        if number > 1:
            which.append("--noheader")
        _run(asking.sacct_command(*which, more=more), into)
        if not _ends_a_line(into):
            raise NoAccounting(f"sacct's answer for {day.starts:%Y-%m-%d} ends amid a line.", "slurm_cut", _BY_HAND)


def _run(command: tuple[str, ...], into: IO[bytes]) -> None:
    program, *arguments = command
    try:
        ran = run_within(
            [find_real(program, os.environ) or program, *arguments], into=into,
            environment=asking.clean_environment(os.environ), timeout_s=TIMEOUT_S, most_bytes=_MOST_COMPLAINT,
        )  # fmt: skip
    except FileNotFoundError:
        remedy = f"Run it where sacct is, as on a login node, or name the file of a dump. {asking.NO_COMMANDS}"
        raise NoAccounting("This host has no sacct.", "slurm_missing", remedy) from None
    except subprocess.TimeoutExpired:
        raise NoAccounting(f"sacct took more than {TIMEOUT_S:.0f} s for one day.", "slurm_slow", _BY_HAND) from None
    except TooMuch:
        raise NoAccounting("sacct complains without end.", "slurm_too_much", _BY_HAND) from None
    except OSError as error:
        raise NoAccounting(f"sacct cannot be run: {error.strerror}.", "slurm_missing", _BY_HAND) from None
    complaint = ran.complaint.decode(errors="replace").strip()
    if ran.status or complaint:
        detail, code, remedy = asking.explain_complaint("sacct", complaint or f"it ended with {ran.status}")
        shown = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in detail)
        raise NoAccounting(shown[:300], code or "slurm_unavailable", remedy or _BY_HAND)


def _size(file: IO[bytes]) -> float:
    return os.fstat(file.fileno()).st_size / 1e6


def _ends_a_line(file: IO[bytes]) -> bool:
    size = os.fstat(file.fileno()).st_size
    return not size or os.pread(file.fileno(), 1, size - 1) == b"\n"


def _instant(option: str, text: str) -> datetime:
    for form in _FORMS:
        with suppress(ValueError):
            instant = datetime.strptime(text, form).replace(tzinfo=UTC)
            if instant >= _EPOCH:
                return instant
    remedy = "Give a day since 1970 as 2026-07-01, or an instant as 2026-07-01T08:00; UTC."
    raise NoAccounting(f"{option} {ascii(text)[:60]} is no day.", "window_unreadable", remedy)
