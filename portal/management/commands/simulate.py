"""`manage.py simulate`: the demo facility, or the published measurement as ground truth."""

import json
from datetime import UTC, datetime
from pathlib import Path
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

    help = (
        "Make a believable demo facility in an empty database; with --live, keep its jobs moving until stopped. "
        "With --scale paper, plant the numbers of the published measurement, for reports to be held to."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--seed", type=int, default=SEED, help=f"another seed, another facility (default {SEED})")
        parser.add_argument("--now", default="", help="the instant at which it stands, ISO 8601 (default: now)")
        parser.add_argument("--jobs", type=int, default=JOBS, help=f"about how many jobs (default {JOBS})")
        parser.add_argument(
            "--scale", choices=["demo", "paper"], default="demo", help="of what: a small demo, or the measured cluster"
        )
        parser.add_argument(
            "--share", type=float, default=1.0, help="of the measured cluster's 7,088,836 jobs, 0.003 to 1 (default 1)"
        )
        parser.add_argument("--planted", type=Path, help="a file for what --scale paper planted, as JSON")
        parser.add_argument("--live", action="store_true", help="keep emitting job events until SIGTERM or Ctrl-C")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["scale"] == "paper":
                self._plant(options)
                return
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

    def _plant(self, options: dict[str, Any]) -> None:
        from portal.demo.paper.load import load_paper

        if options["live"]:
            raise CommandError("--scale paper is of a time that is over: leave --live out.")
        planted = load_paper(seed=options["seed"], share=options["share"], say=self._say)
        if options["planted"] is None:
            return
        try:
            options["planted"].write_text(json.dumps(planted, indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{options['planted']} cannot be written: {error.strerror}.") from error
        self._say(f"Wrote {options['planted']}.")

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
