"""`gatehouse wait`: return when jobs are over, as they ended; told by the portal, nobody is polled."""

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from portal.cli import client
from portal.cli.me import refusal

if TYPE_CHECKING:
    from portal.cli.watch import Change, Watch

TIMED_OUT, CANNOT, INTERRUPTED = 124, 125, 130
UNKNOWN_S = 60.0  # in which the reader of a cluster sees a job that was just submitted
UNKNOWN_EVERY_S = 5.0
APART_S = 2.0  # between two questions to the portal
# A change that is old when the portal learns of it is no news: nothing tells of it but the present state.
STALEST_S = 300.0
AWAY_S = 20.0  # a restart takes less; nobody is asked meanwhile
# Slurm gives numbers again. So old an end may be that of an older job, until the portal has looked twice
# at the queue, or sacct has been asked.
OLD_S = 86_400.0
LOOKS = 3  # different times of a look: the last one began when we had asked
_STATUSES = """\
exit status: the job's own, or 128 + the signal that ended it; 201 cancelled, 202 time limit reached, 203 out of
memory, 204 node lost, 205 preempted, 206 deadline, 207 taken over by another cluster; of several (an array, --all) the
highest. 124: --timeout was reached. 125: it cannot wait (no such job, no token, neither portal nor sacct).
"""


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "wait", help="wait for jobs without polling: gatehouse wait 123", epilog=_STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("jobs", nargs="+", metavar="JOB", help="123, a task 123_4, tasks 123_[1-5], a part 123+1")
    parser.add_argument("--cluster", default="", help="the cluster, where a number is known on several")
    parser.add_argument("--timeout", type=_seconds, metavar="S", help="give up after so many seconds, with status 124")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--any", action="store_true", help="return when the first of them is over")
    which.add_argument("--all", action="store_true", help="return when all of them are over (this is the default)")
    parser.add_argument("--json", action="store_true", help="print each change as one line of JSON")
    parser.set_defaults(run=run)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < 1e9:
        raise ValueError
    return seconds


def run(options: argparse.Namespace) -> int:
    """Wait and print."""
    from portal.cli.watch import Watch
    from telemetry.engine.slurm.errors import FieldError
    from telemetry.engine.waiting import read_asked

    began = time.monotonic()
    try:
        asked = {text: read_asked(text) for text in options.jobs}
        client.portal_url()
        client.token()
    except FieldError as error:
        return _cannot(f"{error.detail}. [job_id_malformed]\nWrite 123, 123_4, 123_[1-5] or 123+1.")
    except client.PortalUnreachable as error:
        return _cannot(str(error))
    watch = Watch(asked, cluster=options.cluster, any_is_enough=options.any)
    deadline = None if options.timeout is None else began + options.timeout
    try:
        return Waiting(watch, cluster=options.cluster, deadline=deadline, as_json=options.json).run()
    except KeyboardInterrupt:
        return INTERRUPTED


def _cannot(why: str) -> int:
    print(why, file=sys.stderr)
    return CANNOT


