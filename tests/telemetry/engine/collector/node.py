"""A node that tells facts as the kernel would."""

from collections.abc import Sequence

from telemetry.engine.collector.facts import Executed, Exited, Fact, Forked, Key, Sighting, Snapshot, Told
from telemetry.engine.collector.logins import Logins
from telemetry.engine.collector.processes import LOGIN, Where
from telemetry.engine.collector.watch import Parts, Watch

TTY = 34_816
BOOT_S = 1_800_000_000  # a whole minute
TICKS_S = 100


class Node:
    """Processes by name; `now_s` counts from the node's start. All facts go straight to a watch."""

    def __init__(
        self, *, study: bool = False, apart_s: float = 30, base: Where = LOGIN, markers: Sequence[str] = (),
        jobs_alone: bool = False, logins: Logins | None = None,
    ) -> None:  # fmt: skip
        self.now_s, self.next_pid = 100.0, 1000
        self.facts: list[Fact] = []
        self.logins = logins or Logins(key=b"node")
        self.starts: dict[int, int] = {}
        self.watch = Watch(
            began_s=BOOT_S + 100, boot_s=BOOT_S, ticks_s=TICKS_S, key=b"node", apart_s=apart_s, with_people=study,
            base=base, markers=markers, jobs_alone=jobs_alone, logins=logins,
        )  # fmt: skip

    @property
    def at_ns(self) -> int:
        return int((BOOT_S + self.now_s) * 1e9)

    def tell(self, fact: Fact) -> None:
        self.facts.append(fact)
        self.watch.take(fact)

    def fork(self, parent: int, pid: int = 0) -> int:
        self.now_s += 0.01
        self.next_pid += 1
        pid = pid or self.next_pid
        self.starts[pid] = int(self.now_s * TICKS_S)
        self.tell(Forked(self.at_ns, parent, Key(pid, self.starts[pid])))
        return pid

    def execute(self, pid: int, *argv: str | bytes, parent: int = 1, tty: int = 0, ended: bool = False) -> int:
        self.tell(Executed(self.at_ns, pid, self.sighting(pid, *argv, parent=parent, tty=tty, ended=ended)))
        return pid

    def sighting(
        self, pid: int, *argv: str | bytes, parent: int = 1, tty: int = 0, ended: bool = False, start: int = 0
    ) -> Sighting:
        words = [word if isinstance(word, bytes) else word.encode(errors="replace") for word in argv]
        name = words[0].rpartition(b"/")[2][:15] if words else b""
        text = b"" if ended else b"".join(word + b"\0" for word in words)
        return Sighting(pid, start or self.starts[pid], parent, 1000, tty, ended, name, b"", text)

    def run(self, parent: int, *argv: str | bytes, tty: int = 0, ended: bool = False) -> int:
        """Fork and run a program; it goes on running."""
        return self.execute(self.fork(parent), *argv, parent=parent, tty=tty, ended=ended)

    def exit(self, pid: int) -> None:
        self.tell(Exited(self.at_ns, pid))

    def look(self, *sightings: Sighting) -> None:
        self.tell(Snapshot(self.at_ns, sightings))

    def say(self, **numbers: int) -> None:
        told = Told("events", 0, 0, 0, 0, 0, 0, 0)
        self.tell(told._replace(**numbers))

    def close(self) -> Parts:
        """All there is, as at the end of a run; the next minute begins."""
        parts = self.watch.close(BOOT_S + self.now_s + 1, float("inf"))
        self.now_s += 60
        return parts


def counts(parts: Parts, measure: str = "commands") -> dict[tuple[str, str], int]:
    """A measure by session and driver."""
    found: dict[tuple[str, str], int] = {}
    for each in parts.minutes:
        place = each.session, each.driver
        found[place] = found.get(place, 0) + each.counts.get(measure, 0)
    return found
