"""The picture of a short table: a line a row, agents’ and people’s numbers as dots on one scale, medians with bounds.

Drawn without script, for print too. Places are percentages of the width, so that dots stay round at any.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from portal.reports import inks
from portal.reports.headings import RUN_BY, heading_of

Json = dict[str, Any]
Write = Callable[[float | None, str], str]
_LEFT, _RIGHT = 2.0, 98.0  # percent: a dot at either end keeps its whole width
_WIDE: Final = 30  # largest over smallest: beyond that a scale of equal steps hides the small ones
_TICKS: Final = 4
_COLOURS: Final = {"agent": inks.AGENT, "human": inks.HUMAN, "rest": "#16211F"}
_NAMES: Final = {"agent": "Agents", "human": "People", "rest": "Not attributed"}
_STEPS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
_WITHIN: Final = "within_"


@dataclass(frozen=True, slots=True)
class Dot:
    """A number of a row, with the bounds of its interval where it has some."""

    kind: str
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A row: its name, and its dots."""

    name: str
    dots: tuple[Dot, ...]


def dots_of(figure: Json, shown: Write) -> Json | None:
    """Return dots of a figure that sets agents beside people, or has medians with bounds; None of any other."""
    keys = [column["key"] for column in figure["columns"]]
    if not keys or "unknown" in {key.split("_")[0] for key in keys}:
        return None  # parts of a whole, and no two of a kind
    if keys[:3] == ["value", "low", "high"]:
        lines = [Line(row["label"], _bounded(row)) for row in figure["rows"]]
        place = 0
    elif heading_of(figure) == RUN_BY and keys[0].startswith(_WITHIN):
        lines, place = _within(figure), 0
    elif heading_of(figure) == RUN_BY:
        lines = [Line(row["label"], _one(_kind(row["key"]), row["values"][0])) for row in figure["rows"]]
        place = 0
    else:
        found = {kind: _first(keys, kind) for kind in ("agent", "human")}
        if None in found.values():
            return None
        lines = [
            Line(row["label"], tuple(dot for kind, at in found.items() for dot in _one(kind, row["values"][at])))
            for row in figure["rows"]
        ]
        place = found["agent"] or 0
    return _drawn(figure, [line for line in lines if line.dots], figure["columns"][place]["unit"], shown)


def _kind(key: str) -> str:
    return "human" if key == "human" else "rest" if key in ("unknown", "trials") else "agent"


def _one(kind: str, value: float | None) -> tuple[Dot, ...]:
    return () if value is None else (Dot(kind, value),)


def _bounded(row: Json) -> tuple[Dot, ...]:
    value, low, high = row["values"][:3]
    return () if value is None else (Dot(_kind(row["key"]), value, low, high),)


def _within(figure: Json) -> list[Line]:
    """Turn shares within some minutes: a line a bound, agents’ and people’s dots on it."""
    rows = [row for row in figure["rows"] if row["key"] in ("agent", "human")]
    return [
        Line(column["title"], tuple(dot for row in rows for dot in _one(row["key"], row["values"][place])))
        for place, column in enumerate(figure["columns"]) if column["key"].startswith(_WITHIN)
    ]  # fmt: skip


def _first(keys: list[str], kind: str) -> int | None:
    return next((place for place, key in enumerate(keys) if key.split("_")[0] == kind), None)


