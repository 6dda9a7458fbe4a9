"""Whose work each process of a node is: an agent's, a person's, or nobody knows (paper §III, "Separating agent-driven
from human-driven activity").

A process is agent-driven if it descends from a harness, human-driven if it descends from an interactive shell on a tty
without a harness in between or above, and otherwise unknown. What a process is, it is given when it is forked and keeps
whatever becomes of its parents: so `nohup`, `setsid`, a shell that ended, or a tmux server that outlives its session
change nothing. A number that the kernel gives out anew is another process: they are told apart by their start.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from principals.engine.recognition import Recogniser, Signature, recogniser
from telemetry.engine.collector.facts import Key, Seen
from telemetry.engine.collector.logins import Login, Logins
from telemetry.engine.collector.origins import NO_JOB, NOT_ASKED

Driver: TypeAlias = Literal["agent", "human", "unknown"]
Place: TypeAlias = Literal["login", "job", "ssh", "agent_host"]

_NO_JOBS: Final = (NOT_ASKED, NO_JOB)
_STEP: Final = "slurmstepd"  # under it all of a job is
_SERVERS: Final = frozenset({_STEP, "sshd", "sshd-session", "sshd-auth"})  # the last two from OpenSSH 9.8 and 10 on
_MOST_SERVERS: Final = 3  # the listener, the one of a connection, and its copy for whoever came
SSH_KEY: Final = "ssh_key"
_SHELLS: Final = frozenset({"bash", "zsh", "fish", "tcsh", "csh", "ksh", "dash", "sh"})


@dataclass(frozen=True, slots=True)
class Label:
    """Whose work a process is. `root`: the harness, or the shell, that it descends from.

    `evidence`: what tells an agent's, where that is no program of its own; `agent` the registered one that it names.
    With a key of SSH, `root` is the first process of all connections that belong together.
    """

    driver: Driver = "unknown"
    root: Key | None = None
    harness: str = ""
    evidence: str = ""
    agent: str = ""


UNKNOWN: Final = Label()


class Where(NamedTuple):
    """Where a process works: by way of what it came to be. `job`: the raw id, 0 where it is in none or not told.

    `root`: over SSH, what its connection began with. `is_server`: it is the SSH server's own. `servers`: the server
    processes that it came by, one of which logged who it is.
    """

    place: Place = "login"
    job: int = 0
    root: Key | None = None
    is_server: bool = False
    servers: tuple[int, ...] = ()


LOGIN: Final = Where()


class Process(NamedTuple):
    """A living process. `argv` is not kept."""

    key: Key
    uid: int
    label: Label
    where: Where


class Processes:
    """The living processes of a node, from the kernel's events and snapshots in any mixture.

    Feed events in their order. An event of a process that was never seen makes it known with what is at hand. Starts
    that are no more than `slack` apart are one start, told by two clocks; the one that `/proc` tells counts.

    `base`: where a process works of which nothing else is known. `markers`: the harnesses of the variables that were
    looked for, in their order. `logins`: who came by SSH, where that is listened to.
    """

    def __init__(
        self, harnesses: Sequence[Signature] | None = None, *, slack: int = 0, base: Where = LOGIN,
        markers: Sequence[str] = (), logins: Logins | None = None,
    ) -> None:  # fmt: skip
        self._harnesses = recogniser() if harnesses is None else Recogniser(harnesses)
        self._slack, self._base, self._markers = slack, base, markers
        self._logins = logins
        self._living: dict[int, Process] = {}

    def __iter__(self) -> Iterator[Process]:
        return iter(self._living.values())

    def __len__(self) -> int:
        return len(self._living)

    def get(self, pid: int) -> Process | None:
        """Return a living process by its number."""
        return self._living.get(pid)

    def fork(self, parent: int, child: Key) -> Process:
        """Take a new process, which is what its parent is; a number that was in use is given out anew."""
        above = self._living.get(parent)
        made = Process(child, above.uid, above.label, above.where) if above else self._begin(child)
        self._living[child.pid] = made
        return made

    def execute(self, seen: Seen) -> Process:
        """Take what a process runs from now on, and return it as it then is."""
        known = self._living.get(seen.key.pid)
        if known is None or not self._is_same(known.key, seen.key):
            known = self.fork(seen.parent, seen.key)
        slug = self._harnesses.recognise(seen.argv, seen.exe)
        login = self._login(known.where, seen)
        label = self._label(self._of_key(login, seen) or known.label, seen, slug)
        made = Process(seen.key, seen.uid, label, self._where(known.where, seen, label, slug))
        self._living[seen.key.pid] = made
        return made

    def exit(self, pid: int) -> Process | None:
        """Forget a process that ended, and return it as it was."""
        return self._living.pop(pid, None)

    def snapshot(self, processes: Iterable[Seen]) -> list[Process]:
        """Take all processes there are now; return those that ended since without an event.

        What is known keeps its label unless it runs a harness of whose start nothing was heard: a snapshot shows who
        the parents are now, not who they were.
        """
        now = {each.key.pid: each for each in processes}
        gone = [old for pid, old in self._living.items() if pid not in now or not self._is_same(now[pid].key, old.key)]
        for old in gone:
            del self._living[old.key.pid]
        for each in now.values():
            for above in _lineage(each, now, self._living) or [each]:
                self.execute(above)
        return gone

    def _is_same(self, one: Key, other: Key) -> bool:
        return one.pid == other.pid and abs(one.start - other.start) <= self._slack

    def _begin(self, key: Key) -> Process:
        return Process(key, -1, UNKNOWN, self._base)

    def _login(self, where: Where, seen: Seen) -> Login | None:
        """Return who came by SSH, of what they came for."""
        is_begin = where.is_server and seen.job == NO_JOB and not _is_server(where, seen)
        return self._logins.of(where.servers) if self._logins and is_begin else None

    def _of_key(self, login: Login | None, seen: Seen) -> Label | None:
        """Return whose work a connection is, where its key is an agent's."""
        if self._logins is None or login is None or login.agent is None:
            return None
        root = self._logins.stretch(login, seen.uid, seen.key)
        return Label("agent", root, login.agent.harness, SSH_KEY, login.agent.agent)

    def _label(self, label: Label, seen: Seen, slug: str) -> Label:
        if slug and slug != label.harness:  # a harness that starts itself anew goes on with its session
            return Label("agent", seen.key, slug)
        if 0 < seen.marker <= len(self._markers) and label.driver != "agent":
            return Label("agent", seen.key, self._markers[seen.marker - 1])
        if label.driver == "unknown" and _is_interactive(seen):
            return Label("human", seen.key)
        return label

    def _where(self, where: Where, seen: Seen, label: Label, slug: str) -> Where:
        """Return where a process works from now on. A job that is told outweighs all else, also what came by SSH."""
        if seen.job not in _NO_JOBS:
            job = max(seen.job, 0)
            return Where("job", job) if where.place != "job" or job not in {0, where.job} else where
        if where.place == "job":
            return where
        if _is_server(where, seen):
            if _program(seen) == _STEP:
                return Where("job")
            passed = (*where.servers, seen.key.pid) if seen.key.pid not in where.servers else where.servers
            return self._base._replace(is_server=True, servers=passed[-_MOST_SERVERS:])
        if where.is_server and seen.job != NOT_ASKED:  # what leads a session there is what somebody came for
            at_terminal = seen.tty and label.evidence != SSH_KEY
            return self._base if at_terminal else Where("ssh", root=seen.key, servers=where.servers)
        if where.place != "ssh":
            return where
        is_at_terminal = label.driver == "human" and label.root == seen.key
        is_at_home = bool(slug) and self._base.place == "agent_host"
        return self._base if is_at_terminal or is_at_home else where


def _is_server(where: Where, seen: Seen) -> bool:
    return (seen.uid == 0 or where.is_server) and _program(seen) in _SERVERS


def _program(seen: Seen) -> str:
    """Return the name of the program that runs; servers write what they do into their first word."""
    path = seen.exe or (seen.argv[0].partition(":")[0] if seen.argv else "")
    return path.rpartition("/")[2]


def _is_interactive(seen: Seen) -> bool:
    """Say whether a process is a shell that waits for a person at a terminal."""
    if not seen.tty or not seen.argv:
        return False
    name = seen.argv[0].removeprefix("-").rpartition("/")[2]
    # A script's name, or a text to run, is a word that is no option, or stands behind one with a "c" in it.
    plain = all(word.startswith("-") and (word.startswith("--") or "c" not in word) for word in seen.argv[1:])
    return name in _SHELLS and plain


def _lineage(seen: Seen, now: dict[int, Seen], known: dict[int, Process]) -> list[Seen]:
    """Return a process and those above it that are not known yet, the uppermost first."""
    line: list[Seen] = []
    at: Seen | None = seen
    while at is not None and at.key.pid not in known and at not in line:
        line.append(at)
        at = now.get(at.parent)
    return line[::-1]
