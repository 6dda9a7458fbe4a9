"""When collectors watched which nodes: what nobody watched says nothing of how much was done."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate

from portal.core import clock
from principals.models import AgentSession
from telemetry.models import CollectorReport
from telemetry.selectors.scope import Scope


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans that do not touch, epoch seconds, in order; `before` is how long all those before each one are."""

    starts: Sequence[float]
    ends: Sequence[float]
    before: Sequence[float]

    def until(self, moment_s: float) -> float:
        """Return how much of the spans lies before a moment."""
        place = bisect_right(self.starts, moment_s) - 1
        if place < 0:
            return 0.0
        return self.before[place] + min(moment_s, self.ends[place]) - self.starts[place]


def join_spans(spans: Iterable[tuple[float, float]]) -> Spans:
    """Join spans that overlap or touch, as two runs of a collector in one minute; those without length are nothing."""
    starts, ends = list[float](), list[float]()
    for first, last in sorted(spans):
        if starts and first <= ends[-1]:
            ends[-1] = max(ends[-1], last)
        elif last > first:
            starts.append(first)
            ends.append(last)
    lengths = (last - first for first, last in zip(starts, ends, strict=True))
    return Spans(starts, ends, list(accumulate(lengths, initial=0.0))[:-1])


def _append(spans: list[tuple[float, float]], since_s: float, until_s: float) -> None:
    """Add a span, to the last one where it goes on from it: a month has a report a minute and node."""
    if spans and spans[-1][0] <= since_s <= spans[-1][1]:
        since_s, until_s = spans[-1][0], max(spans.pop()[1], until_s)
    spans.append((since_s, until_s))


class Watched:
    """How long sessions were open in a scope's period while a collector watched their node; one query.

    People's shells are watched by a collector that names a study alone.
    """

    def __init__(self, scope: Scope) -> None:
        self._starts_s, self._ends_s = scope.period.starts.timestamp(), scope.period.ends.timestamp()
        reports = CollectorReport.objects.visible_to(scope.actor).filter(
            cluster=scope.cluster, until__gt=scope.period.starts, since__lt=scope.period.ends
        )
        found: dict[tuple[bool, str], list[tuple[float, float]]] = {}
        told = reports.order_by("host", "until").values_list("host", "study", "since", "until")
        for host, study, since, until in told.iterator():
            for of_people in (False, True) if study else (False,):
                _append(found.setdefault((of_people, host), []), since.timestamp(), until.timestamp())
        self._spans = {key: join_spans(spans) for key, spans in found.items()}

    def seconds(self, kind: AgentSession.Kind, host: str, started: datetime, ended: datetime | None) -> float:
        """Return how long a session was open, watched, in the period."""
        spans = self._spans.get((kind != AgentSession.Kind.AGENT, host))
        if spans is None:
            return 0.0
        last_s = min(self._ends_s, (ended or clock.now()).timestamp())
        first_s = max(self._starts_s, started.timestamp())
        return max(0.0, spans.until(last_s) - spans.until(first_s))
