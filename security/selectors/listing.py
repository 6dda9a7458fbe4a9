"""Lists of incidents: what the address asks for, in which order, how many of each state."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from django.db.models import Case, Count, Exists, F, IntegerField, OuterRef, QuerySet, Value, When

from portal.core import clock
from portal.core.errors import Invalid
from principals.actors import Actor
from security.models import Finding, Incident
from security.models.choices import OPEN, Kind, Severity, State

CLOSED = tuple(state for state in State if state not in OPEN)
# A word of the address -> the states it means. "open" is what there is to do.
STATES: dict[str, tuple[State, ...]] = {
    "open": OPEN,
    "closed": CLOSED,
    "all": tuple(State),
    **{state.value: (state,) for state in State},
}
SEVERITY_RANK = Case(
    *(When(severity=severity, then=Value(rank)) for rank, severity in enumerate(Severity)),
    output_field=IntegerField(),
)
SORTS = {
    "due": (F("due_at").asc(nulls_last=True), F("opened").desc()),
    "-due": (F("due_at").desc(nulls_last=True), F("opened").desc()),
    "opened": (F("opened").asc(),),
    "-opened": (F("opened").desc(),),
    "-severity": (SEVERITY_RANK.desc(), F("due_at").asc(nulls_last=True)),
    "severity": (SEVERITY_RANK.asc(), F("due_at").asc(nulls_last=True)),
    "-seen": (F("last_seen").desc(nulls_last=True),),
}


@dataclass(frozen=True, slots=True)
class IncidentFilter:
    """What a list is narrowed to; words that mean nothing are left at their default."""

    state: str = "open"
    severity: str = ""
    kind: str = ""
    lab: str = ""
    who: str = ""  # me, nobody
    late: bool = False
    month: bool = False  # opened in this calendar month, UTC
    cluster: str = ""
    seen: tuple[date, date] | None = None  # with a finding on these days, UTC, both included
    sort: str = "due"

    @property
    def is_default(self) -> bool:
        """Say whether nothing was narrowed: an empty list then means that there is nothing to do."""
        return self == IncidentFilter(sort=self.sort)

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "IncidentFilter":
        """Read a filter from an address."""

        def one_of(name: str, known: object, default: str = "") -> str:
            value = query.get(name, default)
            return value if value in known else default  # type: ignore[operator]

        state = one_of("state", STATES, "open")
        return cls(
            state=state, severity=one_of("severity", Severity.values), kind=one_of("kind", Kind.values),
            lab=query.get("lab", "")[:64], who=one_of("who", ("me", "nobody")), late=query.get("late") == "1",
            month=query.get("month") == "this", cluster=query.get("cluster", "")[:64],
            seen=_days(query.get("from", ""), query.get("to", "")),
            sort=one_of("sort", SORTS, "-opened" if state == "closed" else "due"),
        )  # fmt: skip


def _days(first: str, last: str) -> tuple[date, date] | None:
    """Read two days; what is no day means nothing."""
    try:
        return (clock.read_day(first), clock.read_day(last)) if first and last else None
    except Invalid:
        return None


def month_start() -> datetime:
    """Return the first instant of this month, UTC."""
    return clock.now().astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _narrowed(actor: Actor, asked: IncidentFilter) -> QuerySet[Incident]:
    found: QuerySet[Incident] = Incident.objects.visible_to(actor)
    equal = {
        "severity": asked.severity, "kind": asked.kind, "lab__name": asked.lab, "cluster__name": asked.cluster
    }  # fmt: skip
    for field, value in equal.items():
        if value:
            found = found.filter(**{field: value})
    if asked.month:
        found = found.filter(opened__gte=month_start())
    if asked.seen:
        first, last = (clock.midnight(day) for day in asked.seen)
        seen = Finding.objects.filter(
            incident=OuterRef("pk"), occurred__gte=first, occurred__lt=last + timedelta(days=1)
        )  # fmt: skip
        found = found.filter(Exists(seen))
    if asked.who:
        found = found.filter(assignee=actor.user if asked.who == "me" else None)
    return found


def incidents(actor: Actor, asked: IncidentFilter) -> QuerySet[Incident]:
    """Return the incidents an actor asked for, in the order asked for, ready for a list: no query a row."""
    found = _narrowed(actor, asked).filter(state__in=STATES[asked.state])
    if asked.late:
        found = found.filter(state__in=OPEN, due_at__lt=clock.now())
    found = found.select_related("cluster", "lab", "agent", "cluster_user", "assignee")
    return found.order_by(*SORTS[asked.sort], "-pk")


def state_counts(actor: Actor, asked: IncidentFilter) -> dict[str, int]:
    """Return how many incidents each word for states stands for, under the filter's other conditions."""
    asked = replace(asked, state="all", late=False)
    rows = _narrowed(actor, asked).order_by().values_list("state").annotate(count=Count("pk"))
    by_state: dict[str, int] = dict(rows)
    return {word: sum(by_state.get(state, 0) for state in states) for word, states in STATES.items()}
