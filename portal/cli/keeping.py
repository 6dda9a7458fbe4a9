"""A session at the portal: checked in, kept open by beats while a process goes on, checked out at its end."""

import queue
import secrets
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeVar

from portal.cli import client, posting
from portal.cli.me import refusal

BEATS: Final = 3  # in the time in which the portal wants one
WITHIN_S: Final = 900.0  # where it was not said
LOOK_S: Final = 2.0  # between two looks whether the process goes on
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 600.0
REQUEST_S: Final = 20.0
LAST_WORD_S: Final = 5.0
ENDED: Final = "session_ended"
_STOPPING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_ENDED_STATES: Final = frozenset("ZXx")
Result = TypeVar("Result")


class Budget:
    """So long may several requests take together."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends = time.monotonic() + seconds

    def spend(self, call: Callable[[float], Result]) -> Result:
        """Make a request with what is left, looking up the portal's name included.

        Errors: `PortalUnreachable`, also where it takes longer, and then nobody waits for it any more.
        """
        left = max(0.1, self._ends - time.monotonic())
        done: queue.SimpleQueue[Result | Exception] = queue.SimpleQueue()

        def make() -> None:
            try:
                done.put(call(left))
            except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
                done.put(error)

        threading.Thread(target=make, daemon=True).start()
        try:
            result = done.get(timeout=left)
        except queue.Empty:
            raise client.PortalUnreachable(
                f"{client.portal_url()} does not answer: it took more than {self.seconds:.0f} s."
            ) from None
        if isinstance(result, Exception):
            raise result
        return result


class Session:
    """A session of this agent, and what the portal is told of it. `id` is empty until it is checked in."""

    def __init__(self, beginning: dict[str, Any]) -> None:
        self.beginning = beginning
        self.id = ""
        self.was_in = False
        self.within_s = WITHIN_S
        self._key = secrets.token_hex(16)

    def ask(self, path: str, budget: Budget, body: bytes = b"", key: str = "") -> client.Answer:
        """POST as this agent; the token is read anew, for a login replaces it. Errors: `PortalUnreachable`."""
        url, token = client.portal_url(), client.token()
        headers = {"Idempotency-Key": key} if key else {}
        return budget.spend(
            lambda left: client.post(url, path, token=token, body=body, headers=headers, timeout_s=left)
        )

    def find(self, budget: Budget) -> dict[str, Any] | None:
        """Return the open session of the same process, if there is one, and take its id.

        Errors: `PortalUnreachable`, `PortalRefused`.
        """
        items = budget.spend(lambda left: client.get("/sessions", timeout_s=left))["items"]
        here = (self.beginning["host"], self.beginning["pid"])
        found: dict[str, Any] | None = next((each for each in items if (each["host"], each["pid"]) == here), None)
        if found is not None:
            self.id, self.was_in = found["id"], True
        return found

    def check_in(self, budget: Budget) -> client.Answer:
        """Check in, unless this process has a session that is open; a retry is the same check-in."""
        import json

        try:
            found = self.find(budget)
        except client.PortalRefused as refused:
            return client.Answer(refused.status, refused.problem, refused.problem.get("retry_after_s"))
        if found is not None:
            return client.Answer(200, found, None)
        answer = self.ask("/sessions", budget, json.dumps(self.beginning).encode(), self._key)
        if posting.is_taken(answer):
            self.id, self.was_in = str(answer.said["id"]), True
            self.within_s = float(answer.said["beat_within_s"])
        self._key = secrets.token_hex(16)  # that of a check-in of which no answer came is used again
        return answer

    def may_pass(self, answer: client.Answer) -> bool:
        """Say whether a refusal of a check-in is none for good: a portal that is in trouble, or asks to come again."""
        return answer.status >= 500 or answer.retry_after_s is not None

    def beat(self, budget: Budget) -> client.Answer:
        """Say that it goes on."""
        return self.ask(f"/sessions/{self.id}/heartbeat", budget)

    def check_out(self, budget: Budget) -> client.Answer:
        """Say that it has ended."""
        return self.ask(f"/sessions/{self.id}/end", budget)


def keep(session: Session, pid: int, begin: Callable[[], int]) -> int:
    """Begin, beat until a process ends or we are told to end, then check out; return 0 where it was ever checked in.

    Else 2, or 1 at once where that is what `begin` returned: refused for good.

    A portal that is away or refuses is asked again later and later. A session that it ended meanwhile is checked in
    anew.
    """
    try:
        for number in _STOPPING:
            signal.signal(number, _stop)
        began = start_of(pid)
        if begin() == 1:
            return 1
        _go_on_while(session, lambda: start_of(pid) == began is not None)
    except _Stopped:
        pass
    if session.id:
        try:
            session.check_out(Budget(LAST_WORD_S))
        except client.PortalUnreachable as error:
            posting.say(f"{error} The session ends by itself when it does not beat.")
    return 0 if session.was_in else 2


def _go_on_while(session: Session, is_there: Callable[[], bool]) -> None:
    failures, told = int(not session.id), ""
    next_at = time.monotonic() + _pause(session, failures, None)
    while is_there():
        if (left := next_at - time.monotonic()) > 0:
            time.sleep(min(left, LOOK_S))
            continue
        fault, asked_s = _go_on(session)
        failures = failures + 1 if fault else 0
        if fault and fault != told:
            posting.say(fault)
        told = fault
        next_at = time.monotonic() + _pause(session, failures, asked_s)


def _go_on(session: Session) -> tuple[str, float | None]:
    """Beat, or check in where nothing is open; return what was wrong, if anything, and how long to wait at least."""
    budget = Budget(REQUEST_S)
    try:
        answer = session.beat(budget) if session.id else session.check_in(budget)
        if answer.said.get("code") == ENDED:
            session.id = ""
            answer = session.check_in(budget)
    except client.PortalUnreachable as error:
        return str(error), None
    return ("", None) if posting.is_taken(answer) else (refusal(answer.said), answer.retry_after_s)


def _pause(session: Session, failures: int, asked_s: float | None) -> float:
    if not failures:
        return session.within_s / BEATS
    return posting.wait_after(failures, asked_s, first_s=FIRST_PAUSE_S, longest_s=LONGEST_PAUSE_S)


class _Stopped(Exception):
    """We were told to end."""


def _stop(number: int, frame: FrameType | None) -> None:
    for each in _STOPPING:
        signal.signal(each, signal.SIG_IGN)  # the last word is short
    raise _Stopped


def start_of(pid: int) -> int | None:
    """Return when a process began, which tells it from a later one of its number; None for one that ended."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return None if state in _ENDED_STATES else int(fields[18])
    except (OSError, ValueError, IndexError):
        return None


def is_running(pid: int) -> bool:
    """Say whether there is such a process."""
    return start_of(pid) is not None
