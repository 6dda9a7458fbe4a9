"""A run of the collector: read facts, close minutes, write batches, end well."""

import argparse
import gc
import json
import os
import pwd
import select
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from portal.cli import client
from portal.cli.collect import DEFAULT_CONFIG, in_job
from portal.cli.collect.config import Config, read
from portal.cli.collect.privileges import account, give_up, start_helper
from portal.cli.collect.sending import Poster, Sender
from portal.cli.collect.source import READ_BYTES
from portal.cli.collect.spool import Spool
from portal.cli.collect.ssh_log import SshLog, open_log
from portal.cli.files import Unusable
from telemetry.engine.collector import batches
from telemetry.engine.collector.batches import Batch
from telemetry.engine.collector.facts import Ending, Fact, Found, Told
from telemetry.engine.collector.frames import BrokenFrame, Decoder
from telemetry.engine.collector.helper import is_there, peak_memory
from telemetry.engine.collector.logins import Logins
from telemetry.engine.collector.processes import Where
from telemetry.engine.collector.watch import Watch

MINUTE_S = 60
GRACE_S = 5.0  # what happened in a minute has arrived by then
TICK_S = 0.5
SETTLE_S = 0.8  # at the end: what is on its way arrives
LAST_WORDS_S = 5.0
DRY_RUN_S = 60.0
GARBAGE_AFTER = 50_000  # facts are many, and make no circles
MOST_LOGINS = 10_000
_BEGUN = {
    "events": "Collecting: the kernel tells what starts.",
    "walk": "Collecting: /proc is looked at 5 times a second; short commands are missed.",
    "records": "Collecting: the site's own sensor tells what starts.",
}
_BEGUN_IN_JOB = "Collecting: /proc is looked at 5 times a second for this job alone; short commands are missed."
_ENVIRONMENTS = " Environments of sessions' first processes are looked into for the names of agents' variables."
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

Put = Callable[[Batch], None]


def collect(options: argparse.Namespace) -> int:
    """Run as the options say; 0, or 1 where the helper failed. Errors: `Unusable`."""
    config = _config(options)
    job = in_job.find(os.environ) if options.in_job else None
    if job:
        config = in_job.keep_apart(config, job)
    form = "" if job else options.records or ("" if options.dry_run else config.records)
    # A dry run looks for itself unless it is told otherwise: records that it read would be missing where they belong.
    log = None if job or form else open_log(config, dry_run=options.dry_run)
    make_watch = _watch_maker(config, job, log.logins if log else None)
    user = account(config.user) if os.geteuid() == 0 else None
    token = "" if options.dry_run else _token(Path(config.token_file))
    kill_file = "" if options.dry_run else config.kill_file
    if kill_file and is_there(Path(kill_file)):
        print(f"{kill_file} is there: nothing is collected.", file=sys.stderr)
        return 0
    client.load()
    if form:
        from portal.cli.collect.records import collect_records

        return collect_records(config, options, form, user, token, make_watch)
    helper, pipe = start_helper(
        walk=options.walk or bool(job), kill_file=kill_file, markers=[name for name, _ in config.markers],
        only=job.only if job else "",
    )  # fmt: skip
    try:
        give_up(user)
        watch = make_watch(time.time(), boot_s())
        if options.dry_run:
            run = Run(config, watch, lambda batch: print_batch(batch, as_json=options.json), job=job, log=log)
            return run.follow(pipe, options.seconds or DRY_RUN_S)
        with sending(config, token, job) as way:
            run = Run(
                config, watch, way.put, lost=way.spool.take_lost, clock_ahead=lambda: way.sender.clock_ahead_s, job=job,
                log=log,
            )  # fmt: skip
            return run.follow(pipe, options.seconds)
    finally:
        os.close(pipe)  # with that the helper ends
        if log:
            log.close()
        with suppress(subprocess.TimeoutExpired):
            helper.wait(LAST_WORDS_S)


