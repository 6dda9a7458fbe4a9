"""What a figure is asked of: a cluster, a period of whole UTC days, perhaps a lab, and who asks."""

import calendar
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Self

from django.db.models import Case, CharField, F, Q, QuerySet, Value, When

from portal.core import clock
from portal.core.errors import Invalid
from principals.actors import Actor as Principal
from principals.models import AgentSession, Cluster, Lab
from telemetry.models import Actor, RollupDay, RollupGpu, RollupUser


class Definition(StrEnum):
    """What is counted as an agent's."""

    JOB = "job"
    ACCOUNT = "account"

    @property
    def sentence(self) -> str:
        """Say the definition in words."""
        return _SENTENCES[self]


_SENTENCES = {
    Definition.JOB: "A job is an agent's when the best evidence of its submission says so: a receipt, the "
    "controller's label, or an agent session of its user at that time; an agent user has at least one such job in the "
    "period.",
    Definition.ACCOUNT: "As in the paper's Figure 2a: an account is an agent user's when it had an agent session or an "
    "agent's job in the period, and then all its jobs count; accounts without any session or attributed job are not "
    "attributed.",
}


LONGEST_DAYS: Final = 366  # of a period that is asked for by name
_BETWEEN: Final = "--"  # as ISO 8601 writes an interval where a solidus cannot stand


