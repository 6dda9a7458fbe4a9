"""What the API of `telemetry` takes and says."""

from datetime import date, datetime
from typing import Annotated, Literal
from uuid import UUID

from ninja import Field, Schema
from pydantic import BeforeValidator

from portal.core.moments import Moment
from telemetry.engine.activity_batches import Place


def _plain_number(given: object) -> object:
    """Refuse what Python reads as a number and Slurm does not: `7_1`, a task of an array, is not job 71."""
    if isinstance(given, str) and not (given.isascii() and given.isdigit()):
        raise ValueError(f"{given[:40]!r} is no raw job id (JobIDRaw, SLURM_JOB_ID): digits alone, never 123_4")
    return given


RawJobId = Annotated[int, BeforeValidator(_plain_number)]


class BatchOut(Schema):
    """A batch of records: how far it is and what became of each record."""

    id: UUID
    kind: str
    cluster: str
    format: str
    source: str
    state: str
    error: str
    created: datetime
    started: datetime | None
    finished: datetime | None
    bytes_total: int | None
    bytes_done: int
    rows: int
    created_rows: int
    updated_rows: int
    duplicate_rows: int
    late_rows: int
    rejected_rows: int
    step_rows: int
    redactions: int
    reasons: dict[str, int]


class QuarantinedOut(Schema):
    """A record that was set aside."""

    id: int
    line: int
    reason: str
    detail: str
    raw: str


class QuarantinePage(Schema):
    """A page of records that were set aside; `next` is the `after` of the next page, null at the end."""

    items: list[QuarantinedOut]
    next: int | None


class SessionIn(Schema):
    """A session on a host under a login name: of an agent's harness, or of a person at a shell (`harness` null)."""

    host: str = Field(max_length=200)
    user: str = Field(max_length=200)
    harness: str | None = Field(default=None, max_length=100)
    kind: Literal["agent", "interactive"] | None = None
    start: Moment
    end: Moment | None = None
    campaign: str = Field(default="", max_length=200)


class SessionsIn(Schema):
    """Sessions of one cluster, a thousand at most."""

    cluster: str
    sessions: list[SessionIn] = Field(min_length=1, max_length=1000)


class SessionResult(Schema):
    """What became of one session, in the order of what was sent.

    `reason` says why it was rejected, or why a session of a harness that was taken belongs to no registered agent.
    """

    outcome: str = Field(description="created, changed, unchanged or rejected")
    agent: str | None = Field(default=None, description="the registered agent it belongs to; null: to none")
    reason: str = ""
    remedy: str = ""


class SessionsOut(Schema):
    """What became of each session, and how many jobs they changed the attribution of."""

    results: list[SessionResult]
    jobs_changed: int


class GpuUseIn(Schema):
    """What one GPU did for one job over its whole time. Means in percent of the device, sizes in bytes.

    `job` is the raw job id (JobIDRaw, SLURM_JOB_ID), `gpu` a UUID or `node:index` (no number alone: each
    node has it), `measured` when measuring ended.
    Memory is what was held, not bandwidth; `memory_is_peak` where no mean of it is known.
    """

    job: RawJobId
    gpu: str = Field(max_length=200)
    compute_percent: float
    memory_percent: float
    peak_memory_bytes: int | None = None
    total_memory_bytes: int | None = None
    model: str = Field(default="", max_length=200)
    memory_is_peak: bool = False
    measured: Moment


class GpuUsesIn(Schema):
    """GPU use of one cluster's jobs, a thousand rows at most."""

    cluster: str
    rows: list[GpuUseIn] = Field(min_length=1, max_length=1000)


class GpuUseResult(Schema):
    """What became of one row, in the order of what was sent."""

    outcome: str = Field(description="created, updated, unchanged, late (older than what is known) or rejected")
    reason: str = ""
    waits: bool = Field(default=False, description="its job is not known yet: it is kept and matched later")


class GpuUsesOut(Schema):
    """What became of each row."""

    results: list[GpuUseResult]


