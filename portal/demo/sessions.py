"""When agents and people were seen at work: the sessions that attribution rests on."""

from collections import defaultdict
from collections.abc import Iterable
from random import Random
from typing import Final

from portal.demo import cast
from portal.demo.drafts import Draft, SessionPlan
from portal.demo.hours import DAY_S
from portal.demo.plan import HUMAN

# Half of agents' sessions last a week and more (median measured: 7.5 days); those cut off by `now` count as they are.
_MEDIAN_LENGTH_S: Final = int(9.2 * DAY_S)
_SPREAD: Final = 0.75
_LONGEST_S: Final = 24 * DAY_S
_SHELL_PAUSE_S: Final = 6 * 3600


def agent_sessions(rng: Random, start_s: int, now_s: int) -> list[SessionPlan]:
    """Plan the sessions of every agent user from the day they began, one after the other on each of their hosts."""
    sessions = []
    for user in cast.AGENT_USERS:
        for seat, host in enumerate(_hosts(rng, user)):
            began = start_s + int(user.since_day * DAY_S) + rng.randrange(DAY_S // 4)
            if user.since_day == 0:
                began -= rng.randrange(6 * DAY_S)
            began += seat * rng.randrange(2 * DAY_S, 6 * DAY_S)
            sessions += _chain(rng, user, host, began, now_s, cast.LAB_OF[user.login].project)
    return sorted(sessions, key=lambda session: (session.started_s, session.login))


def _hosts(rng: Random, user: cast.AgentUser) -> list[str]:
    for agent in cast.AGENTS:
        if (agent.owner, agent.harness, agent.state) == (user.login, user.harness, "active"):
            return list(agent.hosts[: rng.choice((1, 2))])
    return [rng.choice(cast.LOGIN_NODES)]


def _chain(rng: Random, user: cast.AgentUser, host: str, began_s: int, now_s: int, project: str) -> list[SessionPlan]:
    sessions, number = [], 1
    while began_s < now_s - 3600:
        length = min(_LONGEST_S, max(1800, int(_MEDIAN_LENGTH_S * rng.lognormvariate(0, _SPREAD))))
        ended = began_s + length if began_s + length < now_s else None
        campaign = f"{project}-{number}"
        sessions.append(SessionPlan(user.login, host, "agent", user.harness, began_s, ended, campaign))
        began_s += length + rng.randrange(1800, 20 * 3600)
        number += 1
    return sessions


def spans_of(sessions: Iterable[SessionPlan], start_s: int, now_s: int) -> dict[str, list[tuple[int, int]]]:
    """Return for each login name the spans within [start, now) that its sessions cover, joined where they meet."""
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for session in sorted(sessions, key=lambda session: session.started_s):
        first, last = max(session.started_s, start_s), session.ended_s or now_s
        if last <= first:
            continue
        own = spans[session.login]
        if own and first <= own[-1][1]:
            own[-1] = (own[-1][0], max(own[-1][1], last))
        else:
            own.append((first, last))
    return dict(spans)


def shell_sessions(rng: Random, drafts: Iterable[Draft], now_s: int) -> list[SessionPlan]:
    """Plan the shells from which people submitted: one around each stretch of a person's submissions."""
    moments: dict[str, set[int]] = defaultdict(set)
    for draft in drafts:
        if draft.actor == HUMAN:
            moments[draft.batch.login].add(draft.batch.submit_s)
    sessions = []
    for login in sorted(moments):
        host, stretch = rng.choice(cast.LOGIN_NODES), list[int]()
        for moment in [*sorted(moments[login]), None]:
            if stretch and (moment is None or moment - stretch[-1] > _SHELL_PAUSE_S):
                sessions.append(_shell(rng, login, host, stretch[0], stretch[-1], now_s))
                stretch = []
            if moment is not None:
                stretch.append(moment)
    return sessions


def _shell(rng: Random, login: str, host: str, first_s: int, last_s: int, now_s: int) -> SessionPlan:
    ended = last_s + rng.randrange(300, 3600)
    started = first_s - rng.randrange(120, 1500)
    return SessionPlan(login, host, "interactive", "", started, ended if ended < now_s else None)
