"""The sequencer: numbers committed live events. One process at a time does it; the counter's row keeps it right."""

import time

from portal.core import leases, live
from portal.core.models import LiveEvent

LEASE = "live-sequencer"
# Short: it spares the others the work. Two sequencers at once would be slow, not wrong.
LEASE_S = 1.0


class Sequencer:
    """This process's try at the lease."""

    def __init__(self) -> None:
        self._holder = leases.holder_name()
        self._renew_at = 0.0

    def number(self) -> int:
        """Number a chunk of committed rows where there are any and the lease is ours; return how many."""
        if not LiveEvent.objects.filter(seq=None).exists():
            return 0
        now = time.monotonic()
        if now >= self._renew_at:
            if not leases.take(LEASE, self._holder, seconds=LEASE_S):
                return 0
            self._renew_at = now + LEASE_S / 2
        return live.number_committed()
