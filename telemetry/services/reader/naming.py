"""Whether the Slurm that answers is the one that is meant, before anything of it is stored under a wrong name."""

from portal.core.errors import Conflict
from principals.models import Cluster


class WrongCluster(Conflict):
    """The Slurm that answers calls itself by another name."""

    title, code = "Another cluster answers", "wrong_cluster"


def require_named(*, expected: str, told: str) -> None:
    """Refuse a Slurm that calls itself otherwise than is expected, in whatever case. Errors: `WrongCluster`."""
    if not Cluster(name=expected).is_named(told):
        raise WrongCluster(
            f"The Slurm that answers is {told}, not {expected}.",
            remedy=f"Read it with --cluster {told}; if the portal's name differs on purpose, add --slurm-name {told}.",
        )  # fmt: skip
