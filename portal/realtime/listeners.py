"""Who listens in this process: sockets and waiting long-polls, found by topic."""

import asyncio
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from portal.core.errors import DomainError, TooMany
from portal.realtime.stream import Event
from portal.realtime.viewers import Viewer

BACKLOG = 1000
# Events; then the others come, and the loop may say that the connection is lost. A transport that was lost takes five
# writes (asyncio.constants, LOG_THRESHOLD_FOR_CONNLOST_WRITES) and logs a line for each one more.
TURN = 4
PER_PRINCIPAL = 200  # a `gatehouse wait` for each job of a campaign


class Listener:
    """One socket or long-poll. Events wait here, at most `BACKLOG`; what is too slow loses its place, not others' time.

    `cursor` is the position up to which the listener was served; nothing at or below it is offered again.
    """

    def __init__(self, viewer: Viewer, topics: Iterable[str]) -> None:
        self.viewer = viewer
        self.topics = set(topics)
        self.cursor = 0
        self.waiting: deque[Event] = deque()
        self.overflowed = False
        self.ended: DomainError | None = None
        self.woken = asyncio.Event()
        self.served = 0

    async def wait(self) -> None:
        """Wait until there is something to do. Whoever has a long backlog gives others their turn in between."""
        self.served += 1
        if self.waiting and self.served % TURN == 0:
            await asyncio.sleep(0)
        await self.woken.wait()

    def offer(self, event: Event) -> None:
        """Queue an event, or note that the listener fell too far behind."""
        if event.seq <= self.cursor or self.overflowed:
            return
        if len(self.waiting) >= BACKLOG:
            self.waiting.clear()
            self.overflowed = True
        else:
            self.waiting.append(event)
        self.woken.set()

    def next(self) -> Event | None:
        """Take the oldest event that waits and move the cursor to it; None where nothing waits."""
        if not self.waiting:
            self.woken.clear()
            return None
        event = self.waiting.popleft()
        self.cursor = event.seq
        return event

    def skip_to(self, seq: int) -> None:
        """Stand at `seq`: what waits up to there is forgotten, what comes later is offered again."""
        self.cursor, self.overflowed = seq, False
        self.waiting = deque(event for event in self.waiting if event.seq > seq)

    def end(self, error: DomainError) -> None:
        """Tell the listener that its right is gone."""
        self.ended = error
        self.woken.set()

    def require_right(self) -> None:
        """Raise what ended the listener, if anything did."""
        if self.ended is not None:
            raise self.ended


class Listeners:
    """The index topic → listeners of one process."""

    def __init__(self) -> None:
        self._by_topic: dict[str, set[Listener]] = {}
        self._all: set[Listener] = set()
        self._of_principal: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Listener]:
        return iter(list(self._all))

    @contextmanager
    def listening(self, listener: Listener) -> Iterator[Listener]:
        """Keep a listener in the index. Errors: `TooMany` past `PER_PRINCIPAL` of one principal in this process."""
        principal = listener.viewer.principal
        if self._of_principal[principal] >= PER_PRINCIPAL:
            raise TooMany(
                f"{PER_PRINCIPAL} connections of yours listen already.",
                code="too_many_listeners",
                retry_after_s=5,
                remedy="Close some, or ask for several topics on one.",
            )
        self._of_principal[principal] += 1
        self._all.add(listener)
        topics, listener.topics = listener.topics, set()
        self.add_topics(listener, topics)
        try:
            yield listener
        finally:
            self.remove_topics(listener, set(listener.topics))
            self._all.discard(listener)
            self._of_principal[principal] -= 1
            if not self._of_principal[principal]:
                del self._of_principal[principal]

    def add_topics(self, listener: Listener, topics: Iterable[str]) -> None:
        """Let a listener hear more topics, from the next event on."""
        for topic in topics:
            self._by_topic.setdefault(topic, set()).add(listener)
            listener.topics.add(topic)

    def remove_topics(self, listener: Listener, topics: Iterable[str]) -> None:
        """Let a listener hear fewer topics."""
        for topic in topics:
            listener.topics.discard(topic)
            held = self._by_topic.get(topic, set())
            held.discard(listener)
            if not held:
                self._by_topic.pop(topic, None)

    def deliver(self, event: Event) -> None:
        """Offer an event once to each listener of any of its topics."""
        hearing: set[Listener] = set()
        for topic in event.topics:
            hearing |= self._by_topic.get(topic, set())
        for listener in hearing:
            listener.offer(event)
