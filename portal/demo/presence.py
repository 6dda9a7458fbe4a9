"""Who is at work in the living demo: the sessions that are open, those that begin and those that end."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from portal.demo import cast
from portal.demo.plan import AGENT, UNKNOWN
from principals.services import DeclaredSession

SOURCE: Final = "simulate"
_IDLE: Final = timedelta(minutes=50)  # after so long without a submission a person has left the shell
_LONGEST: Final = timedelta(days=16)  # an agent's session


class Presence:
    """The open sessions by login name, and when each was last used."""

    def __init__(self, found: Iterable[DeclaredSession], now: datetime) -> None:
        self._open = {(session.login, session.kind): session for session in found}
        self._used = {key: now for key in self._open}

    def enter(self, rng: Random, login: str, actor: str, now: datetime) -> list[DeclaredSession]:
        """Note that somebody submits; return the session that has to be declared first, if none is open."""
        if actor == UNKNOWN:
            return []
        key = (login, "agent" if actor == AGENT else "interactive")
        self._used[key] = now
        if key in self._open:
            return []
        harness = next(user.harness for user in cast.AGENT_USERS if user.login == login) if actor == AGENT else ""
        session = DeclaredSession(
            login=login, host=_host(rng, login, harness), kind=key[1], harness=harness, source=SOURCE,
            started=(now - timedelta(seconds=rng.randrange(30, 90))).astimezone(UTC).replace(microsecond=0),
        )  # fmt: skip
        self._open[key] = session
        return [session]

    def open_agents(self) -> list[DeclaredSession]:
        """Return the agents' sessions that are open, as a collector tells of them again and again."""
        return [session for session in self._open.values() if session.kind == "agent"]

    def leave(self, now: datetime) -> list[DeclaredSession]:
        """Return the sessions that end now: shells nobody used for a while, agents that ran for weeks."""
        ended = []
        for key, session in list(self._open.items()):
            is_agent = session.kind == "agent"
            is_over = now - session.started > _LONGEST if is_agent else now - self._used[key] > _IDLE
            if is_over:
                ended.append(replace(session, ended=now.replace(microsecond=0)))
                del self._open[key]
        return ended


def _host(rng: Random, login: str, harness: str) -> str:
    for agent in cast.AGENTS:
        if harness and (agent.owner, agent.harness, agent.state) == (login, harness, "active"):
            return rng.choice(agent.hosts)
    return rng.choice(cast.LOGIN_NODES)
