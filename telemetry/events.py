"""What `telemetry` announces about jobs; the names are those of `telemetry.engine.transitions`."""

from typing import TypedDict


class JobNews(TypedDict):
    """The facts of a job's change of state. Times: ISO 8601 UTC; `outcome` says state, exit code and signal in words,
    `text` the change itself.

    With it nobody has to ask further: `waits_for` says why it waits, `hint` what usually helps ("" where we know of
    nothing), `stdout` and `stderr` where it writes ("" where that is not sure), `page` and `api` where more stands.
    `node_list` is Slurm's own form, cut at 500 letters.

    `user` is the login name: topics that carry these events are open to those who may see it. `source` is who told us
    first: `slurm_reader`, a hook (`jobcomp`, `epilog`, `mail`) or another source of job records. `lag_s` is the time
    from when it happened, which Slurm knows to the second, to when it was told.
    """

    job_id: str
    raw_id: int
    cluster: str
    submit: str
    state: str
    old_state: str | None
    reason: str
    outcome: str
    text: str
    exit_code: int | None
    exit_signal: int | None
    elapsed_s: int
    nodes: int
    cpus: int
    gpus: int
    partition: str
    actor: str
    harness: str
    user: str
    lab: str
    campaign: str
    source: str
    lag_s: float
    waits_for: str
    hint: str
    node_list: str
    stdout: str
    stderr: str
    page: str
    api: str


class ArrayNews(TypedDict):
    """The facts of `job.array`: the tasks of an array by state, whether all are over, and then the exit status of the
    worst (as `gatehouse wait` ends with it). `worst` says in words how the worst that is over ended. `raw_id` and
    `job_id` are the array's own number; `api` answers with the array as it stands.
    """

    job_id: str
    raw_id: int
    cluster: str
    state: str
    counts: dict[str, int]
    tasks: int
    over: bool
    exit_status: int | None
    worst: str
    text: str
    user: str
    lab: str
    campaign: str
    page: str
    api: str
