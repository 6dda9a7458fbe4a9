"""A run of eventd: look at the spool five times a second, send what is there, wait for a portal that is away.

To list a folder that is empty costs some ten microseconds: five times a second that is less than any way to be woken
would take to be right on every file system, and what it adds to an event's way is a tenth of a second.
"""

import argparse
import json
import signal
import threading
import time
from pathlib import Path

from portal.cli import client, posting
from portal.cli.eventd import DEFAULT_CONFIG
from portal.cli.eventd.config import Config, read
from portal.cli.eventd.spool import DAY_S, Event, HookSpool
from portal.cli.posting import say
from portal.cli.settings import read_token
from telemetry.engine.slurm.errors import FieldError

PATH = "/ingest/slurm-events"
LOOK_S = 0.2
MOST_EVENTS = 500  # of one body
FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
ROOM_S = 1.0  # so often is room made for the hooks while nothing can be sent


def serve(options: argparse.Namespace) -> int:
    """Run as the options say. Errors: `Unusable`."""
    config = read(Path(options.config or DEFAULT_CONFIG))
    token = read_token(Path(config.token_file), "ingest:events", "eventd")
    client.load()
    spool = HookSpool(Path(config.spool))
    spool.open()
    poster = posting.Poster(config.portal.rstrip("/"), PATH, token, lambda: client.read_token(Path(config.token_file)))
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    eventd = Eventd(config, spool, poster, stop)
    try:
        if options.once:
            while eventd.send():
                pass
            return 1 if spool.lying(1) else 0
        say(f"Sending what the hooks of {config.cluster} tell.")
        eventd.run()
    finally:
        spool.close()
    return 0


class Eventd:
    """Empties one spool into one portal."""

    def __init__(self, config: Config, spool: HookSpool, poster: posting.Poster, stop: threading.Event) -> None:
        self._config, self._spool, self._poster, self._stop = config, spool, poster, stop
        self._most = MOST_EVENTS
        self._failures = 0
        self._wait_s = 0.0

    def run(self) -> None:
        """Send what comes until told to stop; what is not sent by then stays where it is."""
        while not self._stop.is_set():
            try:
                self.send()
                self._pause()
            except OSError as error:
                self._later(f"the spool cannot be used: {error.strerror}", None)
                self._stop.wait(self._wait_s)

    def send(self) -> bool:
        """Send what is there, as much as one body holds; say whether there was anything and it is gone from there.

        Errors: `OSError`.
        """
        self._wait_s = LOOK_S
        paths, events = self._read()
        if not events:
            return bool(paths)
        sent = [{"hook": event.hook, "fired": event.fired_s, "values": event.values} for event in events.values()]
        body = json.dumps({"cluster": self._config.cluster, "events": sent}).encode()
        try:
            answer = self._poster.post(body)
        except client.PortalUnreachable as error:
            return self._later(str(error), None)
        if posting.is_refused(answer):
            return self._refused(list(events), answer)
        results = answer.said.get("results")
        if not posting.is_taken(answer) or not isinstance(results, list) or len(results) != len(events):
            return self._later(posting.words_of(answer), answer.retry_after_s)
        if self._failures:
            say("The portal takes events again.")
        self._failures, self._most = 0, min(MOST_EVENTS, 2 * self._most)
        self._forget(list(events), results)
        return True

    def _read(self) -> tuple[list[Path], dict[Path, Event]]:
        """Return the files that are there, and the events of those that are events; the others are set aside."""
        paths, events = self._spool.lying(self._most), dict[Path, Event]()
        for path in paths:
            try:
                event = self._spool.read(path)
            except FieldError as error:
                say(f"{path.name} is no event and was set aside: {error.detail}")
                self._spool.set_aside(path)
            else:
                if event is not None:
                    events[path] = event
        return paths, events

    def _forget(self, paths: list[Path], results: list[object]) -> None:
        refused = 0
        for path, result in zip(paths, results, strict=True):
            outcome, reason = _outcome(result)
            if outcome == "rejected":
                refused += 1
                if refused == 1:
                    say(f"The portal refused {path.name}, which was set aside: {reason}")
                self._spool.set_aside(path)
            else:
                self._spool.remove(path)
        if refused > 1:
            say(f"{refused} events were refused and set aside.")

    def _refused(self, paths: list[Path], answer: client.Answer) -> bool:
        """Find out which event a body was refused for: half of them go next, and half of these."""
        if len(paths) > 1:
            self._most = len(paths) // 2
            return True
        say(f"{paths[0].name} was refused and set aside: {posting.words_of(answer)}")
        self._spool.set_aside(paths[0])
        return True

    def _later(self, why: str, asked_s: float | None) -> bool:
        self._failures += 1
        if self._failures == 1:
            say(f"Events wait: {why}")
        self._wait_s = posting.wait_after(self._failures, asked_s, first_s=FIRST_WAIT_S, longest_s=LONGEST_WAIT_S)
        return False

    def _pause(self) -> None:
        """Wait until the spool is to be looked at again; while the portal is away, with room for the hooks."""
        until_s = time.monotonic() + self._wait_s
        while not self._stop.wait(max(0.0, min(ROOM_S, until_s - time.monotonic()))):
            if self._failures:
                forgotten = self._spool.make_room(
                    most_bytes=self._config.keep_mb << 20, keep_s=self._config.keep_days * DAY_S
                )
                if forgotten:
                    say(f"{forgotten} events waited too long and were forgotten.")
            if time.monotonic() >= until_s:
                return


def _outcome(result: object) -> tuple[str, str]:
    if not isinstance(result, dict):
        return "", ""
    return str(result.get("outcome", "")), str(result.get("reason", ""))
