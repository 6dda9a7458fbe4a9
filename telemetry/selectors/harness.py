"""What harnesses told of themselves, added up over days, for an agent and for the report."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from principals.actors import Actor as Principal
from principals.models import Agent, AgentSession
from telemetry.engine.otel import measures
from telemetry.models import HarnessDay
from telemetry.selectors.scope import Period, Scope
from telemetry.selectors.totals import ratio

_MICRO: Final = 1_000_000


@dataclass(slots=True)
class HarnessUse:
    """What some days of harness sessions say together."""

    counts: Counter[str] = field(default_factory=Counter)
    sessions: set[str] = field(default_factory=set)  # that told anything, by digest

    def add(self, session_key: str, counts: Mapping[str, int]) -> None:
        """Add the day of a session."""
        self.counts.update(counts)
        if session_key:
            self.sessions.add(session_key)

    @property
    def cost(self) -> float:
        """US dollars, as the harness estimates them."""
        return self.counts[measures.COST] / _MICRO

    @property
    def accepted(self) -> int:
        return measures.total(self.counts, measures.ACCEPTED)

    @property
    def rejected(self) -> int:
        return measures.total(self.counts, measures.REJECTED)

    @property
    def automatic(self) -> int:
        return measures.total(self.counts, measures.AUTOMATIC)

    @property
    def rejected_share(self) -> float | None:
        """The share of what a person was asked that they declined; None where nobody was asked."""
        return ratio(self.rejected, self.accepted + self.rejected)

    @property
    def tokens(self) -> dict[str, int]:
        """Tokens by kind, under the names that are shown; those that were told."""
        return {measures.TOKEN_KINDS[kind]: number for kind, number in self.tokens_by_kind.items()}

    @property
    def tokens_by_kind(self) -> dict[str, int]:
        """Tokens by kind, as `input` and `cache_read`; those that were told."""
        return {kind: told for kind in measures.TOKEN_KINDS if (told := self.counts[measures.TOKENS + kind])}

    def of(self, measure: str) -> int:
        """Return one of the counts."""
        return self.counts[measure]


@dataclass(frozen=True, slots=True)
class AgentTelling:
    """What an agent's harness told in a period: as a whole, and by the days on which it told anything."""

    whole: HarnessUse
    by_day: Mapping[date, HarnessUse]


def telling_of(actor: Principal, agent: Agent, period: Period) -> AgentTelling:
    """Add up what an agent's harness told, as far as the actor may see it: one query."""
    days = HarnessDay.objects.visible_to(actor).filter(period.holds_day, agent=agent)
    return _add_up(days.order_by("day").values_list("day", "session_key", "counts").iterator())


def _add_up(rows: Iterable[tuple[date, str, Mapping[str, int]]]) -> AgentTelling:
    whole, by_day = HarnessUse(), dict[date, HarnessUse]()
    for day, session_key, counts in rows:
        whole.add(session_key, counts)
        by_day.setdefault(day, HarnessUse()).add(session_key, counts)
    return AgentTelling(whole, by_day)


@dataclass(slots=True)
class Telling:
    """What harnesses told in a period, person by person, and how many with an agent's session told nothing."""

    by_user: dict[int, HarnessUse] = field(default_factory=dict)
    by_harness: dict[str, dict[int, HarnessUse]] = field(default_factory=dict)
    silent: int = 0

    @property
    def unknown_share(self) -> float | None:
        """The share of people with an agent whose harness told nothing; None where nobody has one."""
        return ratio(self.silent, self.silent + len(self.by_user))


def telling(scope: Scope) -> Telling:
    """Add up what the harnesses told of agents whose person has a login name on the cluster: two queries.

    A harness does not say which cluster it works on: a person's on two clusters count for both.
    """
    found = Telling()
    people = scope.cluster.cluster_users.exclude(user=None).values("user")
    days = HarnessDay.objects.visible_to(scope.actor).filter(scope.period.holds_day, agent__owner__in=people)
    for user, harness, session_key, counts in days.values_list("agent__owner", "harness", "session_key", "counts"):
        for uses in (found.by_user, found.by_harness.setdefault(harness, {})):
            uses.setdefault(user, HarnessUse()).add(session_key, counts)
    seen = scope.sessions(AgentSession.Kind.AGENT).order_by()
    logins = seen.values_list("cluster_user_id", "cluster_user__user_id").distinct()
    # A person may have several login names; a name that nobody claimed is somebody else's.
    found.silent = len({("login", login) if user is None else user for login, user in logins} - found.by_user.keys())
    return found
