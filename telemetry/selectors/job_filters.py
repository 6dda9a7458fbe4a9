"""What a list of jobs is narrowed to, read from an address: figures, pages and exports mean the same by it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from datetime import date, timedelta
from typing import Final

from django.db.models import F, Q, QuerySet

from portal.core import clock
from portal.core.errors import Invalid
from principals.actors import Actor as Principal
from principals.models import Agent, AgentSession, Cluster
from telemetry.engine.slurm.values import ENDED_STATES
from telemetry.models import Actor, Job, JobGpuUse, JobState

# A state of the address stands for what a person means by it; FAILED as the rollups' `ended_failed` does.
STATE_GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "PENDING": (JobState.PENDING, JobState.CONFIGURING),
    "RUNNING": (JobState.RUNNING, JobState.SUSPENDED, JobState.RESIZING),
    "FAILED": (JobState.FAILED, JobState.NODE_FAIL, JobState.BOOT_FAIL, JobState.OUT_OF_MEMORY, JobState.DEADLINE),
}
LONGEST_TEXT: Final = 100
_MAX_SECONDS: Final = 10**9


MEASURED, UNMEASURED = "measured", "unmeasured"
GPU_USES: Final = (*JobGpuUse.Quadrant.values, MEASURED, UNMEASURED)
OTHERS = "others"  # everybody but agents: people, and what is not attributed


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Filters of a job list. Days are UTC and both included; `by` says whether they are of submit or of end."""

    cluster: str = ""
    first: date | None = None
    last: date | None = None
    by: str = "submit"
    actor: str = ""
    harness: str = ""
    lab: str = ""
    partition: str = ""
    qos: str = ""
    states: tuple[str, ...] = ()
    user: str = ""
    agent: str = ""
    place: str = ""  # of the session that it is attributed to
    campaign: str = ""
    max_elapsed_s: int | None = None
    wait_s: int | None = None  # waits, or waited, longer than that
    gpu_use: str = ""  # a quadrant of `JobGpuUse`, measured or unmeasured
    gpu_fit: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "JobFilter":
        """Read a filter. Errors: `Invalid` for a day or a number that is none, so that no count is of something else.

        Run times, GPU use and states of the end are said of jobs that ended: unless `by` says otherwise, days are of
        the end, as they are in the figures that lead here.
        """
        texts = ("harness", "lab", "partition", "qos", "user", "agent", "campaign")
        most = _seconds(query, "max_elapsed_s")
        actor, states = query.get("actor", ""), _states(query.get("state", ""))
        gpu_use, gpu_fit = _one_of(query, "gpu_use", GPU_USES), _one_of(query, "gpu_fit", JobGpuUse.Fit.values)
        return cls(
            **{name: query.get(name, "").strip()[:LONGEST_TEXT] for name in texts},
            cluster=_cluster(query),
            first=_day(query, "from"), last=_day(query, "to"), max_elapsed_s=most, wait_s=_seconds(query, "wait"),
            by=_by(query.get("by", ""), states, ended_only=most is not None or bool(gpu_use or gpu_fit)),
            gpu_use=gpu_use, gpu_fit=gpu_fit, place=_one_of(query, "place", AgentSession.Place.values),
            actor=actor if actor in (*Actor.values, OTHERS) else "", states=states,
        )  # fmt: skip

    @property
    def is_empty(self) -> bool:
        """Say whether nothing is narrowed."""
        return self == JobFilter()

    @property
    def wanted_states(self) -> tuple[str, ...]:
        """The states of Slurm that `states` stands for."""
        return tuple(dict.fromkeys(one for word in self.states for one in STATE_GROUPS.get(word, (word,))))

    def apply(self, jobs: QuerySet[Job], actor: Principal) -> QuerySet[Job]:
        """Narrow jobs; by an agent those of one that `actor` may see."""
        plain = {
            "cluster__name": self.cluster, "actor": self.actor, "harness": self.harness, "lab__name": self.lab,
            "partition": self.partition, "qos": self.qos, "cluster_user__login": self.user,
            "campaign": self.campaign, "session__place": self.place,
        }  # fmt: skip
        if self.agent:
            jobs = jobs.filter(agent__in=Agent.objects.visible_to(actor).filter(name=self.agent))
        if self.actor == OTHERS:
            plain["actor"] = ""
            jobs = jobs.filter(actor__in=[Actor.HUMAN, Actor.UNKNOWN])
        jobs = jobs.filter(**{name: value for name, value in plain.items() if value})
        if self.states:
            jobs = jobs.filter(state__in=self.wanted_states)
        if self.max_elapsed_s is not None:
            jobs = jobs.filter(elapsed_s__lte=self.max_elapsed_s, start__isnull=False, state__in=sorted(ENDED_STATES))
        return self._waited(self._within_days(self._on_gpus(jobs)))

    def _on_gpus(self, jobs: QuerySet[Job]) -> QuerySet[Job]:
        if not (self.gpu_use or self.gpu_fit):
            return jobs
        jobs = jobs.filter(gpus__gt=0, start__isnull=False)
        if self.gpu_use in (MEASURED, UNMEASURED):
            jobs = jobs.filter(gpu_use__isnull=self.gpu_use == UNMEASURED)
        elif self.gpu_use:
            jobs = jobs.filter(gpu_use__quadrant=self.gpu_use)
        return jobs.filter(gpu_use__fit=self.gpu_fit) if self.gpu_fit else jobs

    def _within_days(self, jobs: QuerySet[Job]) -> QuerySet[Job]:
        # An ended job's `usage_end` is its end, and has the index.
        column = "usage_end" if self.by == "end" else "submit"
        if self.by == "end":
            jobs = jobs.filter(end__isnull=False)
        if self.first:
            jobs = jobs.filter(**{f"{column}__gte": clock.midnight(self.first)})
        if self.last:
            jobs = jobs.filter(**{f"{column}__lt": clock.midnight(self.last + timedelta(days=1))})
        return jobs

    def _waited(self, jobs: QuerySet[Job]) -> QuerySet[Job]:
        if self.wait_s is None:
            return jobs
        still = Q(start__isnull=True, state__in=STATE_GROUPS["PENDING"], submit__lt=clock.now_s() - self.wait_s)
        return jobs.filter(still | Q(start__gt=F("submit") + self.wait_s))

    def without(self, *names: str) -> "JobFilter":
        """Return the same filter with some of its parts left at their default."""
        kept = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in names}
        return JobFilter(**kept)


