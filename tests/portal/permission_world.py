"""Objects that the paths of the permission table name; each is made when a path asks for it."""

from collections.abc import Callable

from portal.core import clock
from tests.conftest import Cast
from tests.policies import worlds

# name in a path → what stands there; made from the cast's lab (not the outsider's).
WORLD: dict[str, Callable[[Cast], object]] = {
    "agent": lambda cast: cast.agent.name,
    "lab": lambda cast: cast.lab.name,
    "cluster": lambda cast: cast.cluster.name,
    "trial": lambda cast: worlds.make_trial(cast).public_id,
    "queued_extension": lambda cast: worlds.make_release(cast.colleague).pk,
    "admitted_extension": lambda cast: (
        worlds.make_release(cast.colleague, state="admitted", decided_by=cast.staff, decided_at=clock.now()).pk
    ),
    "agents_extension": lambda cast: worlds.make_release(cast.colleague, submitted_by_agent=cast.agent).pk,
}


def paths_of(cast: Cast, path: str) -> str:
    """Fill in the objects a path names."""
    for name, make in WORLD.items():
        if "{" + name + "}" in path:
            path = path.replace("{" + name + "}", str(make(cast)))
    return path
