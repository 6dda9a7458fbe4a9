"""The living demo: what happens every second goes through the same services as what a cluster reports."""

import signal
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Final
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import OperationalError, close_old_connections
from django.db.models import Max

from policies.services import TrialWish
from portal.core import clock
from portal.core.errors import Conflict
from portal.demo import arrivals, desk, policies, security, trials
from portal.demo.load import find_demo
from portal.demo.plan import GroupPlan
from portal.demo.presence import SOURCE, Presence
from portal.demo.queue import Queue
from portal.demo.records import LAST_RAW_ID, uid_of
from principals.actors import SYSTEM_ACTOR
from principals.models import AgentSession, Cluster
from principals.services import DeclaredSession
from telemetry import services as telemetry_services
from telemetry.engine.slurm.records import NEVER_ASSIGNED, JobRecord
from telemetry.models import Job

TICK_S: Final = 1.0
ROLLUPS_EVERY_S: Final = 30
BEAT_EVERY_S: Final = 600
LEAVE_EVERY_S: Final = 60
FINDING_EVERY_S: Final = 900
QUIET_AT_MOST_S: Final = 2


class Simulator:
    """One demo facility, kept moving. `tick` does what is due; it may be called by a test with any clock."""

    def __init__(self, cluster: Cluster, *, seed: int) -> None:
        """Take over the facility as it is stored."""
        now = clock.now()
        self.cluster, self.rng, self.zone = (
            cluster,
            Random(f"{seed}:{now.timestamp()}"),
            ZoneInfo(settings.FACILITY_TIME_ZONE),
        )
        self.queue = Queue()
        self.queue.take_over(_stored_jobs(cluster))
        self.presence = Presence(_open_sessions(cluster), now)
        last = Job.objects.filter(cluster=cluster).aggregate(last=Max("raw_id"))["last"] or LAST_RAW_ID
        self.next_raw_id = last + 200  # clear of numbers that tasks of a waiting array will take
        self.stream = telemetry_services.RecordStream(actor=SYSTEM_ACTOR, cluster=cluster, source=SOURCE)
        self._next_submit = self._last_event = now.timestamp()
        self._done = {name: now.timestamp() for name in ("rollups", "leave", "finding")} | {"beat": 0.0}

    def tick(self) -> int:
        """Let happen what is due, store it, and return how many records were sent."""
        now = clock.now()
        now_s = int(now.timestamp())
        records = self.queue.step(now_s)
        if self._wants_submission(now, happened=bool(records)):
            records.append(self._submit(now, now_s))
        elif not records and now_s - self._last_event >= QUIET_AT_MOST_S:
            records = self.queue.force(now_s)
        if self._is_due("beat", now_s, BEAT_EVERY_S):
            changed = {(record.raw_job_id, record.submit_s) for record in records}
            records += [r for r in self.queue.beat(now_s) if (r.raw_job_id, r.submit_s) not in changed]
            self._declare(self.presence.open_agents())
            desk.beat()
        if records:
            self._last_event = now_s
            self.stream.write(records)
        self._tend(now, now_s)
        return len(records)

    def _wants_submission(self, now: datetime, *, happened: bool) -> bool:
        if self.queue.is_full:
            return False
        moment = now.timestamp()
        return moment >= self._next_submit or (not happened and moment - self._last_event >= QUIET_AT_MOST_S)

    def _submit(self, now: datetime, now_s: int) -> JobRecord:
        local = now.astimezone(self.zone)
        self._next_submit = now.timestamp() + arrivals.pause_s(self.rng, local)
        group, login = arrivals.draw_submitter(self.rng, local)
        self._declare(self.presence.enter(self.rng, login, group.actor, now))
        record, taken = self._submit_trial(group, login, now_s), 1
        if record is None:
            record, taken = arrivals.submit(self.rng, group, login, base=self.next_raw_id, now_s=now_s)
        self.next_raw_id += taken
        self.queue.add(record, group.actor)
        return record

    def _submit_trial(self, group: GroupPlan, login: str, now_s: int) -> JobRecord | None:
        """Ask for a trial now and then; return its job, None where none was asked for or it was refused."""
        if not arrivals.wants_trial(self.rng, group):
            return None
        minutes, gpus = trials.draw_size(self.rng)
        grant = policies.ask(login, TrialWish(minutes=minutes, gpus=gpus))
        if grant is None:
            return None
        return arrivals.submit_trial(
            self.rng, group, login, base=self.next_raw_id, now_s=now_s, minutes=minutes, gpus=gpus,
            receipt=grant.public_id,
        )  # fmt: skip

    def _declare(self, sessions: list[DeclaredSession]) -> None:
        if sessions:
            telemetry_services.declare_sessions(
                actor=SYSTEM_ACTOR, cluster=self.cluster, sessions=sessions, source=SOURCE
            )

    def _tend(self, now: datetime, now_s: int) -> None:
        """Do what comes now and then: sessions that end, a finding, rollups."""
        if self._is_due("leave", now_s, LEAVE_EVERY_S):
            self._declare(self.presence.leave(now))
        if self._is_due("finding", now_s, FINDING_EVERY_S):
            security.report_one(self.rng, self.cluster)
        if self._is_due("rollups", now_s, ROLLUPS_EVERY_S):
            telemetry_services.refresh(cluster=self.cluster)

    def _is_due(self, name: str, now_s: int, every_s: int) -> bool:
        if now_s - self._done[name] < every_s:
            return False
        self._done[name] = now_s
        return True

    def close(self) -> None:
        """Finish the open batch; jobs that run are found again by the next simulator."""
        self.stream.close()


