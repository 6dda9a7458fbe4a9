"""Which generation of a cluster's data there is: it rises with every change of what figures are made from."""

from principals.models import Cluster
from telemetry.models import DataGeneration


def generation_of(cluster: Cluster) -> int:
    """Return the generation of a cluster's data; 0 before there are any."""
    return DataGeneration.objects.filter(cluster=cluster).values_list("number", flat=True).first() or 0
