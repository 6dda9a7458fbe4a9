"""Trial budgets, the trials granted from them, and the requests refused."""

from datetime import datetime, timedelta
from typing import Any, Self

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce

from policies.engine.trials import WINDOW_S, TrialLimits
from portal.core import clock
from principals.actors import Actor
from principals.models import Agent, Cluster, Hold, Lab, User
from telemetry.engine import receipts
from telemetry.models import Job

_DEFAULTS = TrialLimits()


def new_receipt() -> str:
    """Return the receipt of one more trial."""
    return receipts.new_receipt(receipts.TRIAL)


def _limit(default: float, *, low: int = 0, high: int) -> "models.PositiveIntegerField[int, int]":
    return models.PositiveIntegerField(
        default=int(default), validators=[MinValueValidator(low), MaxValueValidator(high)]
    )


class TrialPolicy(models.Model):
    """The limits of trials: the facility's (no lab), or a lab's own in their place."""

    lab = models.ForeignKey(Lab, on_delete=models.CASCADE, null=True, blank=True, related_name="trial_policies")
    max_minutes = _limit(_DEFAULTS.max_minutes, low=1, high=1440)
    max_gpus = _limit(_DEFAULTS.max_gpus, high=64)
    max_nodes = _limit(_DEFAULTS.max_nodes, low=1, high=64)
    person_trials = _limit(_DEFAULTS.person_trials, high=10_000)
    person_gpu_minutes = _limit(_DEFAULTS.person_gpu_minutes, high=1_000_000)
    lab_trials = _limit(_DEFAULTS.lab_trials, high=100_000)
    lab_gpu_minutes = _limit(_DEFAULTS.lab_gpu_minutes, high=10_000_000)
    valid_minutes = _limit(60, low=5, high=1440)  # how long a receipt may wait for its job
    qos = models.CharField(max_length=64, default="trial", blank=True)
    partition = models.CharField(max_length=64, default="", blank=True)  # empty: the cluster's default
    changed_at = models.DateTimeField(default=clock.now)
    changed_by = models.CharField(max_length=150, default="", blank=True)

    class Meta:
        # NULLs are all different to a plain unique constraint: there would be many facility defaults.
        constraints = [models.UniqueConstraint(Coalesce("lab", 0), name="policies_trialpolicy_lab")]

    def __str__(self) -> str:
        return f"trial limits of {self.lab or 'the facility'}"

    @property
    def limits(self) -> TrialLimits:
        """The limits as the engine takes them."""
        return TrialLimits(
            max_minutes=self.max_minutes, max_gpus=self.max_gpus, max_nodes=self.max_nodes,
            person_trials=self.person_trials, person_gpu_minutes=self.person_gpu_minutes,
            lab_trials=self.lab_trials, lab_gpu_minutes=self.lab_gpu_minutes,
        )  # fmt: skip


def _trials_seen_by(actor: Actor) -> Q:
    """Staff see all; a person their own and those of labs they manage; an agent its owner's in its lab."""
    if actor.sees_facility:
        return Q()
    if actor.user is None:
        return Q(pk__in=[])
    if actor.agent is not None:
        return Q(user=actor.user, lab_id=actor.agent.lab_id)
    return Q(user=actor.user) | Q(lab_id__in=actor.visible_lab_ids)