def _watch_maker(config: Config, job: in_job.Job | None, logins: Logins | None) -> Callable[[float, float], Watch]:
    """Return what makes a watch, given when it began and when the node started; settings are read now, with our rights.

    Errors: `Unusable`.
    """
    signatures, markers = config.signatures, [slug for _, slug in config.markers]

    def make(began_s: float, boot_s: float) -> Watch:
        return Watch(
            began_s=began_s, boot_s=boot_s, ticks_s=os.sysconf("SC_CLK_TCK"), key=os.urandom(32),
            apart_s=config.polling_interval_s, with_people=bool(config.study), harnesses=signatures,
            base=_base(config, job), markers=markers, jobs_alone=config.place == "job" and job is None,
            logins=logins,
        )  # fmt: skip

    return make


def _base(config: Config, job: in_job.Job | None) -> Where:
    """Return where all is of which nothing else is known: on a compute node what is in no job is as on a login node."""
    if job:
        return Where("job", job.id)
    return Where("agent_host") if config.place == "agent_host" else Where()


def _config(options: argparse.Namespace) -> Config:
    """Read the settings; a dry run needs none."""
    path = Path(options.config or DEFAULT_CONFIG)
    if options.dry_run and not options.config and not is_there(path):
        return Config(cluster="unnamed", user="nobody")
    return read(path)


def _token(path: Path) -> str:
    remedy = "Write the service token there (scope ingest:activity), mode 0600, for whoever starts the collector."
    try:
        return client.read_token(path)
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror} [no_token]\n{remedy}") from None
    except client.PortalUnreachable as error:
        raise Unusable(f"{error} [bad_token]\n{remedy}") from None


