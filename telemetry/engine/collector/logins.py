"""Who came by SSH: the key and the client that sshd logs, by the number of the server process that logged it.

Fingerprints and addresses are digested as they are read, with a key that is made anew at each start. No digest leaves
the node: of connections that are no agent's, how many different ones there were on a day.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple

from telemetry.engine.collector.facts import Key

JOURNAL: Final = "journal"
MOST: Final = 20_000  # logins that are known at a time, and different ones of a day that are told apart
LONGEST_LINE: Final = 65_536
DAY_S: Final = 86_400
_SERVERS: Final = frozenset({"sshd", "sshd-session"})  # the second from OpenSSH 9.8 on
_BEFORE_S: Final = 3.0  # what a file says without a time that can be relied on is no older
# Whoever writes another program's message cannot write what stands before it.
_LINE: Final = re.compile(
    rb"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[0-9:.]{8,18}(?:Z|[+-]\d\d:?\d\d)) [^\s\[\]:]{1,255} "
    rb"(?:sshd|sshd-session)\[(\d{1,10})\]: (Accepted .*)"
)
# auth.c, auth_log: of a certificate the key that it is for comes first; other ways than keys name none.
_ACCEPTED: Final = re.compile(
    r"Accepted [a-z0-9/_-]{1,64} for \S{1,256} from (\S{1,256}) port \d{1,5} ssh2"
    r"(?:: \S{1,64} (SHA256:[A-Za-z0-9+/]{43}|MD5:[0-9a-f:]{47})(?![A-Za-z0-9+/:]))?"
)


class Accepted(NamedTuple):
    """A line of the log: which server process let whom in, and when. `fingerprint` is "" where it was by no key."""

    pid: int
    at_s: float
    client: str
    fingerprint: str


class AgentKey(NamedTuple):
    """Whose a key is that the site lists: a harness, and where it is told which, a registered agent."""

    harness: str
    agent: str = ""


class Login(NamedTuple):
    """Somebody who was let in, in digests. `key` is empty where it was by none. `is_doubtful`: two lines differ."""

    at_s: float
    key: bytes
    client: bytes
    agent: AgentKey | None = None
    is_doubtful: bool = False


@dataclass(frozen=True, slots=True)
class SshDay:
    """Connections of a day without a terminal that are no agent's, since we began; of `untold` nothing was logged."""

    day_s: int
    connections: int
    untold: int
    keys: int
    clients: int
    pairs: int


def read_line(line: bytes, form: str, now_s: float) -> Accepted | None:
    """Read a line of the journal's JSON, or of a log as syslog writes it; None for what tells of no login."""
    return _read_journal(line) if form == JOURNAL else _read_plain(line, now_s)


def _read_plain(line: bytes, now_s: float) -> Accepted | None:
    found = _LINE.match(line)
    return _accepted(int(found[1]), now_s - _BEFORE_S, found[2].decode(errors="replace")) if found else None


def _read_journal(line: bytes) -> Accepted | None:
    """Read what journald vouches for: the number and the account of who wrote it are the kernel's (`_PID`, `_UID`)."""
    if b"Accepted " not in line:
        return None
    try:
        told = json.loads(line)
        message, pid, at_s = told["MESSAGE"], told["_PID"], int(told["__REALTIME_TIMESTAMP"]) / 1e6
        is_servers = told["_UID"] == "0" and told["_COMM"] in _SERVERS
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    if not (is_servers and isinstance(message, str) and isinstance(pid, str)):
        return None
    return _accepted(int(pid), at_s, message) if pid.isascii() and pid.isdigit() and len(pid) <= 10 else None


def _accepted(pid: int, at_s: float, message: str) -> Accepted | None:
    found = _ACCEPTED.match(message)
    return Accepted(pid, at_s, found[1], found[2] or "") if found else None


@dataclass(slots=True)
class _Tally:
    connections: int = 0
    untold: int = 0
    keys: set[bytes] = field(default_factory=set)
    clients: set[bytes] = field(default_factory=set)
    pairs: set[bytes] = field(default_factory=set)
    is_news: bool = True

    def add(self, login: Login | None) -> None:
        self.connections, self.is_news = self.connections + 1, True
        if login is None or login.is_doubtful:
            self.untold += 1
        elif len(self.pairs) < MOST:
            self.pairs.add(login.key + login.client)
            self.clients.add(login.client)
            if login.key:
                self.keys.add(login.key)


class Logins:
    """Logins that go on, and the stretches of work of keys that are agents': connections of one key from one client.

    `agents`: by fingerprint.
    """

    def __init__(self, *, key: bytes, agents: Mapping[str, AgentKey] | None = None) -> None:
        self._key = key
        self._agents = {self._digest(name): agent for name, agent in (agents or {}).items()}
        self._by_server: dict[int, Login] = {}
        self._stretches: dict[tuple[bytes, bytes, int], Key] = {}
        self._days: dict[int, _Tally] = {}

    def hear(self, line: Accepted) -> None:
        """Take a line. A server process writes one: a second that says something else makes both doubtful."""
        key = self._digest(line.fingerprint) if line.fingerprint else b""
        login = Login(line.at_s, key, self._digest(line.client), self._agents.get(key) if key else None)
        known = self._by_server.get(line.pid)
        if known is not None:
            if (known.key, known.client) != (login.key, login.client):
                self._by_server[line.pid] = known._replace(agent=None, is_doubtful=True)
            return
        if len(self._by_server) >= MOST:
            del self._by_server[next(iter(self._by_server))]
        self._by_server[line.pid] = login

    def end(self, pid: int, at_s: float) -> None:
        """Forget whom a process let in that ended then; what was logged later is of another one with its number."""
        login = self._by_server.get(pid)
        if login is not None and login.at_s <= at_s:
            del self._by_server[pid]

    def of(self, servers: Sequence[int]) -> Login | None:
        """Return whom one of some server processes let in, the last of them first."""
        return next((self._by_server[pid] for pid in reversed(servers) if pid in self._by_server), None)

    def stretch(self, login: Login, uid: int, root: Key) -> Key:
        """Return the first process of the stretch of work that a connection belongs to: `root` begins one."""
        return self._stretches.setdefault((login.key, login.client, uid), root)

    def forget(self, root: Key) -> None:
        """Take the end of a stretch."""
        for place in [place for place, first in self._stretches.items() if first == root]:
            del self._stretches[place]

    def count(self, servers: Sequence[int], at_s: float) -> None:
        """Count a connection that is no agent's."""
        self._days.setdefault(int(at_s) // DAY_S * DAY_S, _Tally()).add(self.of(servers))

    def days(self, from_s: float) -> Iterator[SshDay]:
        """Yield the days of which there is more to tell; those that were over at a time are forgotten."""
        for day_s, tally in list(self._days.items()):
            if tally.is_news:
                tally.is_news = False
                yield SshDay(
                    day_s, tally.connections, tally.untold, len(tally.keys), len(tally.clients), len(tally.pairs)
                )
            if day_s + DAY_S <= from_s:
                del self._days[day_s]

    def _digest(self, text: str) -> bytes:
        return blake2b(text.encode(errors="replace"), key=self._key, digest_size=16).digest()