def _cluster(query: Mapping[str, str]) -> str:
    """Return the name as the cluster has it, whatever the case it was written in; as written where there is none."""
    name = query.get("cluster", "").strip()[:LONGEST_TEXT]
    return Cluster.objects.named(name).values_list("name", flat=True).first() or name if name else ""


def _states(text: str) -> tuple[str, ...]:
    known = set(JobState.values)
    return tuple(dict.fromkeys(word for word in text.upper().split(",")[:20] if word in known))


def _one_of(query: Mapping[str, str], name: str, known: Collection[str]) -> str:
    text = query.get(name, "")
    return text if text in known else ""


def _by(asked: str, states: tuple[str, ...], *, ended_only: bool) -> str:
    if asked in ("submit", "end"):
        return asked
    ended = bool(states) and all(one in ENDED_STATES for word in states for one in STATE_GROUPS.get(word, (word,)))
    return "end" if ended or ended_only else "submit"


def _day(query: Mapping[str, str], name: str) -> date | None:
    text = query.get(name, "").strip()
    if not text:
        return None
    return clock.read_day(text)


def _seconds(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20) or int(text) > _MAX_SECONDS:
        raise Invalid(f"{text[:20]!r} is no number of seconds.", code="seconds", remedy=f"Write `{name}=300`.")
    return int(text)
