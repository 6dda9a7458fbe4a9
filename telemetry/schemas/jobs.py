"""What the API says of jobs, and of the receipts by which they are declared."""

from datetime import datetime

from ninja import Field, Schema


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


class StandingOut(Schema):
    """How a job, a task or an array stands. `known` is false where there is none that the caller may see.

    `over` says whether nothing of it is left to come; then `exit_status` is the job's own, 128 + the signal, of several
    the highest; 201 cancelled, 202 time limit, 203 memory, 204 node, 205 preempted, 206 deadline, 207 revoked.
    `counts` are tasks by state. `job` is the record itself, of several the one that ended worst, null where none did.
    `looked` is when the portal last looked at the cluster’s queue; null where it does not read one.
    """

    asked: str
    known: bool
    cluster: str = ""
    state: str = ""
    over: bool = False
    exit_status: int | None = None
    counts: dict[str, int] = {}
    looked: datetime | None = None
    job: JobOut | None = None


class StandingsOut(Schema):
    """How some jobs stand, in the order asked. Events up to `seq` are in it; those after it may be."""

    seq: int
    items: list[StandingOut]


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
