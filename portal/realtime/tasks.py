"""Beat: what keeps the live events in order while nobody listens."""

from celery import shared_task

from portal.realtime.sequencer import Sequencer


@shared_task
def number_live_events() -> int:
    """Number what no tail numbered, so that the first listener after a quiet night starts at once; return how many."""
    sequencer, total = Sequencer(), 0
    while numbered := sequencer.number():
        total += numbered
    return total