def boot_s() -> float:
    """Return when the node started, in seconds since 1970."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


class Way(NamedTuple):
    """The way out of the node: `put` a batch there."""

    spool: Spool
    sender: Sender
    put: Put


@contextmanager
def sending(config: Config, token: str, job: in_job.Job | None = None) -> Iterator[Way]:
    """Open the spool, and send what is put there until the end. Errors: `Unusable`."""
    if job:
        in_job.make_spool(Path(config.spool))
    spool = Spool(Path(config.spool), limit_bytes=config.spool_mb << 20)
    spool.open()
    if job:
        in_job.take_over(Path(config.spool))
    poster = Poster(config.portal.rstrip("/"), token, lambda: client.read_token(Path(config.token_file)))
    sender = Sender(spool, poster)
    sender.start()

    def put(batch: Batch) -> None:
        if not sender.is_alive():
            raise RuntimeError("The thread that sends has ended.")  # what it fell over stands above; we begin anew
        try:
            spool.put(batch)
        except OSError as error:
            print(f"A batch could not be written to {config.spool}: {error.strerror}", file=sys.stderr, flush=True)

    try:
        yield Way(spool, sender, put)
    finally:
        sender.finish(LAST_WORDS_S)
        if job:
            in_job.clear_spool(Path(config.spool))


def print_batch(batch: Batch, *, as_json: bool) -> None:
    """Print a body, as it would leave or for reading."""
    text = batch.body.decode()
    print(text if as_json else json.dumps(json.loads(text), indent=1, ensure_ascii=False), flush=True)


class Run:
    """From facts to batches, a minute at a time. `lost` tells of events in batches that will not arrive, `clock_ahead`
    how far the node's clock is ahead of the portal's, in seconds. `log`: who comes by SSH, where that is read."""

    def __init__(
        self, config: Config, watch: Watch, put: Put, *, lost: Callable[[], int] = lambda: 0,
        clock_ahead: Callable[[], int] = lambda: 0, job: in_job.Job | None = None, log: SshLog | None = None,
    ) -> None:  # fmt: skip
        self._log = log
        self._watch, self._put, self._lost, self._clock_ahead, self._job = watch, put, lost, clock_ahead, job
        self._sender = batches.Sender(
            config.cluster, config.host or socket.gethostname().partition(".")[0],
            _BOOT_ID.read_text(encoding="utf-8").strip(), str(uuid.uuid4()), _version(), config.study,
        )  # fmt: skip
        self._environments = _ENVIRONMENTS if config.environment else ""
        self._logins: dict[int, str] = {}
        self._closed_s = _minute(time.time())
        self._cpu_s = 0.0
        self._is_stopped = self._has_begun = self._is_alone = False
        self._ends_s: float | None = None

    def follow(self, pipe: int, seconds: float | None) -> int:
        """Take what comes until told to stop, or for so long: 0; 1 where the helper ended by itself."""
        gc.set_threshold(GARBAGE_AFTER)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        until_s = time.monotonic() + (seconds or float("inf"))
        try:
            status = self._take(pipe, until_s)
            if self._log:
                self._feed(self._log.rest())
        except BrokenFrame as error:
            print(f"The helper does not speak our language: {error}", file=sys.stderr, flush=True)
            status = 1
        self._close(self._end_s(), float("inf"))
        return status

    def _end_s(self) -> float:
        return time.time()

    def _take(self, pipe: int, until_s: float) -> int:
        decoder, poll = Decoder(), select.poll()
        poll.register(pipe, select.POLLIN)
        while (left_s := self._left(until_s)) > 0:
            if poll.poll(min(TICK_S, left_s) * 1000):
                data = os.read(pipe, READ_BYTES)
                if not data:
                    print("The helper ended.", file=sys.stderr, flush=True)
                    return 0 if self._is_stopped else 1
                facts = decoder.feed(data)
                if not self._feed(self._log.hold(facts) if self._log else facts):
                    return 0
            if (now_s := time.time()) >= self._closed_s + MINUTE_S + GRACE_S:
                self._close(_minute(now_s - GRACE_S), now_s)
        return 0

    def _left(self, until_s: float) -> float:
        """Return how long to go on, in seconds: at the end, until what is on its way has arrived."""
        now_s = time.monotonic()
        if self._ends_s is None and (self._is_stopped or now_s >= until_s):
            self._ends_s = now_s + SETTLE_S
        return (until_s if self._ends_s is None else self._ends_s) - now_s

    def _feed(self, facts: Iterable[Fact | Found]) -> bool:
        """Take facts; say whether to go on."""
        for fact in facts:
            if isinstance(fact, Ending):
                print("The kill file is there: collecting ends.", file=sys.stderr, flush=True)
                return False
            self._watch.take(fact)
            if isinstance(fact, Told) and not self._has_begun:
                self._has_begun = True
                told = _BEGUN_IN_JOB if self._job else _BEGUN[fact.mode]
                print(f"{told}{self._environments}", file=sys.stderr, flush=True)
        return True

    def _close(self, upto_s: float, now_s: float) -> None:
        parts = self._watch.close(upto_s, now_s)
        self._closed_s = _minute(upto_s)
        cpu_s, before_s = time.process_time(), self._cpu_s
        self._cpu_s = cpu_s
        health = replace(
            parts.health, lost=parts.health.lost + self._lost(), cpu_s=parts.health.cpu_s + cpu_s - before_s,
            memory_bytes=parts.health.memory_bytes + peak_memory(), clock_ahead_s=self._clock_ahead(),
        )  # fmt: skip
        for batch in batches.make(
            replace(parts, health=health), sender=self._sender, mode=self._watch.mode, login=self._login,
            new_id=lambda: str(uuid.uuid4()),
        ):  # fmt: skip
            self._put(batch)
        # A job's processes are all gone and nobody told us; between two steps of one there may be none for a while.
        was_alone, self._is_alone = self._is_alone, parts.health.processes <= in_job.OWN_PROCESSES
        if self._job and self._job.is_ours and was_alone and self._is_alone:
            self._is_stopped = True

    def _login(self, uid: int) -> str:
        """Return a person's login name, or the number where there is none."""
        if uid not in self._logins:
            if len(self._logins) >= MOST_LOGINS:
                self._logins.clear()
            try:
                self._logins[uid] = pwd.getpwuid(uid).pw_name
            except (KeyError, OverflowError):
                self._logins[uid] = str(uid)
        return self._logins[uid]

    def _stop(self, *_: object) -> None:
        self._is_stopped = True


def _minute(at_s: float) -> int:
    return int(at_s) // MINUTE_S * MINUTE_S


def _version() -> str:
    try:
        return version("gatehouse")
    except PackageNotFoundError:
        return "unknown"
