"""Generations of a cluster's data: a number that rises with every change of what figures are made from."""

from django.db.models import F

from principals.models import Cluster
from telemetry.models import DataGeneration


def start_generation(cluster: Cluster) -> None:
    """Begin the next generation, in the transaction that changes the data."""
    ours = DataGeneration.objects.filter(cluster=cluster)
    if not ours.update(number=F("number") + 1):
        DataGeneration.objects.get_or_create(cluster=cluster)
        ours.update(number=F("number") + 1)