def run_live(*, seed: int, say: Callable[[str], object]) -> None:
    """Keep the demo moving until SIGTERM or SIGINT. Errors: `Conflict` without a demo."""
    cluster = find_demo()
    if cluster is None:
        raise Conflict("There is no demo facility to keep moving.", code="no_demo", remedy="Run simulate first.")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    simulator = Simulator(cluster, seed=seed)
    say(f"{cluster.name} is moving: {len(simulator.queue.running)} jobs run, {simulator.queue.pending} wait.")
    while not stop.wait(TICK_S):
        close_old_connections()
        try:
            simulator.tick()
        except OperationalError:  # the database was busy for long: what is stored is what there is
            simulator = Simulator(cluster, seed=seed)
    simulator.close()


def _stored_jobs(cluster: Cluster) -> list[tuple[JobRecord, str]]:
    rows = Job.objects.filter(cluster=cluster, state__in=("PENDING", "RUNNING"))
    rows = rows.select_related("cluster_user", "account", "lab").order_by("submit", "raw_id")
    return [(_record_of(cluster, job), job.actor) for job in rows]


def _record_of(cluster: Cluster, job: Job) -> JobRecord:
    """Return a stored job as the record it came from."""
    extra = dict(job.extra)
    comment, campaign = str(extra.pop("Comment", "")), str(extra.pop("campaign", ""))
    return JobRecord(
        raw_job_id=job.raw_id, job_id=job.job_id, user=job.cluster_user.login, uid=uid_of(job.cluster_user.login),
        state=job.state, submit_s=_epoch(job.submit) or 0, eligible_s=_epoch(job.eligible), start_s=_epoch(job.start),
        elapsed_s=job.elapsed_s, timelimit_s=job.timelimit_s, array_job_id=job.array_job_id,
        array_tasks=job.array_tasks, nodes=job.nodes, cpus=job.cpus, req_cpus=job.cpus, gpus=job.gpus,
        gpu_types=tuple(extra.pop("gpu_types", ())), mem_bytes=job.mem_bytes, restarts=job.restarts,
        started=job.start is not None, campaign=campaign, account=job.account.name if job.account else "",
        group=job.lab.name, cluster=cluster.name, partition=job.partition, qos=job.qos,
        node_list=job.node_list or NEVER_ASSIGNED, job_name=job.job_name, submit_line=job.submit_line,
        work_dir=job.work_dir, reason=job.reason, comment=comment, extra=extra,
    )  # fmt: skip


def _epoch(moment: datetime | None) -> int | None:
    return int(moment.timestamp()) if moment else None


def _open_sessions(cluster: Cluster) -> list[DeclaredSession]:
    rows = AgentSession.objects.filter(cluster=cluster, ended=None).select_related("cluster_user").order_by("started")
    return [
        DeclaredSession(
            login=row.cluster_user.login, host=row.host, kind=row.kind, harness=row.harness,
            started=row.started.astimezone(UTC), campaign=row.campaign, source=row.source, process=row.process,
        )
        for row in rows
    ]  # fmt: skip
