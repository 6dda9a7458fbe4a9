"""How much of everything the demo facility has: machine, groups of jobs and their share of each measure.

The shares are those of a measured production cluster (paper, abstract, §III and figure 2). They apply to jobs *seen
under a declared agent session*, each as a share of all jobs, those of unknown origin included; agent users are login
names with at least one such job, as a share of login names with any job.
"""

from typing import Final, NamedTuple

from portal.demo.sampling import exact_counts

AGENT: Final = "agent"
HUMAN: Final = "human"
UNKNOWN: Final = "unknown"

DAYS: Final = 30
JOBS: Final = 40_000


class Shares(NamedTuple):
    """Shares of three measures."""

    submissions: float
    core_hours: float
    gpu_hours: float


AGENT_SHARES: Final = Shares(0.558, 0.291, 0.427)
UNKNOWN_SHARES: Final = Shares(0.06, 0.07, 0.05)
HARNESS_SHARES: Final = {
    "claude-code": Shares(0.62, 0.68, 0.44),
    "codex": Shares(0.19, 0.17, 0.27),
    "cursor": Shares(0.13, 0.10, 0.20),
    "copilot": Shares(0.06, 0.05, 0.09),
}
CANCELLED: Final = {AGENT: 0.103, HUMAN: 0.023, UNKNOWN: 0.03}
ON_TEST: Final = {AGENT: 0.0107, HUMAN: 0.0029, UNKNOWN: 0.003}


class Partition(NamedTuple):
    """A partition: its nodes' name, digits and number, what one node has, and the longest time limit (s)."""

    name: str
    prefix: str
    nodes: int
    cpus: int
    gpus: int
    gpu_type: str
    mem_gib: int
    longest_s: int


PARTITIONS: Final = {
    partition.name: partition
    for partition in (
        Partition("shared", "c", 40, 64, 0, "", 256, 7 * 86_400),
        Partition("bigmem", "b", 4, 64, 0, "", 2048, 3 * 86_400),
        Partition("test", "t", 2, 32, 0, "", 128, 7200),
        Partition("gpu_a100", "ga", 12, 64, 4, "a100", 512, 3 * 86_400),
        Partition("gpu_h200", "gh", 8, 96, 4, "h200", 1024, 3 * 86_400),
    )
}
# How busy the machine is over the window: what all jobs together use of what there is.
CORE_UTILISATION: Final = 0.55
GPU_UTILISATION: Final = 0.62


class GroupPlan(NamedTuple):
    """How many jobs one group submits, and how many core- and GPU-hours they use within the window."""

    actor: str
    harness: str
    jobs: int
    core_hours: float
    gpu_hours: float


def plan_groups(jobs: int) -> list[GroupPlan]:
    """Split `jobs` and the machine's use among agents by harness, people, and those of unknown origin."""
    part = jobs / JOBS
    cores = sum(p.nodes * p.cpus for p in PARTITIONS.values()) * 24 * DAYS * CORE_UTILISATION * part
    gpus = sum(p.nodes * p.gpus for p in PARTITIONS.values()) * 24 * DAYS * GPU_UTILISATION * part
    shares = {
        (AGENT, harness): Shares(*(whole * own for whole, own in zip(AGENT_SHARES, split, strict=True)))
        for harness, split in HARNESS_SHARES.items()
    }
    shares[UNKNOWN, ""] = UNKNOWN_SHARES
    rest = [1 - agents - unknown for agents, unknown in zip(AGENT_SHARES, UNKNOWN_SHARES, strict=True)]
    shares[HUMAN, ""] = Shares(*rest)
    counts = exact_counts(jobs, {key: share.submissions for key, share in shares.items()})
    return [
        GroupPlan(actor, harness, counts[actor, harness], cores * share.core_hours, gpus * share.gpu_hours)
        for (actor, harness), share in shares.items()
    ]
