"""Load the measured cluster into an empty database, by the ways that a site's own data come in."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from random import Random
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO, Final, cast

from django.conf import settings

from portal.core import audit, clock
from portal.core.errors import Conflict, Invalid
from portal.demo.paper import accounting, gpus, published
from portal.demo.paper.accounting import Accounting
from portal.demo.paper.activity.sending import send_all
from portal.demo.paper.books import Books
from portal.demo.paper.failures import FailureBooks, Failures
from portal.demo.paper.gpus import GpuExports
from portal.demo.paper.jobs import Workload
from portal.demo.paper.levels import Levels
from portal.demo.paper.places.books import PlaceBooks
from portal.demo.paper.places.placing import Placement
from portal.demo.paper.places.sending import send_logs
from portal.demo.paper.plan import Plan, make_plan
from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster, Lab, User
from telemetry import services as telemetry_services
from telemetry.engine.slurm.statistics import Asked

Say = Callable[[str], object]
SOURCE: Final = "simulate"
SMALLEST: Final = 0.003  # of a smaller share not everybody would have a job
_NOW: Final = datetime.combine(published.LAST + timedelta(days=14), datetime.min.time(), UTC)  # all jobs are over
_DUMP_BYTES: Final = 96 * 1024 * 1024
_CALL_US: Final = (300, 2500)  # how long the controller works on one


def load_paper(*, seed: int, share: float, say: Say) -> dict[str, Any]:
    """Plant a share (0..1) of the measured cluster's jobs in an empty database; return what was planted.

    The same seed and share plant the same. Interrupted, it leaves what is stored: start again with an empty database.
    Errors: `Conflict` where anything is there already, `Invalid` for a share that cannot be.
    """
    if not SMALLEST <= share <= 1:
        raise Invalid(f"A share of {share:g} cannot be planted.", code="share", remedy=f"Give {SMALLEST} to 1.")
    if any(model.objects.exists() for model in (Cluster, User, Lab)):
        raise Conflict(
            "This database is not empty.", code="not_empty", remedy="Point GATEHOUSE_DATA or DATABASE_URL at another."
        )
    say(f"Planning {round(published.JOBS * share):,} jobs …")
    plan = make_plan(seed=seed, share=share, zone=settings.FACILITY_TIME_ZONE)
    with clock.at(_NOW):
        return _Loading(plan, say).run()


class _Loading:
    """One load: each step feeds one service, and the books."""

    def __init__(self, plan: Plan, say: Say) -> None:
        self._plan, self._say = plan, say
        self._cluster = principal_services.ensure_cluster(accounting.CLUSTER, is_demo=True)
        self._books = Books(plan.people, plan.start_s, plan.end_s, plan.zone)
        self._failures = FailureBooks(plan.start_s, plan.end_s)

    def run(self) -> dict[str, Any]:
        """Load everything; return the books."""
        self._books.note_sessions(self._plan.spans)
        # Before any job, as each is then attributed once. Collectors tell of the sessions too.
        placed = PlaceBooks()
        placement = Placement(self._plan, placed)
        self._books.activity = send_all(self._plan, self._cluster, placement.split, self._say)
        send_logs(self._plan, self._cluster, placement, placed, self._say)
        self._books.places = placed.as_json()
        with TemporaryFile("w+t", encoding="utf-8") as exports:
            exports.write(gpus.HEADER)
            for dump in self._dumps(exports):
                self._ingest(dump)
            exports.seek(0)
            self._say("Recording GPU use …")
            telemetry_services.import_gpu_file(
                actor=SYSTEM_ACTOR, cluster=self._cluster, lines=exports, format="dcgm", name=SOURCE, source=SOURCE
            )
        self._add_calls()
        self._say("Computing rollups …")
        while not telemetry_services.catch_up(cluster=self._cluster):
            pass
        planted = self._books.as_json() | {"repeated_failures": self._failures.as_json()}
        audit.record(
            actor=SYSTEM_ACTOR.ref, verb="demo.load", object_kind="cluster", object_id=self._cluster.pk,
            object_label=self._cluster.name, after={"jobs": self._plan.jobs, "people": len(self._plan.people)},
        )  # fmt: skip
        return planted

    def _dumps(self, exports: IO[str]) -> Iterator[BinaryIO]:
        """Yield accounting text, a dump at a time, and write GPU use beside it; a file without a name is gone at once.

        Dumps bound what is on disk; of a dump no more than one submission is in memory.
        """
        plan, rng = self._plan, Random(f"{self._plan.seed}:jobs")
        workload = Workload(rng, plan.people, plan.jobs, Levels(rng, plan.by_hand))
        lines, failures = Accounting(plan.people), Failures(Random(f"{plan.seed}:failures"))
        gpu_lines = GpuExports(Random(f"{plan.seed}:gpus"), self._books.quadrants, plan.start_s, plan.end_s)
        acts = iter(plan.acts)
        more = True
        while more:
            with TemporaryFile() as dump:
                dump.write(accounting.HEADER.encode())
                while (more := (act := next(acts, None)) is not None) and act is not None:
                    batch = workload.decide(act)
                    runs, ids = workload.runs(batch), lines.take_ids(act.size)
                    failed = failures.exit_of(batch, runs)
                    self._books.note_batch(batch, runs)
                    self._failures.note(batch, runs, failed)
                    dump.write("".join(lines.lines(batch, runs, ids, failed)).encode())
                    exports.writelines(gpu_lines.lines(batch, runs, ids))
                    if dump.tell() > _DUMP_BYTES:
                        break
                dump.seek(0)
                yield cast(BinaryIO, dump)

    def _ingest(self, dump: BinaryIO) -> None:
        batch = telemetry_services.ingest_file(
            actor=SYSTEM_ACTOR, cluster=self._cluster, stream=dump, format="sacct", source=SOURCE, name=SOURCE,
        )  # fmt: skip
        self._say(f"Stored {batch.created_rows:,} jobs of {batch.total_rows:,} records.")
        if batch.created_rows != batch.total_rows:
            raise Conflict(f"{batch.total_rows - batch.created_rows:,} records did not become jobs.", code="refused")

    def _add_calls(self) -> None:
        """Add what everybody asked of the scheduler on each day, in proportion to what they submitted."""
        self._say("Counting what was asked of the scheduler …")
        rng, people = Random(f"{self._plan.seed}:calls"), self._plan.people
        days: dict[date, dict[str, Asked]] = defaultdict(dict)
        due: dict[int, float] = defaultdict(float)
        for (day, number), jobs in sorted(self._books.day_jobs.items()):
            person = people[number]
            due[number] += jobs * person.queries_per_job
            calls = max(0, int(due[number] * rng.uniform(0.8, 1.25) + rng.random()))
            due[number] -= calls
            self._books.calls[person.kind] += calls
            days[day][person.login] = Asked(calls, calls * rng.randrange(*_CALL_US))
        for day, asked in sorted(days.items()):
            telemetry_services.add_calls(actor=SYSTEM_ACTOR, cluster=self._cluster, day=day, asked=asked)
