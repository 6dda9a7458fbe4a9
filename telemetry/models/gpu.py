"""What jobs did with their GPUs: a row a job and GPU as it was told, and one a job that figures are made of."""

from typing import Self

from django.db import models
from django.db.models import Q

from portal.core import clock
from portal.core.fields import EpochField
from principals.actors import Actor as Principal
from principals.models import Cluster
from telemetry.engine import gpu_use
from telemetry.models.jobs import Job


class JobGpu(models.Model):
    """The use of one GPU by one job, as `telemetry.engine.gpu_use.GpuReading` says it.

    `job` is null until the job is known: ids recycle, so it is found by its id and by when it was measured.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    raw_id = models.BigIntegerField()
    job = models.ForeignKey(
        Job, on_delete=models.CASCADE, null=True, blank=True, related_name="gpu_rows", db_index=False
    )
    gpu = models.CharField(max_length=100)
    model = models.CharField(max_length=100, default="", blank=True)
    compute_percent = models.FloatField()
    memory_percent = models.FloatField()
    memory_is_peak = models.BooleanField(default=False)
    peak_memory_bytes = models.BigIntegerField(null=True, blank=True)
    total_memory_bytes = models.BigIntegerField(null=True, blank=True)
    measured = EpochField()
    source = models.CharField(max_length=64)
    received = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job", "gpu"], name="telemetry_jobgpu_key", condition=Q(job__isnull=False)),
            models.UniqueConstraint(
                fields=["cluster", "raw_id", "gpu"], name="telemetry_jobgpu_waiting", condition=Q(job__isnull=True)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.gpu} of job {self.raw_id}"


class JobGpuUseQuerySet(models.QuerySet["JobGpuUse"]):
    """Jobs' use of their GPUs, as somebody may see it."""

    def visible_to(self, actor: Principal) -> Self:
        """As the jobs themselves."""
        return self if actor.sees_facility else self.filter(job__in=Job.objects.visible_to(actor))


class JobGpuUse(models.Model):
    """A job's GPUs taken together (`telemetry.engine.gpu_use.sum_up`), made anew whenever a reading of it changes.

    `fit` and `fit_name` are what would have done for it, of what its cluster had when it was told.
    """

    class Quadrant(models.TextChoices):
        BOTH = gpu_use.Quadrant.BOTH.value, gpu_use.QUADRANT_NAMES[gpu_use.Quadrant.BOTH]
        COMPUTE = gpu_use.Quadrant.COMPUTE.value, gpu_use.QUADRANT_NAMES[gpu_use.Quadrant.COMPUTE]
        MEMORY = gpu_use.Quadrant.MEMORY.value, gpu_use.QUADRANT_NAMES[gpu_use.Quadrant.MEMORY]
        LOW = gpu_use.Quadrant.LOW.value, gpu_use.QUADRANT_NAMES[gpu_use.Quadrant.LOW]

    class Fit(models.TextChoices):
        MIG = gpu_use.Fit.MIG.value, "A MIG slice"
        SMALLER = gpu_use.Fit.SMALLER.value, "A smaller GPU"
        SHARED = gpu_use.Fit.SHARED.value, "Half a GPU, shared"
        FEWER = gpu_use.Fit.FEWER.value, "Fewer GPUs"
        WHOLE = gpu_use.Fit.WHOLE.value, "What it had"
        UNKNOWN = gpu_use.Fit.UNKNOWN.value, "Not known"

    job = models.OneToOneField(Job, on_delete=models.CASCADE, primary_key=True, related_name="gpu_use")
    gpus = models.PositiveIntegerField()  # measured; `unused_gpus` of them did nothing
    unused_gpus = models.PositiveIntegerField()
    accelerator = models.CharField(max_length=40, default="", blank=True)
    compute_percent = models.FloatField()
    memory_percent = models.FloatField()
    used_percent = models.FloatField()
    memory_is_peak = models.BooleanField(default=False)
    peak_memory_bytes = models.BigIntegerField(null=True, blank=True)
    quadrant = models.CharField(max_length=8, choices=Quadrant.choices)
    fit = models.CharField(max_length=8, choices=Fit.choices)
    fit_name = models.CharField(max_length=40, default="", blank=True)

    objects = JobGpuUseQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.quadrant} of job {self.job_id}"