@dataclass(frozen=True, slots=True)
class Period:
    """Whole UTC days, both ends included."""

    first: date
    last: date

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise Invalid(f"The period ends ({self.last}) before it begins ({self.first}).", code="period")

    @classmethod
    def month(cls, year: int, month: int) -> Self:
        """Return a calendar month."""
        return cls(date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1]))

    @classmethod
    def parse_month(cls, text: str) -> Self:
        """Read `2026-07`. Raises `Invalid` for anything else."""
        try:
            at = datetime.strptime(text, "%Y-%m")
        except ValueError:
            at = datetime.min
        if not clock.is_sane(at.year):
            raise Invalid(f"{text[:20]!r} is no month.", code="month", remedy="Write it as 2026-07.")
        return cls.month(at.year, at.month)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `name` writes: a month, a week, or two days. Raises `Invalid` for anything else."""
        if _BETWEEN in text:
            return cls.between(*text.split(_BETWEEN, 1))
        return cls.parse_week(text) if "-W" in text else cls.parse_month(text)

    @classmethod
    def between(cls, first: str, last: str) -> Self:
        """Read two days, both ends included; a year at most. Raises `Invalid` for anything else."""
        found = cls(clock.read_day(first), clock.read_day(last))
        if found.last - found.first >= timedelta(days=LONGEST_DAYS):
            raise Invalid(f"A period has at most {LONGEST_DAYS} days.", code="period", remedy="Take several.")
        return found

    @classmethod
    def parse_week(cls, text: str) -> Self:
        """Read `2026-W28`, a week of ISO 8601: Monday to Sunday. Raises `Invalid` for anything else."""
        try:
            monday = datetime.strptime(f"{text}-1", "%G-W%V-%u").date()
        except ValueError:
            monday = date.min
        if not clock.is_sane(monday.year):
            raise Invalid(f"{text[:20]!r} is no week.", code="week", remedy="Write it as 2026-W28.")
        return cls.week(monday)

    @classmethod
    def week(cls, day: date) -> Self:
        """Return the week of a day, Monday to Sunday."""
        monday = day - timedelta(days=day.weekday())
        return cls(monday, monday + timedelta(days=6))

    @classmethod
    def last_days(cls, days: int) -> Self:
        """Return the last `days` days, today included."""
        today = clock.now().date()
        return cls(today - timedelta(days=days - 1), today)

    @property
    def days(self) -> list[date]:
        """Every day of the period, in order."""
        return [self.first + timedelta(days=n) for n in range((self.last - self.first).days + 1)]

    @property
    def starts(self) -> datetime:
        """The first instant."""
        return clock.midnight(self.first)

    @property
    def ends(self) -> datetime:
        """The first instant behind it."""
        return self.starts + timedelta(days=len(self.days))

    @property
    def holds_day(self) -> Q:
        """The condition that a row's `day` is one of its days."""
        return Q(day__gte=self.first, day__lte=self.last)

    @property
    def meets_session(self) -> Q:
        """The condition that a session was open in it."""
        return Q(Q(ended=None) | Q(ended__gte=self.starts), started__lt=self.ends)

    @property
    def is_month(self) -> bool:
        """Whether it is a calendar month."""
        return self == self.month(self.first.year, self.first.month)

    @property
    def is_week(self) -> bool:
        """Whether it is a week, Monday to Sunday."""
        return self == self.week(self.first)

    @property
    def name(self) -> str:
        """Its name in addresses and files: 2026-07, 2026-W28, 2026-07-07--2026-08-01."""
        if self.is_month:
            return f"{self.first:%Y-%m}"
        return f"{self.first:%G-W%V}" if self.is_week else f"{self.first}{_BETWEEN}{self.last}"

    @property
    def title(self) -> str:
        """Its name as people write it: July 2026, week 28 of 2026, 7 July to 1 August 2026."""
        if self.is_month:
            return f"{self.first:%B %Y}"
        if self.is_week:
            return f"week {self.first:%-V} of {self.first:%G}"
        start, end = f"{self.first.day} {self.first:%B}", f"{self.last.day} {self.last:%B %Y}"
        if self.first == self.last:
            return end
        return f"{start} to {end}" if self.first.year == self.last.year else f"{start} {self.first.year} to {end}"

    def previous(self) -> Self:
        """Return as many days right before; for a whole month the month before."""
        before = self.first - timedelta(days=1)
        if self.is_month:
            return self.month(before.year, before.month)
        return replace(self, first=self.first - timedelta(days=len(self.days)), last=before)


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose jobs, where and when, as `actor` may see them."""

    actor: Principal
    cluster: Cluster
    period: Period
    lab: Lab | None = None

    @property
    def query(self) -> dict[str, str]:
        """The filters of the job list that show this scope's jobs."""
        lab = {"lab": self.lab.name} if self.lab else {}
        period = {"from": self.period.first.isoformat(), "to": self.period.last.isoformat()}
        return {"cluster": self.cluster.name, **period, **lab}

    def within(self, period: Period) -> "Scope":
        """Return the same scope in another period."""
        return replace(self, period=period)

    def rollups(self) -> QuerySet[RollupDay]:
        """Return the daily rollups in scope."""
        rows = RollupDay.objects.visible_to(self.actor).filter(self.period.holds_day, cluster=self.cluster)
        return rows.filter(lab=self.lab) if self.lab else rows

    def users(self) -> QuerySet[RollupUser]:
        """Return the daily rollups in scope by user, lab, actor and harness alone: a fraction of the rows."""
        rows = RollupUser.objects.visible_to(self.actor).filter(self.period.holds_day, cluster=self.cluster)
        return rows.filter(lab=self.lab) if self.lab else rows

    def gpus(self) -> QuerySet[RollupGpu]:
        """Return the daily rollups in scope of jobs with GPUs, which count on the day of their end."""
        rows = RollupGpu.objects.visible_to(self.actor).filter(self.period.holds_day, cluster=self.cluster)
        return rows.filter(lab=self.lab) if self.lab else rows

    def sessions(self, kind: AgentSession.Kind) -> QuerySet[AgentSession]:
        """Return the sessions of a kind that were open in the period."""
        return AgentSession.objects.visible_to(self.actor).filter(
            self.period.meets_session, cluster=self.cluster, kind=kind
        )

    def users_of(self, kind: AgentSession.Kind, actor: Actor) -> Q:
        """Build the condition that a login name had a session of that kind, or a job of that actor, in the period."""
        jobs = self.users().filter(actor=actor)
        had_session = Q(cluster_user__in=self.sessions(kind).values("cluster_user"))
        return had_session | Q(cluster_user__in=jobs.values("cluster_user"))

    def attributed(self, definition: Definition) -> QuerySet[Any, Any]:
        """Return the daily rollups with `who`: agent, human or unknown under a definition."""
        if definition is Definition.JOB:
            return self.users().annotate(who=F("actor"))
        return self.users().annotate(
            who=Case(
                When(self.users_of(AgentSession.Kind.AGENT, Actor.AGENT), then=Value(Actor.AGENT.value)),
                When(self.users_of(AgentSession.Kind.INTERACTIVE, Actor.HUMAN), then=Value(Actor.HUMAN.value)),
                default=Value(Actor.UNKNOWN.value),
                output_field=CharField(),
            )
        )
