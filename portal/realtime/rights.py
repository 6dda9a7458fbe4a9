"""Whether those who listen still may: a fingerprint of every viewer's rights in a few queries for all of them.

Only where a fingerprint changed is the actor built again and each topic authorised again.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from portal.core import topics
from portal.core.errors import DomainError
from portal.realtime.fingerprints import of_viewers
from portal.realtime.viewers import Viewer


@dataclass(slots=True)
class Loss:
    """What a viewer may no longer do: look at all, or hear some topics."""

    whole: DomainError | None = None
    topics: dict[str, DomainError] = field(default_factory=dict)

    def touching(self, heard: Collection[str]) -> DomainError | None:
        """Return why a listener to `heard` must end, or None."""
        return self.whole or next((error for topic, error in self.topics.items() if topic in heard), None)


class Rights:
    """What was last known of each viewer's rights."""

    def __init__(self) -> None:
        self._seen: dict[Viewer, Hashable] = {}

    def losses(self, watched: Mapping[Viewer, Collection[str]]) -> dict[Viewer, Loss]:
        """Return what each watched viewer lost since the last call, or since it was let in. Touches the database."""
        # The fingerprint is taken first: a change during the check is then found by the next one.
        now = of_viewers(watched)
        changed = [viewer for viewer in watched if self._is_changed(viewer, now[viewer.key])]
        found = {viewer: _loss_of(viewer, watched[viewer]) for viewer in changed}
        self._seen = {viewer: now[viewer.key] for viewer in watched}
        return found

    def _is_changed(self, viewer: Viewer, now: Hashable) -> bool:
        return now is None or self._seen.get(viewer, viewer.standing) != now


def _loss_of(viewer: Viewer, heard: Iterable[str]) -> Loss:
    loss = Loss()
    try:
        actor = viewer.load()
    except DomainError as error:
        loss.whole = error
        return loss
    for topic in heard:
        try:
            topics.require(actor, topic)
        except DomainError as error:
            loss.topics[topic] = error
    return loss
