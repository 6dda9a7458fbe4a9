"""The normal forms of a cluster's inventory, and a reading of many of them.

Sizes in bytes, durations in seconds. None says that the adapter does not tell, except for a limit: there it says that
nothing is limited. Sequences whose order means nothing are sorted, so that equal facts are equal values.
"""

from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

Form = TypeVar("Form")
# Of trackable resources, as sacctmgr(1) names them: `cpu`, `mem` (bytes), `node`, `gres/gpu`, `gres/gpu:a100`.
TresLimit: TypeAlias = tuple[tuple[str, int], ...]


class Node(NamedTuple):
    """One node now. `state` is its base state, `flags` what is added to it (`DRAIN`, `PLANNED`, `NOT_RESPONDING`).

    `gpus` counts what is configured, `gpu_types` counts the typed ones; `reason` is the first line of the text.
    """

    name: str
    state: str
    flags: tuple[str, ...]
    cpus: int
    memory_bytes: int
    gpus: int
    gpu_types: tuple[tuple[str, int], ...]
    gpus_used: int | None
    partitions: tuple[str, ...]
    reason: str | None


class Partition(NamedTuple):
    """One partition. `nodes` is Slurm's host list; empty lists of who is allowed say "everybody".

    `max_time_s` is None where time is not limited; `qos` is the partition's own.
    """

    name: str
    state: str
    nodes: str
    node_count: int
    max_time_s: int | None
    is_default: bool | None
    allowed_accounts: tuple[str, ...]
    denied_accounts: tuple[str, ...]
    allowed_qos: tuple[str, ...]
    denied_qos: tuple[str, ...]
    qos: str
    preempt_mode: str | None
    is_hidden: bool | None = None  # whether squeue hides its jobs from anybody who does not ask for all


class Bound(NamedTuple):
    """How much somebody may hold at once: resources, running jobs, jobs in the queue."""

    tres: TresLimit = ()
    jobs: int | None = None
    submitted: int | None = None


class Limits(NamedTuple):
    """What a QoS or an association allows.

    `group` bounds everything under it together, `user` each user (of an association: itself), `account` each account;
    the rest bounds each job, or `group_tres_minutes` and `group_wall_s` what the group uses up.
    """

    group: Bound = Bound()
    user: Bound = Bound()
    account: Bound = Bound()
    group_tres_minutes: TresLimit = ()
    group_wall_s: int | None = None
    job_tres: TresLimit = ()
    node_tres: TresLimit = ()
    job_tres_minutes: TresLimit = ()
    job_wall_s: int | None = None
    job_min_tres: TresLimit = ()


def describe_limits(limits: Limits | None) -> dict[str, Any]:
    """Return limits as a mapping for storage, without what is not limited: `{"group": {"tres": {"gres/gpu": 3}}}`."""
    found: dict[str, Any] = {}
    for name, value in (limits or Limits())._asdict().items():
        if isinstance(value, Bound):
            amounts = {"tres": dict(value.tres), "jobs": value.jobs, "submitted": value.submitted}
            found[name] = {key: amount for key, amount in amounts.items() if amount not in (None, {})}
        else:
            found[name] = dict(value) if isinstance(value, tuple) else value
    return {name: value for name, value in found.items() if value not in (None, {})}


class Qos(NamedTuple):
    """One quality of service; `flags` as sacctmgr(1) writes them (`DenyOnLimit`)."""

    name: str
    priority: int | None
    flags: tuple[str, ...] | None
    limits: Limits | None


class Association(NamedTuple):
    """One association: of an account (`user` is "", `parent` the account above it), or of a user with an account."""

    cluster: str
    account: str
    parent: str | None
    user: str
    partition: str
    is_default: bool | None
    default_qos: str | None
    qos: tuple[str, ...]
    limits: Limits

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Return what tells it from every other."""
        return self.cluster, self.account, self.user, self.partition


class Reading(NamedTuple, Generic[Form]):
    """Everything that was read in one look, and what is to be said about how it was read."""

    rows: tuple[Form, ...]
    warnings: tuple[str, ...] = ()
