"""What a cluster is made of now: nodes, partitions, QoS, and when Slurm was last asked about each kind."""

from django.db import models

from principals.models import Cluster


class Node(models.Model):
    """A node as the controller sees it; gone with its entry there. Sizes in bytes."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="nodes", db_index=False)
    name = models.CharField(max_length=128)
    state = models.CharField(max_length=16)  # the base state: IDLE, MIXED, ALLOCATED, DOWN, …
    flags = models.JSONField(default=list, blank=True)  # what is added to it: DRAIN, PLANNED, …
    cpus = models.PositiveIntegerField()
    memory_bytes = models.BigIntegerField()
    gpus = models.PositiveIntegerField(default=0)
    gpu_types = models.JSONField(default=dict, blank=True)  # {type: how many}
    gpus_used = models.PositiveIntegerField(null=True, blank=True)  # null: nobody counts them
    partitions = models.JSONField(default=list, blank=True)
    reason = models.CharField(max_length=200, default="", blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="telemetry_node_name")]

    def __str__(self) -> str:
        return self.name


class Partition(models.Model):
    """A partition as the controller sees it. Empty lists of who is allowed say "everybody"."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="partitions", db_index=False)
    name = models.CharField(max_length=128)
    state = models.CharField(max_length=32)
    nodes = models.TextField(default="", blank=True)  # Slurm's host list
    node_count = models.PositiveIntegerField(default=0)
    max_time_s = models.BigIntegerField(null=True, blank=True)  # null: not limited
    is_default = models.BooleanField(null=True)  # null: not told
    allowed_accounts = models.JSONField(default=list, blank=True)
    denied_accounts = models.JSONField(default=list, blank=True)
    allowed_qos = models.JSONField(default=list, blank=True)
    denied_qos = models.JSONField(default=list, blank=True)
    qos = models.CharField(max_length=128, default="", blank=True)
    preempt_mode = models.CharField(max_length=64, default="", blank=True)
    is_hidden = models.BooleanField(null=True)  # from some or all, where squeue is not asked for all; null: not told

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="telemetry_partition_name")]

    def __str__(self) -> str:
        return self.name


class Qos(models.Model):
    """A quality of service as accounting knows it; `limits` as `inventory.describe_limits` writes them."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="qos", db_index=False)
    name = models.CharField(max_length=128)
    priority = models.BigIntegerField(null=True, blank=True)
    flags = models.JSONField(default=list, blank=True)
    limits = models.JSONField(default=dict, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="telemetry_qos_name")]

    def __str__(self) -> str:
        return self.name


class InventoryReading(models.Model):
    """When one kind of a cluster's inventory was last read, how much of it there is, and what went wrong since."""

    class Kind(models.TextChoices):
        NODES = "nodes", "Nodes"
        PARTITIONS = "partitions", "Partitions"
        QOS = "qos", "QoS"
        ASSOCIATIONS = "associations", "Associations"

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="inventory", db_index=False)
    kind = models.CharField(max_length=16, choices=Kind.choices)
    number = models.PositiveIntegerField(default=0)
    read = models.DateTimeField(null=True, blank=True)
    problem = models.CharField(max_length=300, default="", blank=True)  # why the last reading was in vain

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "kind"], name="telemetry_inventoryreading_kind")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.cluster_id}"
