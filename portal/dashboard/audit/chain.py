"""How far the audit chain is sealed, anchored and verified, cheap enough for a page."""

from dataclasses import dataclass
from typing import Final

from django.core.cache import cache

from portal.core import anchors, audit
from portal.core.models import AuditEvent

LOOKED_AT: Final = 2000  # newest rows that a page verifies; `manage.py verify_audit` walks the whole chain
KEPT_S: Final = 60


@dataclass(frozen=True, slots=True)
class Chain:
    """The chain: its newest link, what is not sealed yet, its newest anchor, and what a walk over its end found."""

    head: int
    unsealed: int
    anchored: int
    verified_from: int
    faults: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        return not self.faults

    @property
    def words(self) -> str:
        """Say it in one line."""
        if self.faults:
            return f"Broken: {self.faults[0]}"
        if not self.head:
            return "Nothing is sealed yet"
        return f"Verified up to #{self.head:,}"


def chain_state() -> Chain:
    """Return the state of the chain; its newest rows are walked once a minute and head."""
    head, hashed = audit.head()
    key = f"audit-chain:{head}:{hashed[:16]}"
    found = cache.get(key)
    if found is None:
        noted = anchors.read_anchors()
        start = max(0, head - LOOKED_AT)
        # Seq 0 stands for rows that wait for the sealer: they are counted below, and no break.
        faults = [f"row {fault.seq} {fault.message}" for fault in audit.verify(noted, after=start) if fault.seq][:5]
        found = (max(noted, default=0), start + 1 if head else 0, tuple(faults))
        cache.set(key, found, KEPT_S)
    anchored, start, faults = found
    return Chain(head, AuditEvent.objects.filter(seq=None).count(), anchored, start, faults)
