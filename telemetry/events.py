"""What `telemetry` announces about jobs; the names are those of `telemetry.engine.transitions`."""

from typing import TypedDict


class JobNews(TypedDict):
    """The facts of a job's change of state. Times: ISO 8601 UTC; `outcome` says state, exit code and signal in words,
    `text` the change itself.

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
