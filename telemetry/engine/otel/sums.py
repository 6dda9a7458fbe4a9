"""Adding up what was told: kept so that the same told twice is kept once, whatever the order it comes in.

Of a cumulative series the first and the last point of each UTC day are enough: what a day added is its last value less
the last one of the days before.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeAlias

from telemetry.engine.otel.reading import CUMULATIVE, EVENT, Told

# What is kept of one session and source: by digest, counts; of cumulative points measure, start, first and last.
Parts: TypeAlias = dict[str, Any]


def merge(known: Parts, told: Told) -> bool:
    """Add what was told to what is known; say whether that changed anything."""
    new = _cumulative(known.get(told.key), told) if told.source == CUMULATIVE else dict(told.counts)
    if known.get(told.key) == new:
        return False
    known[told.key] = new
    return True


def _cumulative(known: Any, told: Told) -> Any:
    ((measure, value),) = told.counts.items()
    point = [told.at_ns, value]
    if known is None:
        return {"measure": measure, "start": told.start_ns, "first": point, "last": point}
    # Of two points of one instant the greater stands, whichever came first.
    return known | {"first": min(known["first"], point), "last": max(known["last"], point)}


def add_up(today: Iterable[tuple[str, Parts]], before: Iterable[Parts] = (), *, since_ns: int = 0) -> dict[str, int]:
    """Return the counts of a session's day.

    `today` are its (source, parts), `before` the cumulative parts of the days before it, the oldest first. What a
    series counted before `since_ns` is not ours to count: one that began earlier counts from its first point on.

    A harness may tell the same by a metric and by events: the greater stands, for whatever was lost of the other.
    """
    reached: dict[str, int] = {key: part["last"][1] for parts in before for key, part in parts.items()}
    metrics, events = Counter[str](), Counter[str]()
    for source, parts in today:
        for key, part in parts.items():
            if source == CUMULATIVE:
                metrics[part["measure"]] += _added(part, reached.get(key), since_ns)
            else:
                (events if source == EVENT else metrics).update(part)
    return {measure: number for measure, number in sorted((metrics | events).items()) if number}


def _added(part: Any, reached: int | None, since_ns: int) -> int:
    first, last = part["first"][1], part["last"][1]
    if reached is None:
        return int(last if part["start"] >= since_ns else last - first)
    return int(last - reached if last >= reached else last)  # it fell: it began anew, and did not say so
