"""What a cluster is made of besides jobs: nodes, partitions, QoS, associations, in one form whoever tells of them."""

from telemetry.engine.slurm.inventory.forms import (
    Association,
    Bound,
    Limits,
    Node,
    Partition,
    Qos,
    Reading,
    describe_limits,
)

__all__ = ["Association", "Bound", "Limits", "Node", "Partition", "Qos", "Reading", "describe_limits"]
