"""What the demo's people and agents ask of the scheduler for each job, as a reader of Slurm would have counted it."""

from collections import Counter, defaultdict
from datetime import UTC, date, datetime
from random import Random
from typing import Final

from portal.demo.facility import Facility
from portal.demo.history import Stage
from portal.demo.plan import AGENT
from principals.actors import SYSTEM_ACTOR
from telemetry import services as telemetry_services
from telemetry.engine.slurm.statistics import Asked

# Queries for each submitted job (paper, §IV-A); with it comes the submission itself.
_AGENT_MEAN: Final = 3.18
_OTHER_MEAN: Final = 1.87
_CALL_US: Final = (300, 2500)  # how long the controller works on one


def tell_all(stage: Stage, facility: Facility, rng: Random) -> None:
    """Add the calls of every day, through the service that the reader counts with."""
    for day, calls in sorted(calls_of(facility, rng).items()):
        asked = {login: Asked(number, number * rng.randrange(*_CALL_US)) for login, number in calls.items()}
        telemetry_services.add_calls(actor=SYSTEM_ACTOR, cluster=stage.cluster, day=day, asked=asked)


def calls_of(facility: Facility, rng: Random) -> dict[date, Counter[str]]:
    """Draw how often each login name asked on each day: now and then once, sometimes in a tight loop."""
    days: dict[date, Counter[str]] = defaultdict(Counter)
    for draft in facility.drafts:
        mean = _AGENT_MEAN if draft.actor == AGENT else _OTHER_MEAN
        day = datetime.fromtimestamp(draft.batch.submit_s, UTC).date()
        days[day][draft.batch.login] += int(rng.expovariate(1 / mean) + 0.5)
    return days