class ActivitySessionIn(Schema):
    """A session that began, ended or was active: its root is the process `id` (process id, start in ticks)."""

    id: str = Field(max_length=40)
    kind: Literal["agent", "interactive"]
    harness: str = Field(default="", max_length=100)
    user: str = Field(max_length=200)
    start: Moment
    last: Moment
    end: Moment | None = None
    place: Place = "login"
    job: int | None = Field(default=None, ge=1, le=2**32 - 1, description="the raw id of the job that it runs in")
    evidence: Literal["", "ssh_key"] = Field(default="", description="what tells an agent's that runs no known program")
    agent: str = Field(default="", max_length=40, description="the registered agent that the evidence names")


class ActivityMinuteIn(Schema):
    """What was counted of one driver in one minute; `session` is "" for a total of the node, at one of its places."""

    session: str = Field(default="", max_length=40)
    driver: Literal["agent", "human", "unknown"]
    minute: Moment
    counts: dict[str, int] = Field(description="how often each of the portal's measures was counted, from 1 on")
    place: Place = Field(default="login", description="of a node's total; a session has its own")


class ActivitySubmissionIn(Schema):
    """An sbatch, srun or salloc that a session started."""

    session: str = Field(max_length=40)
    at: Moment


class PollingLoopIn(Schema):
    """The same query, again and again from one place; `period_s` is the median between two."""

    session: str = Field(max_length=40)
    first: Moment
    last: Moment
    queries: int
    period_s: float


class ExperimentLoopIn(Schema):
    """A submission and the next one of the session, with a look or an edit in between."""

    session: str = Field(max_length=40)
    submitted: Moment
    again: Moment


class SshDayIn(Schema):
    """Connections of a day (UTC) by SSH, without a terminal, that are no agent's: sums since the collector's start."""

    day: date
    connections: int = Field(ge=1, le=10**9)
    untold: int = Field(ge=0, le=10**9, description="of which sshd logged nothing that could be read")
    keys: int = Field(ge=0, le=10**9, description="different keys that the others came by")
    clients: int = Field(ge=0, le=10**9, description="different addresses that they came from")
    pairs: int = Field(ge=0, le=10**9, description="different pairs of both")


class CollectorHealthIn(Schema):
    """How the collector did while it gathered the batch."""

    events: int = Field(ge=0, le=2**53)
    lost: int = Field(ge=0, le=2**53, description="events that were never delivered, or could not be read")
    argv_missed: int = Field(ge=0, le=2**53, description="commands whose words were gone before they could be read")
    vanished: int = Field(ge=0, le=2**53, description="processes gone before anything could be read")
    sampled_share: float = Field(ge=0, le=1, description="of the commands that were classified")
    cpu_s: float = Field(ge=0, le=2**53)
    memory_bytes: int = Field(ge=0, le=2**53)
    processes: int = Field(ge=0, le=2**31 - 1)
    clock_ahead_s: int = Field(
        default=0, ge=-(2**31), le=2**31 - 1, description="of the node's clock to the portal's, by the last answer"
    )


class ActivityIn(Schema):
    """What a collector gathered on one node from `from` to `to`: a megabyte at most, signed."""

    cluster: str
    host: str = Field(max_length=200)
    boot: str = Field(pattern=r"^[0-9A-Za-z-]{1,36}$")
    run: UUID = Field(description="of this start of the collector")
    batch: UUID
    collector: str = Field(pattern=r"^[0-9A-Za-z.+_-]{1,32}$", description="its version")
    mode: Literal["events", "walk", "records"]
    study: str = Field(default="", pattern=r"^[a-z0-9-]{0,64}$", description="the baseline study it was told of")
    since: Moment = Field(alias="from")
    until: Moment = Field(alias="to")
    sessions: list[ActivitySessionIn] = Field(default=[], max_length=10_000)
    minutes: list[ActivityMinuteIn] = Field(default=[], max_length=20_000)
    submissions: list[ActivitySubmissionIn] = Field(default=[], max_length=20_000)
    polling: list[PollingLoopIn] = Field(default=[], max_length=20_000)
    loops: list[ExperimentLoopIn] = Field(default=[], max_length=20_000)
    ssh: list[SshDayIn] = Field(default=[], max_length=100)
    health: CollectorHealthIn