class Waiting:
    """One wait: listens, asks how things stand, and asks sacct once a minute where the portal cannot tell."""

    def __init__(self, watch: "Watch", *, cluster: str, deadline: float | None, as_json: bool) -> None:
        from portal.cli.event_stream import EventStream

        self.watch = watch
        self.cluster = cluster
        self.deadline = deadline
        self.as_json = as_json
        self.stream = EventStream()
        self.began = time.monotonic()
        self.is_connected = self.was_replaced = False
        self.has_asked_first = self.knows_all = False  # before it listened; and then it needed no sacct
        self.tries = self.meetings = 0
        self.asked_at = self.began - APART_S  # the portal, last
        self.known_at = self.slurm_known_at = self.began  # when it, or sacct, last said who is unknown
        # Whoever does not answer at all is away, too.
        self.ask_slurm_at: float | None = self.began + AWAY_S
        self.slurm_free_at = self.began  # not before, whatever happens
        self.because = "The portal does not answer."
        self.refused = ""
        self.said = ""
        self.looks: dict[str, set[str | None]] = {}  # of each that ended long ago: when the queue was looked at

    def run(self) -> int:
        """Return the exit status, when there is one."""
        self._ask_first()
        if self.watch.status is None:
            self.stream.start()
        while True:
            now = time.monotonic()
            status = self._status(now)
            if status is not None:
                return status
            told = self.stream.next(self._next_at(now) - now)
            if told is not None:
                self._take(told)
            self._ask_where_due()

    def _status(self, now: float) -> int | None:
        if self.watch.status is not None:
            return self.watch.status
        if self.refused:
            return _cannot(self.refused)
        lost = self.watch.unknown
        is_lost = bool(lost) and (not self.watch.any_is_enough or len(lost) == len(self.watch.waited))
        known_at = min(self.known_at, self.slurm_known_at) if self.is_connected else self.slurm_known_at
        if is_lost and known_at - self.began >= UNKNOWN_S:
            names = ", ".join(each.text for each in lost)
            return _cannot(
                f"Nobody knows of {names}. [job_unknown]\n"
                "Is it the right number and cluster, and a job of the person whom your agent acts for?"
            )
        if self.deadline is not None and now >= self.deadline:
            waiting = ", ".join(each.text for each in self.watch.waited if not each.is_over)
            self._say(f"Not over in time: {waiting}.")
            return TIMED_OUT
        return None

    def _next_at(self, now: float) -> float:
        """Return when there is something to do, even where the portal tells nothing."""
        times = (self.deadline, self._ask_portal_at(), self._ask_slurm_at())
        return min([now + STALEST_S, *(at for at in times if at is not None)])

    def _ask_portal_at(self) -> float | None:
        if not self.is_connected or self.watch.ask_at is None:
            return None
        return max(self.watch.ask_at, self.asked_at + APART_S)

    def _ask_slurm_at(self) -> float | None:
        return None if self.ask_slurm_at is None else max(self.ask_slurm_at, self.slurm_free_at)

    def _take(self, told: dict[str, Any]) -> None:
        kind, now = told["type"], time.monotonic()
        if kind == "event":
            self._print(self.watch.take_event(told, now=now))
        elif kind == "hello":
            self._meet(now)
        elif kind == "resync" or (kind == "caught_up" and not self._is_first_meeting):
            self.watch.ask_at = now
        elif kind == "lost":
            self._lose(told["why"], now)
        elif kind == "refused":
            self.refused = refusal(told["problem"])

    @property
    def _is_first_meeting(self) -> bool:
        """Whether the stream begins where the answer of the present ends: then nothing is to be asked again."""
        return self.has_asked_first and self.meetings == 1 and not self.tries

    def _ask_first(self) -> None:
        """Ask how things stand before listening: whoever asks for what is over needs no stream, nor do others' events
        concern who knows its job. Where the portal does not answer, the stream says why."""
        left_s = client.TIMEOUT_S if self.deadline is None else self.deadline - time.monotonic()
        if left_s <= 0:
            return
        away_at, self.ask_slurm_at = self.ask_slurm_at, None
        self.has_asked_first = self._ask_portal(timeout_s=min(client.TIMEOUT_S, left_s))
        self.knows_all = self.ask_slurm_at is None
        if self.knows_all:
            self.ask_slurm_at = away_at
        if self.has_asked_first:
            self.stream.cursor, self.stream.topics = self.watch.seq, self.watch.topics

    def _meet(self, now: float) -> None:
        if self.was_replaced:
            self._say("The portal is back.")
        self.meetings += 1
        # What was missed comes first, so that each change is told; then the present, for not all that happened is news.
        if not self._is_first_meeting:
            self.watch.ask_at = now + APART_S if self.meetings > 1 or self.has_asked_first else now
        self.is_connected, self.was_replaced = True, False
        if self.knows_all or not self._is_first_meeting:
            self.ask_slurm_at = None

    def _lose(self, why: str, now: float) -> None:
        is_first = not self.meetings and not self.tries
        if self.is_connected or (is_first and self.has_asked_first):
            self.because, self.ask_slurm_at = why, now + AWAY_S  # a restart is over before anybody else is asked
        elif is_first:
            self.because, self.ask_slurm_at = why, now
        self.is_connected = False
        self.tries += 1

    def _ask_where_due(self) -> None:
        now, portal_at, slurm_at = time.monotonic(), self._ask_portal_at(), self._ask_slurm_at()
        if portal_at is not None and now >= portal_at:
            self._ask_portal()
        elif slurm_at is not None and now >= slurm_at:
            self._ask_slurm()

    def _ask_portal(self, *, timeout_s: float = client.TIMEOUT_S) -> bool:
        """Ask how things stand; say whether it answered."""
        from urllib.parse import urlencode

        ids = " ".join(each.text for each in self.watch.waited)
        self.watch.ask_at, self.asked_at = None, time.monotonic()
        try:
            query = urlencode({"ids": ids, "cluster": self.cluster})
            answer = client.get(f"/jobs/standing?{query}", timeout_s=timeout_s)
        except client.PortalRefused as refused:
            if refused.status < 500 and refused.status != 429:
                self.refused = refusal(refused.problem)
            self.watch.ask_at = self.asked_at + UNKNOWN_EVERY_S
        except client.PortalUnreachable:  # the stream says so, too
            self.watch.ask_at = self.asked_at + UNKNOWN_EVERY_S
        else:
            unsure = [told for told in answer["items"] if not self._is_sure(told)]
            sure = [told for told in answer["items"] if told not in unsure]
            self._print(self.watch.take_standing({**answer, "items": sure}))
            self._note_what_it_lacks(answer)
            if unsure:
                self._doubt(unsure)
            return True
        return False

    def _is_sure(self, told: dict[str, Any]) -> bool:
        """Say whether what is told of a job is of the one that is meant: an old end may be an older job's."""
        end = (told.get("job") or {}).get("end")
        if not told.get("over") or _age_s(end) < OLD_S or self.slurm_known_at > self.began:
            return True
        looks = self.looks.setdefault(told["asked"], set())
        looks.add(told.get("looked"))
        return len(looks) >= LOOKS or time.monotonic() - self.began >= UNKNOWN_S

    def _doubt(self, unsure: list[dict[str, Any]]) -> None:
        """Wait for the next looks at the queue; where nobody looks at it, ask sacct."""
        now = time.monotonic()
        names = ", ".join(told["asked"] for told in unsure)
        self._say(f"{names} ended more than a day ago. Is there a newer job of that number? The next looks will tell.")
        if any(told.get("looked") is None for told in unsure):
            self.because = f"Nobody looks at the queue in which {names} would be."
            self.ask_slurm_at = self.ask_slurm_at or now
        self.watch.ask_at = min(self.watch.ask_at or now + STALEST_S, now + UNKNOWN_EVERY_S)

    def _note_what_it_lacks(self, answer: dict[str, Any]) -> None:
        """Let sacct be asked where the portal knows nothing of a job, or has not looked at its cluster for long."""
        from telemetry.engine.slurm.values import ENDED_STATES

        now = self.known_at = time.monotonic()
        slurm_at = now
        unknown = [told["asked"] for told in answer["items"] if not told["known"]]
        stale = next((told for told in answer["items"] if _age_s(told.get("looked")) > STALEST_S), None)
        if unknown:
            names = ", ".join(unknown)
            if now - self.began < UNKNOWN_S:
                self._say(f"Not known yet: {names}. A job shows up as soon as the portal has seen it in the queue.")
            self.because = f"The portal does not know of {names}."
            slurm_at = max(self.began + UNKNOWN_S, now)
        elif stale:
            self.because = f"The portal has not looked at {stale['cluster']} since {stale['looked']}."
        self.ask_slurm_at = (self.ask_slurm_at or slurm_at) if unknown or stale else None
        # All that is known of it has ended, and it is not sure that this is all: the portal says so soon.
        is_ending = any(not told["over"] and told["state"] in ENDED_STATES for told in answer["items"])
        again_s = STALEST_S if not unknown else UNKNOWN_S if now - self.began >= UNKNOWN_S else UNKNOWN_EVERY_S
        again_s = min(again_s, UNKNOWN_EVERY_S) if is_ending else again_s
        self.watch.ask_at = now + again_s if self.watch.ask_at is None else self.watch.ask_at

    def _ask_slurm(self) -> None:
        from portal.cli import accounting

        self._say(f"{self.because} sacct is asked once a minute until it can tell.")
        self.was_replaced = not self.is_connected and (self.tries > 0 or not self.has_asked_first)
        began = time.monotonic()
        try:
            records = accounting.ask((each.asked.job for each in self.watch.waited), self.watch.cluster)
        except accounting.NoAccounting as error:
            self._say(str(error))
            if self.tries and not self.meetings:
                self.refused = f"{self.because}\n{error}"
        else:
            self._print(self.watch.take_records(records, now_s=int(time.time())))
        self.slurm_known_at = time.monotonic()
        self.ask_slurm_at = self.slurm_free_at = began + accounting.EVERY_S

    def _say(self, words: str) -> None:
        """Say what is no change of a job, each sentence once in a row."""
        from telemetry.engine.plain import plain

        if words != self.said:
            self.said = words
            print(plain(words), file=sys.stderr, flush=True)

    def _print(self, changes: "list[Change]") -> None:
        from telemetry.engine.plain import plain

        for change in changes:
            waited = change.waited
            if not self.as_json:
                print(f"{time.strftime('%H:%M:%S')} {waited.text}: {plain(change.text)}", flush=True)
                continue
            told = {
                "job": waited.text, "cluster": waited.cluster, "state": waited.state, "over": waited.is_over,
                "exit_status": waited.status, "counts": waited.counts, "text": change.text, "from": change.source,
                "details": dict(change.details),
            }  # fmt: skip
            print(json.dumps(told), flush=True)


def _age_s(written: str | None) -> float:
    from datetime import datetime

    return time.time() - datetime.fromisoformat(written).timestamp() if written else 0.0
