"""Who asks for trials in the last day, and the jobs submitted with what is granted. Pure, like the facility."""

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Final, NamedTuple

from policies.engine.trials import TrialLimits, TrialRequest, TrialUsage, decide_trial
from portal.demo import cast
from portal.demo.drafts import Batch, Draft, Shape
from portal.demo.plan import AGENT
from portal.demo.sampling import AGENT_RUNTIME, TRIAL_WAIT

# Who asks, and how many times: one of them more often than a day allows.
_ASKS: Final = {"u0421": 21, "u0455": 9, "u0102": 14, "u0733": 38, "u0611": 6, "u0682": 12, "u0377": 5}
_SIZES: Final = ((5, 0), (10, 1), (15, 1), (15, 1), (10, 0), (30, 1))  # minutes, GPUs; the last asks too much
_DAY_S: Final = 22 * 3600
_NO_JOB: Final = 0.08  # of receipts, those that no job comes for
_ENDS: Final = {"COMPLETED": 80, "FAILED": 12, "CANCELLED": 6, "OUT_OF_MEMORY": 2}
_CORES: Final = 8


class TrialPlan(NamedTuple):
    """A trial asked for. `submit_s` is when its job is submitted: None where it is refused or no job comes for it."""

    login: str
    asked_s: int
    minutes: int
    gpus: int
    purpose: str
    submit_s: int | None


def plan_trials(rng: Random, spans: Mapping[str, Sequence[tuple[int, int]]], now_s: int) -> list[TrialPlan]:
    """Plan the requests of the last day; jobs come of those that the shipped limits grant within a session's span."""
    plans = []
    for login, number in _ASKS.items():
        granted: list[TrialUsage] = []
        for place in range(number):
            asked_s = now_s - int(_DAY_S * (number - place) / (number + 1) * rng.uniform(0.9, 1.0))
            minutes, gpus = _SIZES[place % len(_SIZES)]
            submit_s: int | None = asked_s + rng.randrange(4, 180)
            if _is_granted(minutes, gpus, granted, asked_s):
                granted.append(TrialUsage(asked_s, 1, minutes * gpus))
            else:
                submit_s = None
            if rng.random() < _NO_JOB or not _covers(spans.get(login, ()), submit_s):
                submit_s = None
            plans.append(TrialPlan(login, asked_s, minutes, gpus, cast.LAB_OF[login].jobs[place % 3], submit_s))
    return plans


def _is_granted(minutes: int, gpus: int, earlier: Sequence[TrialUsage], asked_s: int) -> bool:
    request = TrialRequest(minutes, gpus)
    return decide_trial(request, TrialLimits(), person_usage=earlier, lab_usage=earlier, now_s=asked_s).granted


def _covers(spans: Iterable[tuple[int, int]], moment_s: int | None) -> bool:
    return moment_s is not None and any(first <= moment_s < last for first, last in spans)


def trial_drafts(rng: Random, plans: Iterable[TrialPlan], harness: str) -> list[Draft]:
    """Draft the jobs of the trials that the agents of one harness submit."""
    logins = {user.login for user in cast.AGENT_USERS if user.harness == harness}
    return [
        _draft(rng, plan, harness, plan.submit_s)
        for plan in plans
        if plan.submit_s is not None and plan.login in logins
    ]


def _draft(rng: Random, plan: TrialPlan, harness: str, submit_s: int) -> Draft:
    limit_s = plan.minutes * 60
    runtime_s, state = max(1, round(AGENT_RUNTIME.at(rng.random()))), rng.choices(list(_ENDS), list(_ENDS.values()))[0]
    if runtime_s > limit_s:
        runtime_s, state = limit_s + rng.randrange(31), "TIMEOUT"
    wait_s = int(TRIAL_WAIT.at(rng.random())) + 1
    batch = Batch(plan.login, submit_s, 1, None)
    return Draft(AGENT, harness, batch, 0, trial_shape(rng, plan.gpus), state, wait_s, runtime_s, limit_s=limit_s)


def trial_shape(rng: Random, gpus: int) -> Shape:
    """Draw what the job of a trial asks for."""
    if not gpus:
        return Shape("shared", "trial", 1, _CORES, 0, _CORES * 4)
    return Shape(rng.choice(("gpu_a100", "gpu_h200")), "trial", 1, _CORES * gpus, gpus, 96 * gpus)


def draw_size(rng: Random) -> tuple[int, int]:
    """Draw the minutes and GPUs of one more request."""
    return rng.choice(_SIZES)
