"""Who submitted a job: an agent, a person, or nobody knows.

The evidence is *declared sessions*: a harness said when it worked on a host for a login name, or a person's
shell was recorded. A job belongs to the session of the same cluster and user that covers its submit time.
A collector also sees *submissions*: an sbatch, srun or salloc that a session started.
The controller itself may have labelled a job with the harness whose environment it was submitted from.
An agent may have declared it: the job names a *receipt* that its token was given.
The rules, in order:

0. A receipt that was valid at the submit, of an agent whose owner has this login name: the actor is that agent, of its
   harness; the session is the one of the rules below, where that is of the same harness. Where those below name a
   person or another harness, less sure. Of several receipts the last one issued answers. A receipt of somebody else
   is no evidence: the rules below answer, less sure, and the method says so.
1. The controller labelled it: the actor is an agent, of that harness; the session as above. Where the rules below name
   a person, less sure: what a shell was once started from stays in its environment.
2. A submission was seen within seconds of the job's submit: its session answers, whatever else is open. Where those of
   several sessions were, the last one answers, less sure.
3. Agent sessions cover it: the actor is an agent. An interactive session at the same time makes that less
   sure, but a person at the terminal of an agent's account is not a denial.
4. Several agent sessions: the one that started last answers (an outer session usually starts an inner one),
   less sure. The harness is named only when all of them name the same one, else it is "".
5. Only interactive sessions: the actor is a human; the one that started last is named.
6. None: unknown. Never a guess from the absence of evidence.

The registered agent, where one is named, is the receipt's, else that of the session that answers.

Confidences are ordinal ("which answer to trust more"), not measured probabilities.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final, Literal, NamedTuple, TypeAlias

Actor: TypeAlias = Literal["agent", "human", "unknown"]
Kind: TypeAlias = Literal["agent", "interactive"]

METHOD_RECEIPT: Final = "receipt"
METHOD_RECEIPT_DOUBTED: Final = "receipt_against_others"
METHOD_FOREIGN: Final = "receipt_foreign"  # of somebody else: what else is known answers
METHOD_FOREIGN_ALONE: Final = "receipt_foreign_alone"  # and nothing else is
METHOD_LABELLED: Final = "environment_label"
METHOD_LABELLED_DOUBTED: Final = "environment_label_against_session"
METHOD_OBSERVED: Final = "observed"
METHOD_OBSERVED_SEVERAL: Final = "observed_several"
METHOD_DECLARED: Final = "declared_session"
METHOD_DECLARED_SHARED: Final = "declared_session_with_interactive"
METHOD_DECLARED_SEVERAL: Final = "declared_sessions_overlapping"
METHOD_INTERACTIVE: Final = "interactive_session"
METHOD_NONE: Final = "none"

CONFIDENCE: Final = {
    METHOD_RECEIPT: 0.99,
    METHOD_RECEIPT_DOUBTED: 0.78,
    METHOD_FOREIGN: 0.65,
    METHOD_FOREIGN_ALONE: 0.0,
    METHOD_LABELLED: 0.98,
    METHOD_LABELLED_DOUBTED: 0.75,
    METHOD_OBSERVED: 0.97,
    METHOD_OBSERVED_SEVERAL: 0.85,
    METHOD_DECLARED: 0.95,
    METHOD_DECLARED_SHARED: 0.7,
    METHOD_DECLARED_SEVERAL: 0.8,
    METHOD_INTERACTIVE: 0.8,
    METHOD_NONE: 0.0,
}
UNATTRIBUTED: Final = frozenset({METHOD_NONE, METHOD_FOREIGN_ALONE})
# Clocks of login nodes and of the controller differ a little; a submit that near to a session's edge is
# inside.
CLOCK_SLACK_S: Final = 2
# So long after its command started the controller may have taken a job: one under load lets sbatch(1) wait.
OBSERVED_S: Final = 5


class Session(NamedTuple):
    """One declared session on one cluster (UTC epoch seconds); `end_s` is None while it is open."""

    session_id: int
    user: str
    kind: Kind
    harness: str
    host: str
    start_s: int
    end_s: int | None
    agent_id: int | None = None  # the registered agent that it belongs to

    def covers(self, moment_s: int) -> bool:
        """Say whether a moment is inside the session, give or take the clocks' difference."""
        if moment_s < self.start_s - CLOCK_SLACK_S:
            return False
        return self.end_s is None or moment_s <= self.end_s + CLOCK_SLACK_S


class Submission(NamedTuple):
    """A submission that a collector saw start under a session (UTC epoch seconds)."""

    session: Session
    at_s: int


class Receipt(NamedTuple):
    """A receipt on one cluster: whose agent's, and from when to when (UTC epoch seconds) jobs may be submitted with it.

    `users` are the login names of the agent's owner there; `number` is higher for what was issued later.
    """

    number: int
    harness: str
    users: frozenset[str]
    first_s: int
    last_s: int
    agent_id: int

    def covers(self, submit_s: int) -> bool:
        """Say whether it was valid then, give or take the clocks' difference."""
        return self.first_s - CLOCK_SLACK_S <= submit_s <= self.last_s + CLOCK_SLACK_S


class Attribution(NamedTuple):
    """The answer for one job; `evidence` are the ids of all sessions that covered or submitted it, in order."""

    actor: Actor
    harness: str
    session_id: int | None
    method: str
    confidence: float
    evidence: tuple[int, ...]
    agent_id: int | None = None