class TrialGrantQuerySet(models.QuerySet["TrialGrant"]):
    """Granted trials, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """Those that the actor may see."""
        return self.filter(_trials_seen_by(actor))

    def charged(self) -> Self:
        """Those that count against a budget: all but the cancelled."""
        return self.exclude(state=TrialGrant.State.CANCELLED)


class TrialGrant(models.Model):
    """A trial that may run: a receipt for one job. The person's budget is shared by all of their agents in a lab.

    It is charged its whole walltime when granted; what was charged comes back a day later.
    """

    class State(models.TextChoices):
        GRANTED = "granted", "Granted"
        USED = "used", "Used"
        EXPIRED = "expired", "Expired"
        CANCELLED = "cancelled", "Cancelled"

    withdrawn: Hold | None = None  # the kill switch's, where a page asked (`selectors.mark_withdrawn`); no column

    public_id = models.CharField(max_length=20, unique=True, default=new_receipt)
    agent = models.ForeignKey(Agent, on_delete=models.SET_NULL, null=True, blank=True, related_name="trials")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="trials")
    lab = models.ForeignKey(Lab, on_delete=models.PROTECT, related_name="trials")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="trials")
    account = models.CharField(max_length=64)
    minutes = models.PositiveIntegerField()
    gpus = models.PositiveIntegerField(default=0)
    nodes = models.PositiveIntegerField(default=1)
    gpu_minutes = models.PositiveIntegerField(default=0)
    partition = models.CharField(max_length=64, default="", blank=True)
    qos = models.CharField(max_length=64, default="", blank=True)
    purpose = models.CharField(max_length=500, default="", blank=True)
    state = models.CharField(max_length=12, choices=State.choices, default=State.GRANTED)
    granted_at = models.DateTimeField(default=clock.now)
    valid_until = models.DateTimeField()
    job = models.OneToOneField(Job, on_delete=models.SET_NULL, null=True, blank=True, related_name="trial")

    objects = TrialGrantQuerySet.as_manager()

    class Meta:
        ordering = ["-granted_at", "-pk"]
        indexes = [
            models.Index(fields=["lab", "granted_at"], name="policies_trialgrant_lab"),
            models.Index(fields=["user", "lab", "granted_at"], name="policies_trialgrant_user"),
            models.Index(fields=["granted_at"], name="policies_trialgrant_at"),
            models.Index(fields=["valid_until"], name="policies_trialgrant_open", condition=Q(state="granted")),
        ]

    def __str__(self) -> str:
        return self.public_id

    @property
    def returns_at(self) -> datetime:
        """When what it was charged comes back."""
        return self.granted_at + timedelta(seconds=WINDOW_S)

    @property
    def sbatch_options(self) -> list[str]:
        """Options of sbatch(1) that make a job this trial."""
        hours, minutes = divmod(self.minutes, 60)
        options = [f"--time={hours:02}:{minutes:02}:00", f"--nodes={self.nodes}", f"--account={self.account}"]
        if self.gpus:
            options.append(f"--gpus={self.gpus}")
        options += [f"--{name}={value}" for name, value in (("qos", self.qos), ("partition", self.partition)) if value]
        return [*options, f"--comment={self.public_id}"]

    def move(self, *, old: str, new: str, **fields: Any) -> bool:
        """Change the state by conditional update; say whether this call was the one that did."""
        moved = TrialGrant.objects.filter(pk=self.pk, state=old).update(state=new, **fields)
        if moved:
            self.state = new
        return bool(moved)


class TrialRefusalQuerySet(models.QuerySet["TrialRefusal"]):
    """Refused requests, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """Those that the actor may see."""
        return self.filter(_trials_seen_by(actor))


class TrialRefusal(models.Model):
    """A request that was refused, with every reason. `code` is the first one's, for counting."""

    agent = models.ForeignKey(Agent, on_delete=models.SET_NULL, null=True, blank=True, related_name="trial_refusals")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="trial_refusals")
    lab = models.ForeignKey(Lab, on_delete=models.CASCADE, related_name="trial_refusals")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="trial_refusals")
    minutes = models.PositiveIntegerField()
    gpus = models.PositiveIntegerField(default=0)
    nodes = models.PositiveIntegerField(default=1)
    purpose = models.CharField(max_length=500, default="", blank=True)
    code = models.CharField(max_length=40)
    reasons = models.JSONField(default=list)  # of {code, sentence, remedy, value, limit}
    returns_at = models.DateTimeField(null=True, blank=True)
    at = models.DateTimeField(default=clock.now)

    objects = TrialRefusalQuerySet.as_manager()

    class Meta:
        ordering = ["-at", "-pk"]
        indexes = [
            models.Index(fields=["lab", "at"], name="policies_trialrefusal_lab"),
            models.Index(fields=["user", "at"], name="policies_trialrefusal_user"),
            models.Index(fields=["at"], name="policies_trialrefusal_at"),
        ]

    def __str__(self) -> str:
        return f"{self.code} for {self.user}"
