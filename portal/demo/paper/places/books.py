"""The books of where agents work, by definitions written down here once more: shares, bounds, and login nodes alone."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from portal.demo.paper.places.published import GATEWAY, LOGIN, PLACES
from portal.demo.paper.sums import share_of
from portal.demo.plan import AGENT, UNKNOWN


class PlaceBooks:
    """Count what is planted at each place."""

    def __init__(self) -> None:
        self._people: dict[str, set[int]] = defaultdict(set)
        self._sessions: Counter[str] = Counter()
        self._commands: dict[str, Counter[str]] = defaultdict(Counter)
        self._submissions: Counter[str] = Counter()  # agents'
        self._submitted: Counter[str] = Counter()  # by actor
        self._everybody = 0

    def note_people(self, number: int) -> None:
        """Count all who submit anything."""
        self._everybody = number

    def note_session(self, place: str, person: int) -> None:
        """Count a session of an agent."""
        self._sessions[place] += 1
        self._people[place].add(person)

    def note_commands(self, place: str, driver: str, commands: int) -> None:
        """Count commands."""
        self._commands[place][driver] += commands

    def note_submission(self, actor: str, place: str, jobs: int) -> None:
        """Count jobs that somebody submitted; `place` is that of an agent's session."""
        self._submitted[actor] += jobs
        if actor == AGENT:
            self._submissions[place] += jobs

    def as_json(self) -> dict[str, Any]:
        """Return the shares of each place, and what login nodes alone would say."""
        return {"places": {place: self._of(place) for place in PLACES}, "login_view": self._login_view()}

    def _of(self, place: str) -> dict[str, float | None]:
        everybody = set().union(*self._people.values())
        people, submitted, nobody = len(self._people[place]), self._submissions[place], self._submitted[UNKNOWN]
        agents, sessions = self._submitted[AGENT], self._sessions[place]
        return {
            "people": people, "people_share": share_of(people, len(everybody)),
            "sessions": sessions, "sessions_share": share_of(sessions, self._sessions.total()),
            "submissions": submitted, "submissions_share": share_of(submitted, agents),
            "submissions_low": share_of(submitted, agents + nobody),
            "submissions_high": share_of(submitted + nobody, agents + nobody),
            **({} if place == GATEWAY else self._commands_of(place)),
        }  # fmt: skip

    def _commands_of(self, place: str) -> Mapping[str, float | None]:
        own, nobody = self._commands[place]["agent"], self._commands[place]["unknown"]
        agents, unknown = (self._all_commands(driver) for driver in ("agent", "unknown"))
        return {
            "commands": own, "commands_share": share_of(own, agents),
            "commands_low": share_of(own, agents + unknown - nobody),
            "commands_high": share_of(own + nobody, agents + nobody),
        }  # fmt: skip

    def _all_commands(self, driver: str) -> int:
        return sum(counts[driver] for counts in self._commands.values())

    def _login_view(self) -> dict[str, dict[str, float]]:
        everybody = set().union(*self._people.values())
        total = sum(self._all_commands(driver) for driver in ("agent", "human", "unknown"))
        views = {
            "people": (len(self._people[LOGIN]) / self._everybody, len(everybody) / self._everybody),
            "submissions": (
                self._submissions[LOGIN] / self._submitted.total(),
                self._submitted[AGENT] / self._submitted.total(),
            ),
            "commands": (
                self._commands[LOGIN]["agent"] / self._commands[LOGIN].total(), self._all_commands("agent") / total
            ),
        }  # fmt: skip
        return {
            name: {"login": login, "all": everywhere, "difference": everywhere - login}
            for name, (login, everywhere) in views.items()
        }
