"""Objects that the paths of the permission table name; each is made when a path asks for it."""

from collections.abc import Callable

from memory import services as memory_services
from tests import factories
from tests.conftest import Cast


def _lesson(cast: Cast) -> str:
    """A lesson in force of the cast's lab."""
    content = memory_services.LessonContent(error_text="error: Unable to open pmix plugin", cause="old", fix="new")
    actor = factories.actor_of(cast.pi)
    return memory_services.record_lesson(actor=actor, content=content, scope="lab", lab=cast.lab).lesson.public_id


# name in a path → what stands there; made from the cast's lab (not the outsider's).
WORLD: dict[str, Callable[[Cast], object]] = {
    "agent": lambda cast: cast.agent.name,
    "lab": lambda cast: cast.lab.name,
    "slug": lambda cast: "lines",
    "key": lambda cast: "NoSuchKey123",
    "cluster": lambda cast: cast.cluster.name,
    "figure": lambda cast: "by-day",
    "lesson": _lesson,
}


def paths_of(cast: Cast, path: str) -> str:
    """Fill in the objects a path names."""
    for name, make in WORLD.items():
        if "{" + name + "}" in path:
            path = path.replace("{" + name + "}", str(make(cast)))
    return path