UNKNOWN: Final = Attribution("unknown", "", None, METHOD_NONE, CONFIDENCE[METHOD_NONE], ())


def _judge(covering: Sequence[Session], seen: Sequence[Submission] = ()) -> Attribution:
    """Apply the rules of this module to what covers a submit, in whatever order it comes."""
    if seen:
        return _judge_seen(covering, seen)
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
        agent_id=named.agent_id if agents else None,
    )


def _judge_seen(covering: Sequence[Session], seen: Sequence[Submission]) -> Attribution:
    last = max(seen, key=lambda each: (each.at_s, each.session.start_s, each.session.session_id)).session
    sessions = {each.session.session_id for each in seen}
    method = METHOD_OBSERVED if len(sessions) == 1 else METHOD_OBSERVED_SEVERAL
    return Attribution(
        actor="agent" if last.kind == "agent" else "human",
        harness=last.harness,
        session_id=last.session_id,
        method=method,
        confidence=CONFIDENCE[method],
        evidence=tuple(sorted(sessions | {session.session_id for session in covering})),
        agent_id=last.agent_id if last.kind == "agent" else None,
    )


def labelled(found: Attribution, harness: str) -> Attribution:
    """Return the answer for a job that the controller labelled with a harness, where the sessions say `found`."""
    method = METHOD_LABELLED_DOUBTED if found.actor == "human" else METHOD_LABELLED
    session_id, agent_id = (found.session_id, found.agent_id) if found.harness == harness else (None, None)
    return Attribution("agent", harness, session_id, method, CONFIDENCE[method], found.evidence, agent_id)


def receipted(found: Attribution, receipts: Iterable[Receipt], *, user: str, submit_s: int) -> Attribution:
    """Return the answer for a job that names known receipts, where label and sessions say `found`.

    One that is over, or not begun, says nothing.
    """
    given = list(receipts)
    own = [receipt for receipt in given if user in receipt.users]
    valid = [receipt for receipt in own if receipt.covers(submit_s)]
    if valid:
        last = max(valid)
        harness = last.harness
        doubted = found.actor == "human" or found.harness not in ("", harness)
        method = METHOD_RECEIPT_DOUBTED if doubted else METHOD_RECEIPT
        session_id = found.session_id if found.harness == harness else None
        return Attribution("agent", harness, session_id, method, CONFIDENCE[method], found.evidence, last.agent_id)
    if len(own) == len(given):
        return found
    method = METHOD_FOREIGN_ALONE if found.method == METHOD_NONE else METHOD_FOREIGN
    return found._replace(method=method, confidence=CONFIDENCE[method])


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

    __slots__ = ("_by_user", "_seen")

    def __init__(self, sessions: Iterable[Session], submissions: Iterable[Submission] = ()) -> None:
        by_user: dict[str, list[Session]] = {}
        for session in sessions:
            by_user.setdefault(session.user, []).append(session)
        self._by_user = {user: _index(found) for user, found in by_user.items()}
        self._seen: dict[str, list[Submission]] = {}
        for each in sorted(submissions, key=_AT):
            self._seen.setdefault(each.session.user, []).append(each)

    def attribute(self, *, user: str, submit_s: int) -> Attribution:
        """Attribute one job from what its user's sessions and submissions say of its submit."""
        return _judge(self._covering(user, submit_s), self._near(user, submit_s))

    def _covering(self, user: str, submit_s: int) -> list[Session]:
        if user not in self._by_user:
            return []
        starts, latest_end, sessions = self._by_user[user]
        covering = []
        i = bisect_right(starts, submit_s + CLOCK_SLACK_S) - 1
        while i >= 0 and latest_end[i] >= submit_s - CLOCK_SLACK_S:
            if sessions[i].covers(submit_s):
                covering.append(sessions[i])
            i -= 1
        return covering

    def _near(self, user: str, submit_s: int) -> list[Submission]:
        seen = self._seen.get(user, [])
        first = bisect_left(seen, submit_s - OBSERVED_S, key=_AT)
        return seen[first : bisect_right(seen, submit_s + CLOCK_SLACK_S, key=_AT)]

    def spans(self) -> Iterator[Span]:
        """Yield the spans of each user in their order, cut at the edges of sessions: for many jobs at once.

        Around a submission that was seen there is a span of its own. Before the first one nobody knows; else the last
        one at or before a submit has the answer of `attribute`.
        """
        for user in self._by_user.keys() | self._seen.keys():
            sessions = self._by_user[user][2] if user in self._by_user else []
            edges = {session.start_s - CLOCK_SLACK_S for session in sessions}
            edges |= {session.end_s + CLOCK_SLACK_S + 1 for session in sessions if session.end_s is not None}
            for each in self._seen.get(user, []):
                edges |= {each.at_s - CLOCK_SLACK_S, each.at_s + OBSERVED_S + 1}
            for moment_s in sorted(edges):
                yield Span(user, moment_s, self.attribute(user=user, submit_s=moment_s))


_AT: Final = attrgetter("at_s")
_Index: TypeAlias = tuple[list[int], list[float], list[Session]]


def _index(sessions: list[Session]) -> _Index:
    sessions.sort(key=lambda session: (session.start_s, session.session_id))
    latest, ends = float("-inf"), []
    for session in sessions:
        latest = max(latest, float("inf") if session.end_s is None else session.end_s)
        ends.append(latest)
    return [session.start_s for session in sessions], ends, sessions
