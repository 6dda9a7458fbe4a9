"""Sessions on a node: a harness, or in a study a person's shell, with all that it started."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from telemetry.engine.collector.facts import Key
from telemetry.engine.collector.processes import LOGIN, SSH_KEY, Process, Where

LINGER_S: Final = 1800.0  # connections of one key from one client are one session while no longer apart
MOST: Final = 20_000  # at a time; what is begun beyond is counted without a session


def id_of(root: Key) -> str:
    """Return what a session is called on its node, until that starts anew."""
    return f"{root.pid}-{root.start}"


@dataclass(slots=True)
class Session:
    """A session: when its root began, when it last did something, when its root ended, in seconds since 1970; and where
    it works."""

    root: Key
    kind: Literal["agent", "interactive"]
    harness: str
    uid: int
    start_s: float
    last_s: float
    end_s: float | None = None
    is_news: bool = True
    where: Where = LOGIN
    evidence: str = ""
    agent: str = ""

    @property
    def lingers(self) -> bool:
        """Say whether it goes on for a while when its processes are gone."""
        return self.evidence == SSH_KEY


class Sessions:
    """The sessions of a node. `with_people`: also those of people's shells; `started` tells when a process began."""

    def __init__(self, *, with_people: bool, started: Callable[[Key], float]) -> None:
        self._with_people, self._started = with_people, started
        self._open: dict[tuple[Key, str], Session] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, process: Process, at_s: float) -> None:
        """Take a process that is a root, and need not be news."""
        if (process.key, process.label.driver) not in self._open:
            self.note(process, at_s)

    def note(self, process: Process, at_s: float) -> Session | None:
        """Take something that a process does; return its session, None where there is none, or none is kept."""
        label = process.label
        if label.root is None or not (label.driver == "agent" or self._with_people):
            return None
        session = self._open.get((label.root, label.driver)) or self._begin(label.root, process, at_s)
        if session is None:
            return None
        if session.end_s is None and at_s > session.last_s:
            session.last_s = at_s
        session.is_news = True
        return session

    def end(self, root: Key, at_s: float) -> None:
        """Take the end of a process, which may be a session's root: of two, where a shell became a harness."""
        for driver in ("agent", "human"):
            session = self._open.get((root, driver))
            if session is not None and session.end_s is None and not session.lingers:
                session.end_s = session.last_s = max(at_s, session.last_s)
                session.is_news = True

    def leave(self, living: frozenset[Key], now_s: float) -> tuple[list[Session], list[Key]]:
        """Return those that began, did something or ended since the last call, and the roots that are now forgotten:
        they ended, and nothing that they started lives on."""
        for each in self._open.values():
            if each.lingers and each.root not in living and each.last_s + LINGER_S <= now_s:
                each.end_s, each.is_news = each.last_s, True
        news = [each for each in self._open.values() if each.is_news]
        over = [place for place, each in self._open.items() if each.end_s is not None and each.root not in living]
        for place in over:
            del self._open[place]
        for each in news:
            each.is_news = False
        return news, [root for root, _ in over]

    def _begin(self, root: Key, process: Process, at_s: float) -> Session | None:
        if len(self._open) >= MOST:
            return None
        kind: Literal["agent", "interactive"] = "agent" if process.label.driver == "agent" else "interactive"
        start_s = min(self._started(root), at_s)
        made = Session(root, kind, process.label.harness, process.uid, start_s, at_s, where=process.where,
                       evidence=process.label.evidence, agent=process.label.agent)  # fmt: skip
        self._open[root, process.label.driver] = made
        return made
