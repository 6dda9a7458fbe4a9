"""Where agents work over a period: on login nodes, in jobs, over SSH, behind gateways, on hosts of their own."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Q, Sum

from principals.actors import Actor as Principal
from principals.models import AgentSession, Cluster
from telemetry.engine.activity import ALL
from telemetry.models import ActivityDay, Actor, GatewayDay, Job, SshDay
from telemetry.selectors.activity import counts_of, sums_of
from telemetry.selectors.loads import Loads
from telemetry.selectors.scope import Period, Scope
from telemetry.selectors.totals import ratio

Place = AgentSession.Place


@dataclass(slots=True)
class PlaceLoad:
    """What was seen at one place. Commands and requests are by driver; all else is agents'.

    `is_watched` where anything told of it: a collector, a gateway's log, or a declared session.
    """

    place: str
    users: set[int] = field(default_factory=set)  # with a session of an agent
    sessions: int = 0
    open: int = 0  # of them, now
    commands: Counter[str] = field(default_factory=Counter)
    commanders: set[int] = field(default_factory=set)
    requests: Counter[str] = field(default_factory=Counter)
    submissions: int = 0  # of jobs attributed to sessions of the place
    submitters: set[int] = field(default_factory=set)
    is_heard: bool = False  # commands, of whoever

    @property
    def title(self) -> str:
        return str(Place(self.place).label)

    @property
    def is_watched(self) -> bool:
        return bool(self.is_heard or self.sessions or self.requests)

    @property
    def unknown_share(self) -> float | None:
        """The share of its commands that nobody is known to drive."""
        return ratio(self.commands[Actor.UNKNOWN], self.commands.total())

    @property
    def agent_commands(self) -> int:
        return self.commands[Actor.AGENT]

    @property
    def agent_requests(self) -> int:
        return self.requests[Actor.AGENT]

    @property
    def other_requests(self) -> int:
        """Requests of people, and of nobody known."""
        return self.requests.total() - self.requests[Actor.AGENT]


@dataclass(frozen=True, slots=True)
class Places:
    """The five places, in their order; and the submissions of agents and of nobody whose place is not known."""

    loads: dict[str, PlaceLoad]
    placeless: int  # of jobs that are agents' by their receipt, or the controller's label, in no session that is known
    placeless_submitters: set[int]
    unattributed: int  # submissions of nobody
    submitted: int  # by anybody
    people: set[int]  # login names with any job
    automations: int = 0  # of SSH, of unknown kind: pairs of key and client a day and node, at most

    @property
    def submissions(self) -> int:
        """All of agents."""
        return sum(each.submissions for each in self.loads.values()) + self.placeless

    @property
    def not_watched(self) -> list[str]:
        """The places of which nothing told."""
        return [name for name, load in self.loads.items() if not load.is_watched]

    def commands_of(self, driver: str, *only: str) -> int:
        """Count a driver's commands at some places, or at all."""
        return sum(load.commands[driver] for name, load in self.loads.items() if not only or name in only)


def places(scope: Scope, *, loads: Loads) -> Places:
    """Read where agents work on a cluster in a period: five queries besides those of `loads`."""
    found = read_places(scope.actor, scope.period, scope.cluster)
    placeless, nowhere = _read_jobs(scope, found)
    by_actor = loads.totals(by=lambda load: load.actor)
    unknown = by_actor.get(Actor.UNKNOWN.value)
    return Places(
        found, placeless, nowhere, unknown.submissions if unknown else 0, loads.whole.submissions,
        {load.user for load in loads.rows}, _automations(scope),
    )  # fmt: skip


