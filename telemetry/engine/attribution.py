"""Who submitted a job: an agent, a person, or nobody knows.

The evidence is *declared sessions*: a harness said when it worked on a host for a login name, or a person's
shell was recorded. A job belongs to the session of the same cluster and user that covers its submit time.
The rules, in order:

1. Agent sessions cover it: the actor is an agent. An interactive session at the same time makes that less
   sure, but a person at the terminal of an agent's account is not a denial.
2. Several agent sessions: the one that started last answers (an outer session usually starts an inner one),
   less sure. The harness is named only when all of them name the same one, else it is "".
3. Only interactive sessions: the actor is a human; the one that started last is named.
4. None: unknown. Never a guess from the absence of evidence.

Confidences are ordinal ("which answer to trust more"), not measured probabilities.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

Actor: TypeAlias = Literal["agent", "human", "unknown"]
Kind: TypeAlias = Literal["agent", "interactive"]

METHOD_DECLARED: Final = "declared_session"
METHOD_DECLARED_SHARED: Final = "declared_session_with_interactive"
METHOD_DECLARED_SEVERAL: Final = "declared_sessions_overlapping"
METHOD_INTERACTIVE: Final = "interactive_session"
METHOD_NONE: Final = "none"

CONFIDENCE: Final = {
    METHOD_DECLARED: 0.95,
    METHOD_DECLARED_SHARED: 0.7,
    METHOD_DECLARED_SEVERAL: 0.8,
    METHOD_INTERACTIVE: 0.8,
    METHOD_NONE: 0.0,
}
# Clocks of login nodes and of the controller differ a little; a submit that near to a session's edge is
# inside.
CLOCK_SLACK_S: Final = 2


class Session(NamedTuple):
    """One declared session on one cluster (UTC epoch seconds); `end_s` is None while it is open."""

    session_id: int
    user: str
    kind: Kind
    harness: str
    host: str
    start_s: int
    end_s: int | None

    def covers(self, moment_s: int) -> bool:
        """Say whether a moment is inside the session, give or take the clocks' difference."""
        if moment_s < self.start_s - CLOCK_SLACK_S:
            return False
        return self.end_s is None or moment_s <= self.end_s + CLOCK_SLACK_S


class Attribution(NamedTuple):
    """The answer for one job; `evidence` are the ids of all sessions that covered its submit, in order."""

    actor: Actor
    harness: str
    session_id: int | None
    method: str
    confidence: float
    evidence: tuple[int, ...]


UNKNOWN: Final = Attribution("unknown", "", None, METHOD_NONE, CONFIDENCE[METHOD_NONE], ())


def _judge(covering: Sequence[Session]) -> Attribution:
    """Apply the rules of this module to the sessions that cover a submit, in whatever order they come."""
    if not covering:
        return UNKNOWN
    agents = [session for session in covering if session.kind == "agent"]
    named = max(agents or covering, key=lambda session: (session.start_s, session.session_id))
    method = _method(len(agents), len(covering))
    harnesses = {session.harness for session in agents}
    return Attribution(
        actor="agent" if agents else "human",
        harness=harnesses.pop() if len(harnesses) == 1 else "",
        session_id=named.session_id,
        method=method,
        confidence=CONFIDENCE[method],
        evidence=tuple(sorted(session.session_id for session in covering)),
    )


def _method(agents: int, covering: int) -> str:
    """Name how it was found; of two doubts the greater one counts."""
    if not agents:
        return METHOD_INTERACTIVE
    if covering > agents:
        return METHOD_DECLARED_SHARED
    return METHOD_DECLARED_SEVERAL if agents > 1 else METHOD_DECLARED


class Span(NamedTuple):
    """From some second on, until the next span of the user, all submits are attributed alike."""

    user: str
    first_s: int
    found: Attribution


class Matcher:
    """Attribute many jobs of one cluster: sessions sorted by user and start, found by bisection.

    Per user, `latest_end[i]` is the last end among the first i + 1 sessions: the walk back from the submit
    time stops where nothing before can reach it, so that a job costs O(log n + sessions looked at).
    """

    __slots__ = ("_by_user",)

    def __init__(self, sessions: Iterable[Session]) -> None:
        by_user: dict[str, list[Session]] = {}
        for session in sessions:
            by_user.setdefault(session.user, []).append(session)
        self._by_user = {user: _index(found) for user, found in by_user.items()}

    def attribute(self, *, user: str, submit_s: int) -> Attribution:
        """Attribute one job from the sessions of its user that cover its submit."""
        if user not in self._by_user:
            return UNKNOWN
        starts, latest_end, sessions = self._by_user[user]
        covering = []
        i = bisect_right(starts, submit_s + CLOCK_SLACK_S) - 1
        while i >= 0 and latest_end[i] >= submit_s - CLOCK_SLACK_S:
            if sessions[i].covers(submit_s):
                covering.append(sessions[i])
            i -= 1
        return _judge(covering)

    def spans(self) -> Iterator[Span]:
        """Yield the spans of each user in their order, cut at the edges of sessions: for many jobs at once.

        Before the first one nobody knows; else the last one at or before a submit has the answer of `attribute`.
        """
        for user, (_, _, sessions) in self._by_user.items():
            starts = {session.start_s - CLOCK_SLACK_S for session in sessions}
            ends = {session.end_s + CLOCK_SLACK_S + 1 for session in sessions if session.end_s is not None}
            for moment_s in sorted(starts | ends):
                yield Span(user, moment_s, self.attribute(user=user, submit_s=moment_s))


_Index: TypeAlias = tuple[list[int], list[float], list[Session]]


def _index(sessions: list[Session]) -> _Index:
    sessions.sort(key=lambda session: (session.start_s, session.session_id))
    latest, ends = float("-inf"), []
    for session in sessions:
        latest = max(latest, float("inf") if session.end_s is None else session.end_s)
        ends.append(latest)
    return [session.start_s for session in sessions], ends, sessions
