"""Who submits next in the living demo, and what: by the clock on the facility's wall, agents by night too."""

from datetime import datetime
from random import Random
from typing import Final

from portal.demo import cast
from portal.demo.drafts import Batch, Draft, Shape
from portal.demo.hours import agent_weight, human_weight
from portal.demo.plan import AGENT, HUMAN, UNKNOWN, GroupPlan, plan_groups
from portal.demo.records import common_facts, ids_needed, pending
from portal.demo.shapes import draw_shape, nice_limit, test_shape
from portal.demo.trials import trial_shape
from telemetry.engine.slurm.records import JobRecord

_BUSY_S: Final = 3.0  # seconds between submissions in office hours; at night a little longer
_QUIET_S: Final = 5.0
_OFFICE: Final = 1.2  # weight of a busy hour of people
_TASKS: Final = (1, 1, 1, 1, 1, 1, 1, 2, 4, 8)
_ON_TEST: Final = 0.02
_TRIED: Final = 0.03  # of what agents submit
_PLANS: Final = {(plan.actor, plan.harness): plan for plan in plan_groups(40_000)}
_PEOPLE: Final = tuple(
    login for login in cast.LAB_OF
    if login not in cast.UNSEEN_USERS and login not in {user.login for user in cast.AGENT_USERS}
)  # fmt: skip


def pause_s(rng: Random, local: datetime) -> float:
    """Draw the seconds until the next submission."""
    busy = min(1.0, human_weight(local) / _OFFICE)
    return (_QUIET_S - (_QUIET_S - _BUSY_S) * busy) * rng.uniform(0.6, 1.4)


def draw_submitter(rng: Random, local: datetime) -> tuple[GroupPlan, str]:
    """Draw who submits: the group and a login name in it."""
    weights = {
        AGENT: 0.558 * agent_weight(local), HUMAN: 0.382 * human_weight(local), UNKNOWN: 0.06 * human_weight(local)
    }  # fmt: skip
    actor = rng.choices(list(weights), weights=list(weights.values()))[0]
    if actor == AGENT:
        user = rng.choices(cast.AGENT_USERS, weights=[user.weight for user in cast.AGENT_USERS])[0]
        return _PLANS[AGENT, user.harness], user.login
    return _PLANS[actor, ""], rng.choice(_PEOPLE if actor == HUMAN else cast.UNSEEN_USERS)


def wants_trial(rng: Random, group: GroupPlan) -> bool:
    """Draw whether a submission is to be tried first."""
    return group.actor == AGENT and rng.random() < _TRIED


def submit_trial(
    rng: Random, group: GroupPlan, login: str, *, base: int, now_s: int, minutes: int, gpus: int, receipt: str
) -> JobRecord:
    """Submit the job of a trial that was granted, as number `base`; return its record."""
    draft = Draft(group.actor, group.harness, Batch(login, now_s, 1, None), 0, trial_shape(rng, gpus), "PENDING", 0, 0)
    draft.limit_s = minutes * 60
    return pending(rng, common_facts(rng, draft) | {"raw_job_id": base, "job_id": str(base), "comment": receipt})


def submit(rng: Random, group: GroupPlan, login: str, *, base: int, now_s: int) -> tuple[JobRecord, int]:
    """Submit a job or a small array as number `base`; return its record and how many numbers it took."""
    size = rng.choice(_TASKS)
    limit = rng.choice((900, 1800, 3600, 7200))
    shape = _shape(rng, group, size, limit)
    draft = Draft(group.actor, group.harness, Batch(login, now_s, size, None), 0, shape, "PENDING", 0, 0)
    draft.limit_s = nice_limit(limit, shape.partition)
    facts = common_facts(rng, draft) | {"raw_job_id": base, "job_id": str(base)}
    if size > 1:
        facts |= {"job_id": f"{base}_[0-{size - 1}]", "array_job_id": base, "array_tasks": size}
    return pending(rng, facts), ids_needed(size)


def _shape(rng: Random, group: GroupPlan, size: int, limit: int) -> Shape:
    if size == 1 and rng.random() < _ON_TEST:
        return test_shape(rng)
    return draw_shape(rng, group, size, limit)
