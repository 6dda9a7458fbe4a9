"""What the API of `policies` takes and says."""

from datetime import datetime
from typing import Annotated, Self

from ninja import Schema
from pydantic import Field

from policies.models import ExtensionRelease, TrialGrant
from policies.selectors import Budget
from portal.core.problems import Problem

CURSOR = r"^[0-9a-z_]{1,20}$"
Name = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9._-]*$")]


class TrialRequestIn(Schema):
    """A trial asked for. It is charged its whole walltime; GPUs are those of the whole job."""

    minutes: Annotated[int, Field(ge=1, le=100_000)]
    gpus: Annotated[int, Field(ge=0, le=100_000)] = 0
    nodes: Annotated[int, Field(ge=1, le=100_000)] = 1
    cluster: Name = ""
    purpose: Annotated[str, Field(max_length=500)] = ""


class BudgetOut(Schema):
    """The trial budget of the person the agent acts for, over a rolling day; what is left counts the lab's budget."""

    trials_used: int
    trials_allowed: int
    trials_left: int
    gpu_minutes_used: float
    gpu_minutes_allowed: int
    gpu_minutes_left: float
    max_minutes: int
    max_gpus: int
    max_nodes: int
    returns_at: datetime | None
    full_again_at: datetime | None

    @classmethod
    def of(cls, budget: Budget) -> Self:
        """Write down a budget."""
        policy = budget.policy
        return cls(
            trials_used=budget.trials_used, trials_allowed=policy.person_trials, trials_left=budget.trials_left,
            gpu_minutes_used=budget.gpu_minutes_used, gpu_minutes_allowed=policy.person_gpu_minutes,
            gpu_minutes_left=budget.gpu_minutes_left, max_minutes=policy.max_minutes, max_gpus=policy.max_gpus,
            max_nodes=policy.max_nodes, returns_at=budget.returns_at, full_again_at=budget.full_again,
        )  # fmt: skip


class TrialOut(Schema):
    """A trial with its receipt. `job` is the job it ran as, once known.

    `withdrawn`: a kill switch stops its agent while it waits; until that ends there are no options for sbatch.
    """

    id: str
    state: str
    withdrawn: bool
    agent: str | None
    lab: str
    cluster: str
    account: str
    minutes: int
    gpus: int
    nodes: int
    gpu_minutes: int
    partition: str
    qos: str
    purpose: str
    granted_at: datetime
    valid_until: datetime
    returns_at: datetime
    sbatch_options: list[str]
    job: str | None

    @classmethod
    def of(cls, trial: TrialGrant) -> Self:
        """Write down a trial."""
        return cls.model_validate(trial_fields(trial))


class TrialGranted(TrialOut):
    """A trial just granted, and what is left."""

    budget: BudgetOut


class TrialPage(Schema):
    """Trials, newest first. `next` is the cursor of the next page."""

    items: list[TrialOut]
    next: str | None


class RefusalReason(Schema):
    """One reason of a refusal."""

    code: str
    sentence: str
    remedy: str
    value: float
    limit: float


class TrialProblem(Problem):
    """A trial refused, with every reason and the moment the same request would pass."""

    reasons: list[RefusalReason] = []
    returns_at: datetime | None = None


class ExtensionIn(Schema):
    """An extension submitted for review."""

    kind: Annotated[str, Field(max_length=12)]
    identity: Annotated[str, Field(max_length=200)]
    version: Annotated[str, Field(max_length=80)]
    digest: Annotated[str, Field(max_length=80)]
    capabilities: Annotated[list[Annotated[str, Field(max_length=40)]], Field(max_length=40)]
    source_url: Annotated[str, Field(max_length=500)] = ""
    description: Annotated[str, Field(max_length=4000)] = ""


class DataGateIn(Schema):
    """Which model would see which data. A provider that nobody knows counts as one without a contract."""

    provider: Annotated[str, Field(max_length=100, description="Who runs the model; `site` for the site’s own.")] = ""
    model: Annotated[str, Field(max_length=200)] = ""
    path: Annotated[
        str, Field(max_length=4096, pattern=r"^(/.*)?$", description="Absolute, with its links followed.")
    ] = ""
    project: Annotated[str, Field(max_length=200)] = ""
    labels: Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=20)] = []


class DataGateOut(Schema):
    """Whether the model may see the data; where not, which clause says so and what would make it pass."""

    allowed: bool
    labels: list[str]
    clause: str
    why: str
    remedy: str


class ExtensionOut(Schema):
    """A release and where it stands; an admission holds for this digest alone."""

    id: int
    kind: str
    identity: str
    version: str
    digest: str
    capabilities: list[str]
    state: str
    conditions: str
    reason: str
    submitted_at: datetime
    decided_at: datetime | None

    @classmethod
    def of(cls, row: ExtensionRelease) -> Self:
        """Write down a release, without the names of people."""
        return cls(
            id=row.pk, kind=row.extension.kind, identity=row.extension.identity, version=row.version,
            digest=row.digest, capabilities=row.capabilities, state=row.state, conditions=row.conditions,
            reason=row.reason, submitted_at=row.submitted_at, decided_at=row.decided_at,
        )  # fmt: skip


class ExtensionPage(Schema):
    """Releases, newest first. `next` is the cursor of the next page."""

    items: list[ExtensionOut]
    next: int | None


def trial_fields(trial: TrialGrant) -> dict[str, object]:
    """Return what is said of a trial; its export uses the same words."""
    return {
        "id": trial.public_id,
        "state": trial.state,
        "withdrawn": trial.withdrawn is not None,
        "agent": trial.agent.name if trial.agent else None,
        "lab": trial.lab.name,
        "cluster": trial.cluster.name,
        "account": trial.account,
        "minutes": trial.minutes,
        "gpus": trial.gpus,
        "nodes": trial.nodes,
        "gpu_minutes": trial.gpu_minutes,
        "partition": trial.partition,
        "qos": trial.qos,
        "purpose": trial.purpose,
        "granted_at": trial.granted_at,
        "valid_until": trial.valid_until,
        "returns_at": trial.returns_at,
        "sbatch_options": [] if trial.withdrawn else trial.sbatch_options,
        "job": trial.job.job_id if trial.job else None,
    }