def _drawn(figure: Json, lines: list[Line], unit: str, shown: Write) -> Json | None:
    numbers = [
        number for line in lines for dot in line.dots for number in (dot.value, dot.low, dot.high) if number is not None
    ]
    if len(numbers) < 2 or max(numbers) <= 0:
        return None
    scale = _Scale.of(numbers, unit)
    kinds = [kind for kind in _COLOURS if any(dot.kind == kind for line in lines for dot in line.dots)]
    said = "; ".join(f"{line.name}: {', '.join(_said(dot, unit, shown) for dot in line.dots)}" for line in lines)
    return {
        "lines": [
            {"name": line.name, "marks": [_mark(dot, scale) for dot in line.dots], "link": _link(line, scale)}
            for line in lines
        ],
        "keys": [_key(kind) for kind in kinds],
        "ticks": [{"x": f"{scale.at(tick):.1f}", "words": shown(tick, unit)} for tick in scale.ticks],
        "is_log": scale.is_log, "has_bounds": any(dot.low is not None for line in lines for dot in line.dots),
        "label": f"{figure['title']}. {said}.",
    }  # fmt: skip


def _said(dot: Dot, unit: str, shown: Write) -> str:
    bounds = "" if dot.low is None else f" ({shown(dot.low, unit)} to {shown(dot.high, unit)})"
    return f"{_NAMES[dot.kind].lower()} {shown(dot.value, unit)}{bounds}"


def _key(kind: str) -> Json:
    return {"kind": kind, "name": _NAMES[kind], "colour": _COLOURS[kind], "fill": _fill(kind)}


def _fill(kind: str) -> str:
    return "#FFFFFF" if kind == "human" else _COLOURS[kind]  # a ring: told apart without colour


def _mark(dot: Dot, scale: "_Scale") -> Json:
    ends = None if dot.low is None or dot.high is None else (f"{scale.at(dot.low):.1f}", f"{scale.at(dot.high):.1f}")
    return {"kind": dot.kind, "x": f"{scale.at(dot.value):.1f}", "ends": ends, "colour": _COLOURS[dot.kind],
            "fill": _fill(dot.kind)}  # fmt: skip


def _link(line: Line, scale: "_Scale") -> tuple[str, str] | None:
    """Return the ends of the line that joins two dots."""
    if len(line.dots) != 2:
        return None
    low, high = sorted(scale.at(dot.value) for dot in line.dots)
    return f"{low:.1f}", f"{high:.1f}"


@dataclass(frozen=True, slots=True)
class _Scale:
    """Where a number is: from zero in equal steps, or in powers of ten, where zero stands a step before the least."""

    first: float
    last: float
    is_log: bool
    ticks: tuple[float, ...]

    @classmethod
    def of(cls, numbers: Iterable[float], unit: str) -> "_Scale":
        """Return the scale that holds some numbers, none of them below zero."""
        known = sorted(numbers)
        positive = [number for number in known if number > 0]
        if unit != "share" and positive[-1] / positive[0] > _WIDE:
            first, last = math.floor(math.log10(positive[0])), math.ceil(math.log10(positive[-1]))
            first -= known[0] <= 0
            every = math.ceil((last - first) / (_TICKS + 1))
            ticks = [10.0**power for power in range(first, last + 1, every)]
            return cls(first, last, True, (0.0, *ticks[1:]) if known[0] <= 0 else tuple(ticks))
        step = _step_s(positive[-1]) if unit == "s" else _step(positive[-1])
        last_step = math.ceil(positive[-1] / step - 1e-9)
        return cls(0, last_step * step, False, tuple(step * number for number in range(last_step + 1)))

    def at(self, number: float) -> float:
        """Return where a number is, in percent of the width."""
        place = self.first if number <= 0 else math.log10(number) if self.is_log else number
        return _LEFT + (place - self.first) / (self.last - self.first) * (_RIGHT - _LEFT)


def _step_s(most_s: float) -> float:
    """Return a step of seconds as clocks have them."""
    known = (step for step in _STEPS_S if most_s / step <= _TICKS)
    return next(known, 86_400 * _step(most_s / 86_400))


def _step(most: float) -> float:
    """Return a round step of which a few reach the most."""
    power: float = 10.0 ** math.floor(math.log10(most))
    return next(power * part for part in (0.2, 0.25, 0.5, 1.0, 2.0, 2.5) if most / (power * part) <= _TICKS + 1e-9)
