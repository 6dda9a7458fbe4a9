"""A job as a row of a table says it: who, what it asks for, how long, where or why it waits."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Prefetch, prefetch_related_objects
from django.urls import reverse

from portal.core import clock
from portal.dashboard.components.words import facility_zone
from portal.dashboard.formats import counted, duration, moment, stopwatch
from principals.actors import Actor as Principal
from principals.engine.harnesses import harness_name
from principals.models import Agent, AgentSession
from telemetry import selectors
from telemetry.engine.reasons import explain_reason
from telemetry.engine.transitions import describe_outcome
from telemetry.models import Actor, Job, JobState

# What `JobRow` reads besides the job and its agent: one query for a page.
RELATED = ("cluster", "cluster_user", "lab")
_RUNS = frozenset({JobState.RUNNING, JobState.COMPLETING, JobState.RESIZING})
_SHOWN_NODES = 28


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job in words, at the instant `now`."""

    job: Job
    now: datetime
    is_stale: bool = False  # in an active state that can only be of the past

    @property
    def key(self) -> str:
        """What live events call it."""
        return f"{self.job.cluster.name}:{self.job.raw_id}"

    @property
    def state(self) -> str:
        label = str(self.job.get_state_display())
        return f"Last reported {label.lower()}" if self.is_stale else label

    @property
    def at(self) -> datetime:
        """When its state last changed, as Slurm tells it."""
        job = self.job
        if self.is_stale:
            return self.reported
        return job.end or (job.start if job.state in _RUNS else None) or job.changed

    @property
    def reported(self) -> datetime:
        """When Slurm last told of it, as far as its record says."""
        return self.job.usage_end or self.job.submit

    @property
    def who(self) -> dict[str, str]:
        """Who submitted it: name, kind, address, and the line below."""
        job, login, lab = self.job, self.job.cluster_user.login, self.job.lab.title
        if job.actor == Actor.HUMAN:
            return {"name": login, "kind": "human", "url": "", "sub": lab}
        if job.actor != Actor.AGENT:
            return {"name": "not attributed", "kind": "unknown", "url": "", "sub": f"{login} · {lab}"}
        if (agent := job.agent) is not None:
            return {"name": agent.name, "kind": "agent", "url": agent.get_absolute_url(), "sub": f"{login} · {lab}"}
        name = harness_name(job.harness) if job.harness else "an agent"
        return {"name": name, "kind": "agent", "url": "", "sub": f"{login} · {lab}"}

    @property
    def asks(self) -> str:
        """What it asks for: 16 cores, 2 GPUs, 8 nodes, 40 × 4 cores."""
        job = self.job
        if job.gpus:
            one = counted(job.gpus, "GPU")
        elif job.nodes > 1:
            one = counted(job.nodes, "node")
        else:
            one = counted(job.cpus, "core")
        return f"{job.array_tasks:,} × ({one})" if job.array_tasks > 1 else one

    @property
    def queue(self) -> str:
        """Partition and QoS."""
        return ", ".join(part for part in (self.job.partition, self.job.qos) if part)

    @property
    def ran_s(self) -> int | None:
        """How long it has run; a running job until now, for its record is as old as the last look at it."""
        job = self.job
        if job.start is None:
            return None
        if job.state in _RUNS and job.end is None and not self.is_stale:
            return max(0, int((self.now - job.start).total_seconds()))
        return job.elapsed_s

    @property
    def ran(self) -> str:
        return stopwatch(self.ran_s)

    @property
    def limit(self) -> str:
        return f"of {duration(self.job.timelimit_s)}" if self.job.timelimit_s else "no limit known"

    @property
    def shows_bar(self) -> bool:
        return self.ran_s is not None and bool(self.job.timelimit_s) and self.job.is_active and not self.is_stale

    @property
    def where(self) -> str:
        """Where it runs, why it waits, or how it ended."""
        job = self.job
        if job.end is not None:
            words = describe_outcome(job.state, job.exit_code or 0, job.exit_signal or 0)
            return words[:1].upper() + words[1:]
        if self.is_stale:
            return "Not known since"
        if job.start is None:
            return explain_reason(job.reason) or "Waits"
        return short_nodes(job.node_list) or (counted(job.nodes, "node") if job.nodes else "–")

    @property
    def where_sub(self) -> str:
        """How long it waited, or where it ran."""
        job = self.job
        if job.end is not None:
            at = moment(job.end, self.now, facility_zone())
            return f"on {short_nodes(job.node_list)}, {at}" if job.start and job.node_list else at
        if self.is_stale:
            return moment(self.reported, self.now, facility_zone())
        return self.waited

    @property
    def outcome(self) -> str:
        """How it ended where the state alone does not say, or why it waits."""
        if self.is_stale:
            return moment(self.reported, self.now, facility_zone())
        if self.job.start is None and self.job.end is None:
            return explain_reason(self.job.reason)
        return self.where if self.job.exit_code or self.job.exit_signal else ""

    @property
    def waited(self) -> str:
        wait = self.job.wait_s
        unknown = wait is None or wait < 0 or (self.is_stale and self.job.start is None)
        return "" if wait is None or unknown else f"{'waited' if self.job.start else 'waiting'} {duration(wait)}"

    @property
    def core_hours(self) -> float:
        return self.job.cpus * self.job.elapsed_s / 3600

    @property
    def gpu_hours(self) -> float:
        return self.job.gpus * self.job.elapsed_s / 3600


def rows_of(jobs: Iterable[Job], actor: Principal) -> list[JobRow]:
    """Return the rows of a page as `actor` may see them, all at one instant."""
    listed, now = list(jobs), clock.now()
    prefetch_related_objects(listed, seen_agents(actor))
    stale = selectors.find_stale(listed)
    return [JobRow(job, now, job.pk in stale) for job in listed]


def seen_agents(actor: Principal) -> "Prefetch[str]":
    """Return what loads the agents of jobs: those that `actor` may see, so that no other lab’s agent is named."""
    return Prefetch("agent", queryset=Agent.objects.visible_to(actor))


def seen_sessions(actor: Principal) -> "Prefetch[str]":
    """Return what loads the sessions of jobs: those that `actor` may see."""
    return Prefetch("session", queryset=AgentSession.objects.visible_to(actor).select_related("agent"))


def short_nodes(text: str) -> str:
    """Return a node list that fits a cell; the whole one is on the job's page."""
    text = "" if text in ("None assigned", "(null)") else text
    return text if len(text) <= _SHOWN_NODES else f"{text[: _SHOWN_NODES - 1]}…"


def job_url(cluster: str, raw_id: Any) -> str:
    """Return the address of the newest record of a raw job id."""
    return reverse("job-by-id", kwargs={"cluster": cluster, "raw_id": raw_id})