class RejectedPart(Schema):
    """A part that was not taken: of which list, its place there, why, and what would make it pass."""

    part: str
    index: int
    reason: str
    remedy: str


class ActivityOut(Schema):
    """How many parts of each list were taken, and each one that was not."""

    accepted: dict[str, int]
    rejected: list[RejectedPart]


class JobOut(Schema):
    """A job. Times are UTC, null where there is none yet. `user` is `other` where it is not the caller's own.

    `agent` is the caller's name where the job is taken to be its own, else empty.
    """

    cluster: str
    raw_id: int
    job_id: str
    user: str
    own: bool
    account: str
    lab: str
    partition: str
    qos: str
    state: str
    reason: str
    outcome: str
    submit: datetime
    start: datetime | None
    end: datetime | None
    elapsed_s: int
    timelimit_s: int | None
    nodes: int
    cpus: int
    gpus: int
    mem_bytes: int | None
    exit_code: int | None
    exit_signal: int | None
    actor: str
    actor_method: str
    actor_confidence: float
    harness: str
    agent: str
    campaign: str
    job_name: str
    work_dir: str
    submit_line: str


class ReceiptOut(Schema):
    """A word for the comment of jobs. It is no secret: it gives no rights, and says nothing of other people's jobs."""

    receipt: str
    cluster: str
    valid_until: datetime = Field(description="jobs submitted until then are declared by it, however many")
    sbatch_options: list[str]


class JobPage(Schema):
    """A page of jobs, newest submission first; `next` is the `after` of the next page, null at the end."""

    items: list[JobOut]
    next: str | None


class ToldDay(Schema):
    """What an agent's harness told of one UTC day. `accepted` and `rejected` are decisions a person was asked for."""

    day: date
    sessions: int
    cost_usd: float
    tokens: dict[str, int]
    requests: int
    errors: int
    accepted: int
    rejected: int
    automatic: int


class ToldDays(Schema):
    """The days of the last thirty on which an agent's harness told anything, the oldest first."""

    items: list[ToldDay]


class MetricsRefused(Schema):
    """Points that were not taken (64-bit integers are text in OTLP's JSON), or only words of advice."""

    rejectedDataPoints: str | None = None
    errorMessage: str | None = None


class MetricsTaken(Schema):
    """`ExportMetricsServiceResponse`: empty where everything was taken."""

    partialSuccess: MetricsRefused | None = None


class LogsRefused(Schema):
    """Records that were not taken, or only words of advice."""

    rejectedLogRecords: str | None = None
    errorMessage: str | None = None


class LogsTaken(Schema):
    """`ExportLogsServiceResponse`: empty where everything was taken."""

    partialSuccess: LogsRefused | None = None


class QueueOut(Schema):
    """What squeue printed of the caller's own jobs: `rows` hold a text for each of `fields`, null where it is withheld.

    Times are seconds since 1970; `timeused` is "" where it is the time since `starttime`, "?" where it is not known.
    """

    cluster: str
    logins: list[str]
    shown: datetime
    age_s: float
    retry_after_s: int
    fields: list[str]
    rows: list[list[str | None]]
    ended: list[int]
    open: list[str]


class SharedCallIn(Schema):
    """A command line of squeue or sacct, who gave it on the login node, and why it was not answered otherwise."""

    program: Literal["squeue", "sacct"]
    arguments: list[Annotated[str, Field(max_length=1000)]] = Field(default=[], max_length=60)
    login: str = Field(max_length=64)
    cluster: str = Field(default="", max_length=64, pattern=r"^[A-Za-z0-9._-]*$")
    reason: str = Field(default="", max_length=24, pattern=r"^[a-z_]*$")
    zone: str = Field(default="UTC", max_length=64)


class SharedCallOut(Schema):
    """What the command printed (`out` in base64), its exit code, and how old that is."""

    cluster: str
    out: str
    complaint: str
    status: int
    age_s: float
