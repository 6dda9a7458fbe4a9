"""The jobs of one group: submissions, run times, what they ask for, how they end, so that its shares come out."""

from collections.abc import Sequence
from random import Random
from typing import Final

from portal.demo.drafts import Batch, Draft, Shape
from portal.demo.plan import AGENT, CANCELLED, ON_TEST, PARTITIONS, GroupPlan
from portal.demo.sampling import AGENT_RUNTIME, HUMAN_RUNTIME, TRIAL_WAIT, WAIT, blocks, shuffled
from portal.demo.shapes import TRIAL_S, draw_shape, nice_limit, test_shape

_TEST_LONGEST_S: Final = 1500
_LONG_S: Final = 3600
_ROUNDS: Final = 12
# How jobs end that were not cancelled.
_ENDS: Final = {
    True: {"COMPLETED": 0.84, "FAILED": 0.085, "TIMEOUT": 0.05, "OUT_OF_MEMORY": 0.023, "NODE_FAIL": 0.002},
    False: {"COMPLETED": 0.87, "FAILED": 0.05, "TIMEOUT": 0.065, "OUT_OF_MEMORY": 0.012, "NODE_FAIL": 0.003},
}
# Of cancelled jobs, those that never left the queue.
_NEVER_STARTED: Final = {True: 0.55, False: 0.35}
_CANCEL_GAP_S: Final = {True: 192, False: 1950}  # median from a cancel to what is submitted instead (paper, §IV-A)


def draft_jobs(rng: Random, group: GroupPlan, batches: Sequence[Batch]) -> list[Draft]:
    """Draft every job of a group's batches."""
    is_agent = group.actor == AGENT
    curve = AGENT_RUNTIME if is_agent else HUMAN_RUNTIME
    runtimes = [[curve.at(q) for q in quantiles] for quantiles in blocks(rng, [batch.size for batch in batches])]
    cancelled = CANCELLED[group.actor]
    ends = {state: share * (1 - cancelled) for state, share in _ENDS[is_agent].items()}
    states = iter(shuffled(rng, group.jobs, {**ends, "CANCELLED": cancelled}))
    on_test = _choose_for_test(rng, group, batches, runtimes)
    drafts = []
    for number, (batch, seconds) in enumerate(zip(batches, runtimes, strict=True)):
        shape = test_shape(rng) if number in on_test else draw_shape(rng, group, batch.size, max(seconds))
        wait = (TRIAL_WAIT if shape.qos == "trial" or shape.partition == "test" else WAIT).at(rng.random())
        for task, runtime in enumerate(seconds):
            drafts.append(
                Draft(
                    group.actor, group.harness, batch, task, shape, next(states),
                    int(wait * rng.uniform(1, 1 + task / 40)) + 1, max(1, round(runtime)),
                )
            )  # fmt: skip
            _settle_end(rng, drafts[-1])
    return drafts


def _choose_for_test(
    rng: Random, group: GroupPlan, batches: Sequence[Batch], runtimes: Sequence[Sequence[float]]
) -> set[int]:
    """Choose batches of short jobs for the test partition until its share is met."""
    left, chosen = round(group.jobs * ON_TEST[group.actor]), set()
    order = list(range(len(batches)))
    rng.shuffle(order)
    for number in order:
        if batches[number].size <= min(4, left) and max(runtimes[number]) <= _TEST_LONGEST_S:
            chosen.add(number)
            left -= batches[number].size
    return chosen


def _settle_end(rng: Random, draft: Draft) -> None:
    """Make a job's times fit its state."""
    is_agent = draft.actor == AGENT
    if draft.state == "TIMEOUT":
        if draft.runtime_s < 450 or draft.shape.qos == "trial":
            draft.state = "FAILED"
        else:
            draft.limit_s = nice_limit(draft.runtime_s, draft.shape.partition)
            draft.runtime_s = draft.limit_s + rng.randrange(31)
    elif draft.state == "CANCELLED" and rng.random() < _NEVER_STARTED[is_agent]:
        draft.starts = False
        if draft.batch.next_s is not None:
            gap = _CANCEL_GAP_S[is_agent] * rng.lognormvariate(0, 1.0)
            draft.wait_s = max(2, int(draft.batch.next_s - draft.batch.submit_s - gap))


def calibrate(drafts: Sequence[Draft], group: GroupPlan, now_s: int) -> None:
    """Stretch or shorten a group's long jobs until it uses the GPU- and core-hours of its plan by `now_s`.

    Only runs above an hour change, so that what is said of short jobs stays true. First jobs with GPUs, then the
    others, for the first hold cores too; again and again, for jobs that still run are cut at `now_s`.
    """
    movable = [d for d in drafts if d.starts and d.runtime_s > _LONG_S and d.state != "TIMEOUT"]
    with_gpus = [draft for draft in movable if draft.shape.gpus]
    without = [draft for draft in movable if not draft.shape.gpus]
    gpu_goal = group.gpu_hours - _gpu_hours(drafts, now_s) + _gpu_hours(with_gpus, now_s)
    core_goal = group.core_hours - _core_hours(drafts, now_s) + _core_hours(movable, now_s)
    for _ in range(_ROUNDS):
        _stretch(with_gpus, gpu_goal, _gpu_hours(with_gpus, now_s))
    core_goal -= _core_hours(with_gpus, now_s)
    for _ in range(_ROUNDS):
        _stretch(without, core_goal, _core_hours(without, now_s))


def _gpu_hours(drafts: Sequence[Draft], now_s: int) -> float:
    return sum(draft.used_s(now_s) * draft.shape.gpus for draft in drafts) / 3600


def _core_hours(drafts: Sequence[Draft], now_s: int) -> float:
    return sum(draft.used_s(now_s) * draft.shape.cpus for draft in drafts) / 3600


def _stretch(drafts: Sequence[Draft], goal: float, have: float) -> None:
    if not have or abs(goal - have) < have * 0.0005:
        return
    factor = min(3.0, max(0.4, goal / have))
    for draft in drafts:
        longest = PARTITIONS[draft.shape.partition].longest_s - 60
        draft.runtime_s = min(longest, max(_LONG_S // 2, round(draft.runtime_s * factor)))


def set_limits(rng: Random, drafts: Sequence[Draft]) -> None:
    """Give every job the time limit it asks for, longer than it runs; one for all tasks of a batch."""
    longest: dict[tuple[str, int, Shape], int] = {}
    for draft in drafts:
        key = (draft.batch.login, draft.batch.submit_s, draft.shape)
        longest[key] = max(longest.get(key, 0), draft.runtime_s)
    limits = {key: _limit(rng, key[2], seconds) for key, seconds in longest.items()}
    for draft in drafts:
        if draft.state != "TIMEOUT":
            draft.limit_s = limits[draft.batch.login, draft.batch.submit_s, draft.shape]


def _limit(rng: Random, shape: Shape, seconds: int) -> int:
    return TRIAL_S if shape.qos == "trial" else nice_limit(seconds * rng.uniform(1.1, 3.5), shape.partition)
