"""`manage.py simulate`: the demo facility."""

from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.dateparse import parse_datetime

from portal.core import clock
from portal.core.errors import DomainError
from portal.demo.load import find_demo, load_demo
from portal.demo.plan import JOBS

SEED = 7


class Command(BaseCommand):
    """Make a small facility with agents in it, or keep it moving."""

    help = "Make a believable demo facility in an empty database; with --live, keep its jobs moving until stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--seed", type=int, default=SEED, help=f"another seed, another facility (default {SEED})")
        parser.add_argument("--now", default="", help="the instant at which it stands, ISO 8601 (default: now)")
        parser.add_argument("--jobs", type=int, default=JOBS, help=f"about how many jobs (default {JOBS})")
        parser.add_argument("--live", action="store_true", help="keep emitting job events until SIGTERM or Ctrl-C")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._load(options)
            if options["live"]:
                self._live(options["seed"])
        except DomainError as error:
            raise CommandError(" ".join(filter(None, (str(error), error.remedy)))) from None

    def _load(self, options: dict[str, Any]) -> None:
        demo = find_demo()
        if demo is not None:
            if not options["live"]:
                self._say(f"The demo facility {demo.name} is there already; nothing was changed.")
            return
        if not 500 <= options["jobs"] <= 400_000:
            raise CommandError("--jobs takes a number from 500 to 400000.")
        load_demo(seed=options["seed"], now=self._now(options["now"]), jobs=options["jobs"], say=self._say)

    def _live(self, seed: int) -> None:
        from portal.demo.live import run_live

        run_live(seed=seed, say=self._say)

    def _now(self, text: str) -> datetime:
        if not text:
            return clock.now()
        try:
            moment = parse_datetime(text)
        except ValueError:
            moment = None
        if moment is None:
            raise CommandError(f"--now is {text!r}; write it like 2026-11-29T12:00:00Z.")
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()
