"""How a lab's registered agents stand to each clause, from what is measured anyway; what is not is said to be not."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from django.db.models import Count, Q

from policies.engine.clauses import Clause, Modality, Standing
from policies.models import AupVersion
from policies.selectors.aup import agents_without
from portal.core import clock
from principals.actors import Actor
from principals.models import AgentSession, Lab
from security.models import Finding
from telemetry.engine.commands import traits
from telemetry.selectors import Period
from telemetry.selectors.activity import Activity, Loops, activity, days_of_agents, loops_of_agents

WALKS: Final = (traits.TREE_WALK, traits.RECURSIVE_SEARCH)
SIGNS: Final = frozenset({"tree_walks"})  # where a walk went the collector does not tell


class Kept(Enum):
    """What may be said of a clause for a lab. Only a measure can say kept."""

    KEPT = "kept"
    NOT_KEPT = "not kept"
    REFUSED = "cannot be broken: what is beyond it is refused"
    DECLARED = "declared by its people"
    SIGN = "a sign only: look before you judge"
    UNSEEN = "nothing was seen of it"
    NOT_YET = "not yet enforced"
    UNVERIFIED = "unverified"


@dataclass(frozen=True, slots=True)
class Row:
    """A clause with what was measured of it; `measured` is None where nothing was."""

    clause: Clause
    kept: Kept
    measured: float | None = None
    unit: str = ""

    @property
    def places(self) -> int:
        """Return how many decimals the measure is shown with: a count has none."""
        return 0 if self.measured is None or float(self.measured).is_integer() else 1


@dataclass(frozen=True, slots=True)
class _World:
    actor: Actor
    lab: Lab
    period: Period
    activity: Activity
    loops: Loops


def compliance(actor: Actor, lab: Lab, period: Period, newest: AupVersion) -> list[Row]:
    """Return each clause that binds the lab, in the policy's order: at most ten queries, whatever the lab's size."""
    agents = Q(session__agent__lab=lab)
    found = activity(days_of_agents(actor, period, agents))
    world = _World(actor, lab, period, found, loops_of_agents(actor, period, agents))
    return [_row(world, clause) for clause in newest.policy.clauses if clause.applies.reaches(lab=lab.name)]


def _row(world: _World, clause: Clause) -> Row:
    fixed = {
        Standing.DECLARED: Kept.DECLARED, Standing.NOT_YET: Kept.NOT_YET, Standing.UNVERIFIED: Kept.UNVERIFIED,
    }.get(clause.standing)  # fmt: skip
    if fixed is not None:
        return Row(clause, fixed)
    reader = _READERS.get(clause.check.measure)
    if reader is None:
        return Row(clause, Kept.REFUSED if clause.standing is Standing.ENFORCED else Kept.NOT_YET)
    read, unit = reader
    measured = read(world)
    if measured is None:
        return Row(clause, Kept.UNSEEN, None, unit)
    if measured <= _allowed(clause):
        return Row(clause, Kept.KEPT, measured, unit)
    return Row(clause, Kept.SIGN if clause.check.measure in SIGNS else Kept.NOT_KEPT, measured, unit)


def _allowed(clause: Clause) -> float:
    """Return how much of what is measured there may be: of what is forbidden or required away, none."""
    return clause.value or 0 if clause.modality in (Modality.LIMIT, Modality.ADVISE) else 0


# --- what is measured: a number, or None where nobody looked -------------------------------------------------
def _not_accepted(world: _World) -> float | None:
    """Count agents without the version that they need by now; one in its grace is not asked of them yet."""
    required = AupVersion.objects.required(clock.now()).first()
    return agents_without(required).filter(lab=world.lab).count() if required else 0


def _most_sessions(world: _World, **narrowed: str) -> float | None:
    """Return the most sessions that one login name has open on one host; None where no agent ever had one."""
    sessions = AgentSession.objects.visible_to(world.actor).filter(agent__lab=world.lab)
    if not sessions.exists():
        return None
    opened = sessions.filter(ended=None, **narrowed).order_by().values("cluster_user", "host")
    return max(opened.annotate(number=Count("pk", distinct=True)).values_list("number", flat=True), default=0)


def _queries(world: _World) -> float | None:
    minutes = world.activity.minutes
    return world.activity.queries / minutes if minutes else None


def _loops(world: _World) -> float | None:
    return world.loops.polling if world.activity.minutes else None


def _walks(world: _World) -> float | None:
    return sum(world.activity.counts[name] for name in WALKS) if world.activity.minutes else None


def _secrets(world: _World) -> float | None:
    """Count findings of agents' secrets; None where there are none, for a detector's silence is no proof."""
    seen = Finding.objects.visible_to(world.actor).filter(
        kind=Finding.Kind.EXPOSED_SECRET, agent__lab=world.lab, occurred__gte=world.period.starts,
        occurred__lt=world.period.ends,
    )  # fmt: skip
    return seen.count() or None


_READERS: Final[Mapping[str, tuple[Callable[[_World], float | None], str]]] = {
    "aup_acceptances": (_not_accepted, "agents without it"),
    "sessions_open": (_most_sessions, "sessions at once"),
    "sessions_on_login_nodes": (
        lambda world: _most_sessions(world, place=AgentSession.Place.LOGIN), "sessions at once"
    ),
    "scheduler_queries_per_minute": (_queries, "queries a minute"),
    "polling_loops": (_loops, "loops"),
    "tree_walks": (_walks, "commands"),
    "exposed_secrets": (_secrets, "findings"),
}  # fmt: skip
