"""How numbers, times and amounts read on every page. Pure Python: no Django, so tests need no settings.

The rules are one table: 3,955,570 in tables and 3.96 M in labels; 55.8 % with a narrow no-break space; points
for differences of shares; a true minus; durations in their two largest units; "–" for what is absent, 0 for zero.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal

NNBSP = "\u202f"  # narrow no-break space, between a number and its sign
NBSP = "\u00a0"
MINUS = "\u2212"
ABSENT = "–"
_SCALES = ((1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"))
_BYTES = ("B", "kB", "MB", "GB", "TB", "PB")
Number = int | float | Decimal


def rounded(value: Number, places: int) -> str:
    """Return `value` with exactly `places` decimals, thousands separated, halves rounded up, true minus."""
    step = Decimal(1).scaleb(-places)
    number = Decimal(str(value)).quantize(step, rounding=ROUND_HALF_UP)
    text = f"{abs(number):,}"
    return f"{MINUS}{text}" if number < 0 else text


def is_absent(value: object) -> bool:
    """Say whether `value` is nothing to show: None, an empty string or not a number."""
    return value is None or value == "" or (isinstance(value, float) and not math.isfinite(value))


def count(value: Number | None, places: int | None = None) -> str:
    """Write a number in full: 3,955,570; floats keep two decimals unless `places` says otherwise."""
    if value is None or is_absent(value):
        return ABSENT
    if places is None:
        places = 0 if float(value).is_integer() else 2
    return rounded(value, places)


def counted(value: Number | None, noun: str, write: Callable[[Number | None], str] = count) -> str:
    """Write a number with its noun: 1 core, 16 cores; `noun` takes an s for many. `write` writes the number."""
    text = write(value)
    return f"{text} {noun}{'' if text == '1' else 's'}"


def short(value: Number | None) -> str:
    """Write a number in three digits for a label: 3.96 M, 35.7 M; below a million in full."""
    if value is None or is_absent(value):
        return ABSENT
    for scale, letter in _SCALES:
        part = abs(float(value)) / scale
        if part >= 0.9995:
            text = rounded(part, 2 if part < 9.995 else 1 if part < 99.95 else 0)
            return f"{MINUS if value < 0 else ''}{text}{NBSP}{letter}"
    return count(value, 0 if abs(float(value)) >= 100 else None)


def percent(share: Number | None, places: int = 1) -> str:
    """Write a share between 0 and 1 as 55.8 %."""
    return ABSENT if share is None or is_absent(share) else f"{rounded(float(share) * 100, places)}{NNBSP}%"


def share_of(part: Number | None, whole: Number | None) -> float | None:
    """Return part / whole as a share, or None where there is no whole to be a share of."""
    if part is None or whole is None or not whole:
        return None
    return float(part) / float(whole)


def on_days(some: int, days: int, what: str = "") -> str:
    """Write on how many of some days: on 21 of 30 days, on all 30 days, on no day, on the one day; `what` follows."""
    if days == 0 or some == 0:
        said = "no day"
    elif days == 1:
        said = "the one day"
    else:
        said = f"all {days:,} days" if some == days else f"{some:,} of {days:,} days"
    return f"on {said} {what}".rstrip()


def signed(value: Number | None, places: int | None = None) -> str:
    """Write a change with its sign: +610, −14, 0."""
    text = count(value, places)
    return f"+{text}" if value is not None and not is_absent(value) and value > 0 else text


def points(difference: Number | None, places: int = 1) -> str:
    """Write a difference of two shares in percentage points: +2.1 pt."""
    if difference is None or is_absent(difference):
        return ABSENT
    return f"{signed(round(float(difference) * 100, places + 2), places)}{NNBSP}pt"


def ratio(value: Number | None) -> str:
    """Write a ratio: 2.9 ×, and 14 × from ten on."""
    if value is None or is_absent(value):
        return ABSENT
    return f"{rounded(value, 1 if abs(float(value)) < 9.95 else 0)}{NNBSP}×"


def money(value: Number | None, places: int | None = None) -> str:
    """Write dollars: $4,812, $46.80."""
    if value is None or is_absent(value):
        return ABSENT
    if places is None:
        places = 0 if float(value).is_integer() or abs(float(value)) >= 1000 else 2
    text = rounded(abs(float(value)), places)
    return f"{MINUS if value < 0 else ''}${text}"


def hours(value: Number | None, unit: str) -> str:
    """Write an amount of `unit` ("GPU" or "core") hours in full: 5.1 GPU-hours, 61,400 core-hours."""
    if value is None or is_absent(value):
        return ABSENT
    places = 0 if abs(float(value)) >= 100 or float(value).is_integer() else 1
    text = rounded(value, places)
    return f"{text}{NBSP}{unit}-hour{'' if text == '1' else 's'}"


def size(value: Number | None) -> str:
    """Write bytes in decimal units: 88.4 GB."""
    if value is None or is_absent(value):
        return ABSENT
    amount = float(value)
    for unit in _BYTES:
        if abs(amount) < 999.5 or unit == _BYTES[-1]:
            break
        amount /= 1000
    return f"{rounded(amount, 0 if unit == 'B' or abs(amount) >= 99.95 else 1)}{NBSP}{unit}"


def duration(seconds: Number | dt.timedelta | None) -> str:
    """Write a length of time in its two largest units: 1 min 52 s, 2 h 06 min, 7 d 11 h; under 10 s as 0.9 s."""
    total = seconds_of(seconds)
    if total is None:
        return ABSENT
    sign, total = (MINUS if total < 0 else ""), abs(total)
    if total < 9.95 and total != int(total):
        return f"{sign}{rounded(total, 1)}{NBSP}s"
    return sign + _largest_two(round(total))


def _largest_two(total: int) -> str:
    days, rest = divmod(total, 86_400)
    hour, rest = divmod(rest, 3600)
    minute, second = divmod(rest, 60)
    if days:
        return _pair(f"{days:,}", "d", f"{hour}", "h", keep=hour > 0)
    if hour:
        return _pair(f"{hour}", "h", f"{minute:02d}", "min", keep=minute > 0)
    if minute:
        return _pair(f"{minute}", "min", f"{second:02d}", "s", keep=second > 0)
    return f"{second}{NBSP}s"


def _pair(first: str, unit: str, second: str, unit2: str, *, keep: bool) -> str:
    return f"{first}{NBSP}{unit}" + (f"{NBSP}{second}{NBSP}{unit2}" if keep else "")


def seconds_of(value: Number | dt.timedelta | None) -> float | None:
    """Return a duration in seconds, or None where it is absent."""
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    return None if value is None or is_absent(value) else float(value)


def stopwatch(seconds: Number | dt.timedelta | None) -> str:
    """Write a running time as Slurm does, h:mm:ss: 0:11:08."""
    total = seconds_of(seconds)
    if total is None:
        return ABSENT
    minutes, second = divmod(int(total), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02d}:{second:02d}"


def day(value: dt.date | None, *, year: bool = False) -> str:
    """Write a date: 7 Jul, or 31 Oct 2026 with its year."""
    if value is None:
        return ABSENT
    text = f"{value.day}{NBSP}{value:%b}"
    return f"{text}{NBSP}{value.year}" if year else text


def date_range(first: dt.date, last: dt.date) -> str:
    """Write two dates, both included: 7 Jul – 1 Aug; with years where they differ."""
    if first == last:
        return day(first)
    years = first.year != last.year
    return f"{day(first, year=years)} – {day(last, year=years)}"


def relative(then: dt.datetime, now: dt.datetime) -> str | None:
    """Return "just now", "4 s ago", "38 min ago" or "in 12 min" within an hour of `now`, else None."""
    delta = (now - then).total_seconds()
    if abs(delta) >= 3600:
        return None
    if 0 <= delta < 2:
        return "just now"
    amount = int(abs(delta))
    text = f"{amount}{NBSP}s" if amount < 60 else f"{amount // 60}{NBSP}min"
    return f"{text}{NBSP}ago" if delta >= 0 else f"in{NBSP}{text}"


def moment(then: dt.datetime, now: dt.datetime, zone: dt.tzinfo, form: str = "auto") -> str:
    """Write a moment in the facility's zone; both moments are aware.

    Forms: `auto` (relative below an hour, then clock, then date), `clock` 10:42, `second` 10:42:07, `when`
    (today 10:04, 2 Aug 22:14), `day` 7 Jul, `date` 31 Oct 2026.
    """
    local, here = then.astimezone(zone), now.astimezone(zone)
    fixed = {
        "clock": f"{local:%H:%M}",
        "second": f"{local:%H:%M:%S}",
        "day": day(local),
        "date": day(local, year=True),
    }
    if form in fixed:
        return fixed[form]
    if form == "auto" and (near := relative(then, now)):
        return near
    return _calendar(local, here, today="" if form == "auto" else f"today{NBSP}")


def _calendar(local: dt.datetime, here: dt.datetime, *, today: str) -> str:
    if local.date() == here.date():
        return f"{today}{local:%H:%M}"
    if local.year != here.year:
        return day(local, year=True)
    return f"{day(local)}{NBSP}{local:%H:%M}"
