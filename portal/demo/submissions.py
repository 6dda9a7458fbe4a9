"""When each login name submits, and how much at a time: loops of submit, look, change, submit again."""

from collections.abc import Callable
from random import Random
from typing import Final
from zoneinfo import ZoneInfo

from portal.demo import cast
from portal.demo.drafts import Batch, SessionPlan
from portal.demo.hours import Hours, agent_weight, human_weight, is_office, local_hour
from portal.demo.plan import AGENT, HUMAN, GroupPlan
from portal.demo.sampling import AGENT_GAP, HUMAN_GAP, exact_counts
from portal.demo.sessions import spans_of

_NIGHT_SHIFT: Final = 0.6  # how often a person goes on with a loop outside office hours
_OWN_WORK: Final = 0.35  # weight of what agent users submit by hand before their first session, next to others


class Calendar:
    """For every login name and group the hours in which it may submit."""

    def __init__(self, rng: Random, sessions: list[SessionPlan], start_s: int, now_s: int, zone: ZoneInfo) -> None:
        self.zone = zone
        spans = spans_of(sessions, start_s, now_s)
        self.agents = {
            user.login: (Hours(spans[user.login], zone, agent_weight), user.weight)
            for user in cast.AGENT_USERS
            if user.login in spans
        }
        first_session = {login: own[0][0] for login, own in spans.items()}
        self.people: dict[str, tuple[Hours, float]] = {}
        self.unseen: dict[str, tuple[Hours, float]] = {}
        for login in sorted(cast.LAB_OF):
            until = first_session.get(login, now_s) - 3600
            hours = Hours([(start_s, until)] if until > start_s else [], zone, human_weight)
            weight = rng.lognormvariate(0, 0.9) * (
                _OWN_WORK * (until - start_s) / (now_s - start_s) if login in spans else 1
            )
            if hours:
                (self.unseen if login in cast.UNSEEN_USERS else self.people)[login] = (hours, weight)

    def of(self, actor: str, harness: str) -> dict[str, tuple[Hours, float]]:
        """Return hours and weight of each login name in a group."""
        if actor == AGENT:
            mine = {user.login for user in cast.AGENT_USERS if user.harness == harness}
            return {login: pair for login, pair in self.agents.items() if login in mine}
        return self.people if actor == HUMAN else self.unseen


def plan_batches(rng: Random, group: GroupPlan, calendar: Calendar) -> list[Batch]:
    """Plan the submissions of one group: as many jobs as its plan says, spread over its login names."""
    hours = calendar.of(group.actor, group.harness)
    quotas = exact_counts(group.jobs, {login: weight for login, (_, weight) in hours.items()})
    go_on = _agent_goes_on if group.actor == AGENT else _person_goes_on(rng, calendar.zone)
    batches = []
    for login, quota in quotas.items():
        left = quota
        while left > 0:
            loop = _loop(rng, group, login, left, hours[login][0], go_on)
            left -= sum(batch.size for batch in loop)
            batches += loop
    return batches


def _agent_goes_on(moment_s: int) -> bool:
    return moment_s > 0  # nights and weekends are all the same to it


def _person_goes_on(rng: Random, zone: ZoneInfo) -> Callable[[int], bool]:
    return lambda moment_s: is_office(local_hour(moment_s, zone)) or rng.random() < _NIGHT_SHIFT


def _loop(
    rng: Random, group: GroupPlan, login: str, left: int, hours: Hours, go_on: Callable[[int], bool]
) -> list[Batch]:
    gap = AGENT_GAP if group.actor == AGENT else HUMAN_GAP
    campaign = f"{cast.LAB_OF[login].project}-{rng.choice('abcdefgh')}" if rng.random() < 0.4 else ""
    moment, batches = hours.draw(rng), list[Batch]()
    for _ in range(rng.randrange(2, 14)):
        size = min(left, _batch_size(rng))
        left -= size
        after = moment + max(1, int(gap.at(rng.random())))
        goes_on = left > 0 and hours.covers(after) and go_on(after)
        batches.append(Batch(login, moment, size, after if goes_on else None, campaign))
        if not goes_on:
            break
        moment = after
    return batches


def _batch_size(rng: Random) -> int:
    kind = rng.random()
    if kind < 0.74:
        return 1
    if kind < 0.89:
        return rng.randrange(2, 9)
    return rng.randrange(8, 33) if kind < 0.98 else rng.randrange(33, 101)
