"""What agents and people run where collectors watch over a period, person by person and session by session.

Read once for a report: a row for each day of a session. What nobody's session did is in the totals of nodes.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from principals.models import AgentSession
from telemetry.engine.activity import ALL
from telemetry.models import ActivityDay, Actor, BaselineStudy, ExperimentLoop, PollingLoop
from telemetry.selectors.scope import Scope
from telemetry.selectors.watched import Watched

_KINDS: Final = {Actor.AGENT: AgentSession.Kind.AGENT, Actor.HUMAN: AgentSession.Kind.INTERACTIVE}
_MINUTE_S: Final = 60.0


@dataclass(slots=True)
class Driven:
    """What some sessions did, or those of one harness; `totals` also holds what belongs to no session."""

    totals: Counter[str] = field(default_factory=Counter)
    by_user: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    by_session: Counter[int] = field(default_factory=Counter)  # commands
    open_s: dict[int, float] = field(default_factory=dict)  # of each session, in the period, while it was watched
    loops_s: list[float] = field(default_factory=list)  # from a submission to the next, of experiments
    loop_users: set[int] = field(default_factory=set)
    polls: list[tuple[int, float]] = field(default_factory=list)  # of each polling loop: queries, seconds apart
    poll_users: set[int] = field(default_factory=set)
    users: set[int] = field(default_factory=set)  # with a session, whatever it did

    @property
    def people(self) -> int:
        return len(self.users)

    def rates(self) -> list[float]:
        """Return each session's commands for each minute that it was open and a collector watched its node."""
        return [
            self.by_session[session] / (seconds / _MINUTE_S) for session, seconds in self.open_s.items() if seconds > 0
        ]

    def of(self, *measures: str) -> int:
        """Count commands of the sessions."""
        return sum(counts[measure] for counts in self.by_user.values() for measure in measures)

    def users_of(self, *measures: str, above: int = 0) -> set[int]:
        """Return whose sessions did that more often than so many times."""
        return {user for user, counts in self.by_user.items() if sum(counts[each] for each in measures) > above}


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands by who drives them, agents' also by harness, and the names of the studies that people's come from."""

    by_driver: dict[str, Driven]
    by_harness: dict[str, Driven]
    studies: tuple[str, ...]

    @property
    def unknown_share(self) -> float | None:
        """The share of all commands whose driver nobody knows; None without any."""
        counted = {driver: found.totals[ALL] for driver, found in self.by_driver.items()}
        total = sum(counted.values())
        return counted[Actor.UNKNOWN] / total if total else None


def commands(scope: Scope) -> Commands:
    """Read what ran on the watched nodes of a cluster, whatever their place, in a period: seven queries."""
    by_driver = {driver.value: Driven() for driver in Actor}
    by_harness: dict[str, Driven] = defaultdict(Driven)
    watched = Watched(scope)
    for driver, kind in _KINDS.items():
        for user, harness, session, seconds in _sessions(scope, kind, watched):
            for found in _homes(by_driver[driver], by_harness, harness):
                found.users.add(user)
                found.open_s[session] = seconds
    studies = _read_days(scope, by_driver, by_harness)
    _read_loops(scope, by_driver, by_harness)
    names = BaselineStudy.objects.filter(pk__in=studies).order_by("name").values_list("name", flat=True)
    return Commands(by_driver, dict(by_harness), tuple(names))


def _homes(driven: Driven, by_harness: dict[str, Driven], harness: str) -> Collection[Driven]:
    return (driven, by_harness[harness]) if harness else (driven,)


def _sessions(scope: Scope, kind: AgentSession.Kind, watched: Watched) -> Iterable[tuple[int, str, int, float]]:
    """Yield the sessions that a collector told of: whose, of which harness, and how long they were open and watched."""
    told = scope.sessions(kind).exclude(process="")
    names = ("pk", "cluster_user_id", "harness", "host", "started", "ended")
    for pk, user, harness, host, started, ended in told.values_list(*names):
        yield user, harness, pk, watched.seconds(kind, host, started, ended)


def _read_days(scope: Scope, by_driver: dict[str, Driven], by_harness: dict[str, Driven]) -> set[int]:
    """Add the days up; return the studies that people's are of."""
    days = ActivityDay.objects.visible_to(scope.actor).filter(scope.period.holds_day, cluster=scope.cluster)
    studies: set[int] = set()
    names = ("driver", "harness", "cluster_user_id", "session_id", "study_id", "counts")
    for driver, harness, user, session, study, counts in days.values_list(*names).iterator():
        for found in _homes(by_driver[driver], by_harness, harness):
            found.totals.update(counts)
            if user is not None:
                found.users.add(user)
                found.by_user[user].update(counts)
            if session is not None:
                found.by_session[session] += counts.get(ALL, 0)
        if study is not None:
            studies.add(study)
    return studies


def _read_loops(scope: Scope, by_driver: dict[str, Driven], by_harness: dict[str, Driven]) -> None:
    whose = ("session__kind", "session__harness", "session__cluster_user_id")
    drivers = {kind.value: driver.value for driver, kind in _KINDS.items()}
    within = {"session__cluster": scope.cluster}
    loops = ExperimentLoop.objects.visible_to(scope.actor).filter(
        again__gte=scope.period.starts, again__lt=scope.period.ends, **within
    )
    for kind, harness, user, submitted, again in loops.values_list(*whose, "submitted", "again").iterator():
        for found in _homes(by_driver[drivers[kind]], by_harness, harness):
            found.loops_s.append((again - submitted).total_seconds())
            found.loop_users.add(user)
    polling = PollingLoop.objects.visible_to(scope.actor).filter(
        last__gte=scope.period.starts, last__lt=scope.period.ends, **within
    )
    for kind, harness, user, queries, period_s in polling.values_list(*whose, "queries", "period_s").iterator():
        for found in _homes(by_driver[drivers[kind]], by_harness, harness):
            found.polls.append((queries, period_s))
            found.poll_users.add(user)
