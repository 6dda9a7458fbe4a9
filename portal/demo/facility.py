"""The whole demo facility from a seed: sessions and job records of thirty days, the same for the same arguments."""

from dataclasses import dataclass
from datetime import datetime
from random import Random
from zoneinfo import ZoneInfo

from portal.demo.drafts import Draft, SessionPlan
from portal.demo.hours import DAY_S
from portal.demo.plan import DAYS, JOBS, plan_groups
from portal.demo.records import make_records
from portal.demo.sessions import agent_sessions, shell_sessions, spans_of
from portal.demo.submissions import Calendar, plan_batches
from portal.demo.trials import TrialPlan, plan_trials, trial_drafts
from portal.demo.workload import calibrate, draft_jobs, set_limits
from telemetry.engine.slurm.records import JobRecord


@dataclass(frozen=True, slots=True)
class Facility:
    """What was thought up. `drafts` say who really submitted what; `records` and `sessions` are all Gatehouse gets."""

    start_s: int
    now_s: int
    sessions: tuple[SessionPlan, ...]
    drafts: tuple[Draft, ...]
    records: tuple[JobRecord, ...]
    trials: tuple[TrialPlan, ...]


def build_facility(*, seed: int, now: datetime, zone: str, jobs: int = JOBS) -> Facility:
    """Think up a facility: about `jobs` jobs of 62 login names in 12 labs, in the 30 days before `now`.

    `zone` is the facility's time zone, by which people keep office hours.
    """
    rng = Random(seed)
    now_s, clock_zone = int(now.timestamp()), ZoneInfo(zone)
    start_s = now_s - DAYS * DAY_S
    agents = agent_sessions(rng, start_s, now_s)
    calendar = Calendar(rng, agents, start_s, now_s, clock_zone)
    trials = plan_trials(rng, spans_of(agents, start_s, now_s), now_s)
    drafts: list[Draft] = []
    for group in plan_groups(jobs):
        tried = trial_drafts(rng, trials, group.harness)
        others = group._replace(jobs=group.jobs - len(tried))
        own = draft_jobs(rng, others, plan_batches(rng, others, calendar))
        calibrate([*own, *tried], group, now_s)
        set_limits(rng, own)
        drafts += [*own, *tried]
    shells = shell_sessions(rng, drafts, now_s)
    records = make_records(rng, drafts, now_s)
    return Facility(start_s, now_s, (*agents, *shells), tuple(drafts), tuple(records), tuple(trials))
