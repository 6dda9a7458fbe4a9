"""Objects that the paths of the permission table name; each is made when a path asks for it."""

from collections.abc import Callable

from tests.conftest import Cast

# name in a path → what stands there; made from the cast's lab (not the outsider's).
WORLD: dict[str, Callable[[Cast], object]] = {
    "agent": lambda cast: cast.agent.name,
    "lab": lambda cast: cast.lab.name,
    "slug": lambda cast: "lines",
    "key": lambda cast: "NoSuchKey123",
    "cluster": lambda cast: cast.cluster.name,
    "figure": lambda cast: "by-day",
}


def paths_of(cast: Cast, path: str) -> str:
    """Fill in the objects a path names."""
    for name, make in WORLD.items():
        if "{" + name + "}" in path:
            path = path.replace("{" + name + "}", str(make(cast)))
    return path
