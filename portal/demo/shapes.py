"""What jobs ask for: partition, QoS, nodes, cores, GPUs, memory, time limit."""

from random import Random
from typing import Final

from portal.demo.drafts import Shape
from portal.demo.plan import AGENT, PARTITIONS, GroupPlan

NICE_LIMITS_S: Final = (
    300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 43_200, 86_400, 172_800, 259_200, 432_000, 604_800
)  # fmt: skip
TRIAL_S: Final = 900
_GPU_HOURS_A_JOB: Final = {True: 2.6, False: 4.6}  # agents, others: run time × GPUs, at the mean
_LARGEST_GPU_ARRAY: Final = 24
# Nodes × cores of jobs without GPUs, and how often agents and others ask for them.
_AGENT_CORES: Final = {(1, 1): 16, (1, 2): 12, (1, 4): 20, (1, 8): 18, (1, 16): 16, (1, 32): 10, (1, 64): 6, (2, 64): 2}
_HUMAN_CORES: Final = {
    (1, 1): 12, (1, 4): 12, (1, 8): 12, (1, 16): 16, (1, 32): 18, (1, 64): 18, (2, 64): 7, (4, 64): 4, (8, 64): 1
}  # fmt: skip
_TASK_CORES: Final = {(1, 1): 25, (1, 2): 20, (1, 4): 30, (1, 8): 20, (1, 16): 5}


def gpu_chance(group: GroupPlan) -> float:
    """Return the share of a group's submissions that ask for GPUs, so that its GPU-hours come near their plan."""
    return min(0.8, group.gpu_hours / (group.jobs * _GPU_HOURS_A_JOB[group.actor == AGENT])) if group.jobs else 0.0


def draw_shape(rng: Random, group: GroupPlan, size: int, longest_s: float) -> Shape:
    """Draw what a batch of `size` alike jobs asks for; `longest_s` is how long the longest of them runs."""
    if size <= _LARGEST_GPU_ARRAY and rng.random() < gpu_chance(group):
        return _gpu_shape(rng, group, size, longest_s)
    table = _TASK_CORES if size > 1 else _AGENT_CORES if group.actor == AGENT else _HUMAN_CORES
    nodes, cores = rng.choices(list(table), weights=list(table.values()))[0]
    if cores <= 32 and rng.random() < 0.03:
        return Shape("bigmem", "normal", 1, cores, 0, cores * 24)
    qos = "long" if longest_s > 2 * 86_400 else "normal"
    return Shape("shared", qos, nodes, nodes * cores, 0, nodes * cores * 4)


def _gpu_shape(rng: Random, group: GroupPlan, size: int, longest_s: float) -> Shape:
    gpus = 1 if size > 1 else rng.choices((1, 2, 4, 8), weights=(68, 14, 14, 4))[0]
    partition = PARTITIONS["gpu_h200" if rng.random() < 0.38 else "gpu_a100"]
    qos = "trial" if group.actor == AGENT and size == 1 and gpus == 1 and longest_s < TRIAL_S * 0.9 else "normal"
    nodes = max(1, gpus // partition.gpus)
    cores_a_gpu = rng.choice((8, 12, 16))
    return Shape(partition.name, qos, nodes, gpus * cores_a_gpu, gpus, gpus * 96)


def test_shape(rng: Random) -> Shape:
    """Draw a job for the test partition."""
    cores = rng.choice((1, 2, 4, 8, 16))
    return Shape("test", "normal", 1, cores, 0, cores * 4)


def nice_limit(seconds: float, partition: str) -> int:
    """Return the time limit a person would write for so long a run, within what the partition allows."""
    longest = PARTITIONS[partition].longest_s
    return min(longest, next((limit for limit in NICE_LIMITS_S if limit >= seconds), longest))