def read_places(actor: Principal, period: Period, cluster: Cluster | None = None) -> dict[str, PlaceLoad]:
    """Read what was seen at each place, in their order, but jobs; of one cluster or of all: three queries."""
    only: dict[str, Any] = {"cluster": cluster} if cluster else {}
    found = {place.value: PlaceLoad(place.value) for place in Place}
    sessions = AgentSession.objects.visible_to(actor).filter(
        period.meets_session, kind=AgentSession.Kind.AGENT, **only
    )  # fmt: skip
    counted = sessions.order_by().values_list("place", "cluster_user_id").annotate(
        number=Count("pk"), now=Count("pk", filter=Q(ended=None))
    )  # fmt: skip
    for place, user, number, now in counted:
        found[place].users.add(user)
        found[place].sessions += number
        found[place].open += now
    days = ActivityDay.objects.visible_to(actor).filter(period.holds_day, **only).order_by()
    for row in days.values("place", "driver", "cluster_user_id").annotate(**sums_of((ALL,))):
        load = found[row["place"]]
        load.is_heard = True
        load.commands[row["driver"]] += counts_of(row, (ALL,))[ALL]
        if row["driver"] == Actor.AGENT and row["cluster_user_id"]:
            load.commanders.add(row["cluster_user_id"])
    asked = GatewayDay.objects.visible_to(actor).filter(period.holds_day, **only).order_by()
    found[Place.GATEWAY].requests.update(dict(asked.values_list("driver").annotate(Sum("requests"))))
    return found


def _automations(scope: Scope) -> int:
    days = SshDay.objects.visible_to(scope.actor).filter(scope.period.holds_day, cluster=scope.cluster)
    return int(days.aggregate(number=Sum("pairs"))["number"] or 0)


def _read_jobs(scope: Scope, found: dict[str, PlaceLoad]) -> tuple[int, set[int]]:
    """Add the submissions up by the place of the session that each is attributed to; return those without one."""
    jobs = Job.objects.visible_to(scope.actor).filter(
        cluster=scope.cluster, submit__gte=scope.period.starts, submit__lt=scope.period.ends, actor=Actor.AGENT
    )
    placeless, nowhere = 0, set[int]()
    rows = jobs.order_by().values_list("session__place", "cluster_user_id").annotate(Sum("array_tasks"))
    for place, user, number in rows:
        if place is None:
            placeless += number
            nowhere.add(user)
        else:
            found[place].submissions += number
            found[place].submitters.add(user)
    return placeless, nowhere


@dataclass(frozen=True, slots=True)
class View:
    """One headline share as login nodes alone give it, and as all places do; None where there is nothing to divide.

    `elsewhere` are the people whose work makes the difference.
    """

    login: float | None
    everywhere: float | None
    login_people: set[int]
    elsewhere: set[int]


def _elsewhere(found: Places, who: Callable[[PlaceLoad], set[int]]) -> set[int]:
    return set().union(*(who(load) for name, load in found.loads.items() if name != Place.LOGIN))


def agent_users(found: Places) -> View:
    """Compare agents' share of people with any job, by account as the figures have it."""
    login = found.loads[Place.LOGIN]
    seen = (login.users | login.submitters) & found.people
    others = _elsewhere(found, lambda load: load.users | load.submitters) | found.placeless_submitters
    more, number = (others & found.people) - seen, len(found.people)
    return View(ratio(len(seen), number), ratio(len(seen) + len(more), number), seen, more)


def agent_submissions(found: Places) -> View:
    """Compare agents' share of submissions."""
    login = found.loads[Place.LOGIN]
    return View(
        ratio(login.submissions, found.submitted), ratio(found.submissions, found.submitted), login.submitters,
        _elsewhere(found, lambda load: load.submitters) | found.placeless_submitters,
    )  # fmt: skip


def agent_commands(found: Places) -> View:
    """Compare agents' share of commands, among those of the places that are looked at."""
    everybody = [driver.value for driver in Actor]
    login, everywhere = (
        ratio(found.commands_of(Actor.AGENT, *only), sum(found.commands_of(driver, *only) for driver in everybody))
        for only in ((Place.LOGIN.value,), ())
    )
    return View(
        login, everywhere, found.loads[Place.LOGIN].commanders, _elsewhere(found, lambda load: load.commanders)
    )  # fmt: skip
