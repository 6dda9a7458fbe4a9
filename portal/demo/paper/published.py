"""The numbers of the published measurement, each with its place in the paper; what it leaves open is ours and said so.

Agents, people and what nobody knows of are told apart twice: by account (Figure 2a: an account with agents is an
agent's, whatever its owner types) and by job.
"""

from collections.abc import Mapping
from datetime import date
from typing import Final, NamedTuple

from portal.demo.plan import AGENT, HUMAN, UNKNOWN
from portal.demo.sampling import AGENT_GAP, AGENT_RUNTIME, HUMAN_GAP, HUMAN_RUNTIME, Curve

FIRST: Final = date(2026, 7, 7)  # §III, both days included
LAST: Final = date(2026, 8, 1)
JOBS: Final = 7_088_836
USERS: Final = 1611
FEWER_PEOPLE: Final = 0.3  # ours: of a share s of the jobs, s ** 0.3 of the people
CORE_HOURS: Final = 35_700_000
GPU_HOURS: Final = 724_120
ACTORS: Final = (AGENT, HUMAN, UNKNOWN)


class Shares(NamedTuple):
    """Shares of four measures."""

    users: float
    submissions: float
    core_hours: float
    gpu_hours: float


AGENT_SHARES: Final = Shares(0.195, 0.558, 0.291, 0.427)  # Figure 2a
UNSEEN: Final = Shares(0.04, 0.02, 0.02, 0.01)  # ours: accounts of which no session is known
# Figure 2b gives no numbers: these keep its order. Shares of agents' own, for the account's main harness.
HARNESSES: Final = {
    "claude-code": Shares(0.52, 0.58, 0.64, 0.45), "codex": Shares(0.22, 0.20, 0.18, 0.28),
    "cursor": Shares(0.18, 0.16, 0.13, 0.19), "copilot": Shares(0.08, 0.06, 0.05, 0.08),
}  # fmt: skip

# By job, §IV-A; of jobs nobody knows of, ours.
CANCELLED: Final = {AGENT: 0.103, HUMAN: 0.023, UNKNOWN: 0.03}
ON_TEST: Final = {AGENT: 0.0107, HUMAN: 0.0029, UNKNOWN: 0.003}
RUN_TIMES: Final = {AGENT: AGENT_RUNTIME, HUMAN: HUMAN_RUNTIME, UNKNOWN: HUMAN_RUNTIME}
# From a cancellation to the next act: medians 3.2 and 32.5 min.
AFTER_CANCEL: Final = {
    AGENT: Curve(((5, 0), (192, 0.5), (1200, 0.9), (7200, 1))),
    HUMAN: Curve(((30, 0), (1950, 0.5), (10_800, 0.9), (43_200, 1))),
    UNKNOWN: Curve(((30, 0), (1950, 0.5), (10_800, 0.9), (43_200, 1))),
}
UNCHANGED_AFTER_OOM: Final = {AGENT: 0.03, HUMAN: 0.40, UNKNOWN: 0.20}  # §VI-A
OUT_OF_MEMORY: Final = {AGENT: 0.012, HUMAN: 0.009, UNKNOWN: 0.009}  # ours
RESUBMITTED_AFTER_OOM: Final = 0.9  # ours
RESUBMITTED_AFTER_CANCEL: Final = 0.9  # ours, of those within a chain: "most" are followed by one
TIMED_OUT: Final = 0.02  # ours
FAILED: Final = {AGENT: 0.08, HUMAN: 0.05, UNKNOWN: 0.05}  # ours
FAIL_AGAIN: Final = {AGENT: 0.57, HUMAN: 0.4, UNKNOWN: 0.4}  # §VI-A; of people and the rest, ours
# From a failure to the next of the same kind: a median of 9.1 h, and 46 % on another day; the spread is ours.
BETWEEN_FAILURES_S: Final = 32_760
BETWEEN_FAILURES: Final = Curve(((300, 0), (BETWEEN_FAILURES_S, 0.5), (86_400, 0.88), (604_800, 1)))
# From one submission of a loop to the next, §III-B.
LOOP_MINUTES: Final = (10, 30, 60, 180)
LOOPS: Final = {AGENT: AGENT_GAP, HUMAN: HUMAN_GAP, UNKNOWN: HUMAN_GAP}
QUERIES_PER_JOB: Final = {AGENT: 3.18, HUMAN: 1.87, UNKNOWN: 1.2}  # by account, §IV-A; of the unseen, ours
QUERIES_FALL: Final = {AGENT: 0.0, HUMAN: 0.3, UNKNOWN: 0.0}  # ours: those who submit much ask less for each job

# Figure 4b: share of measured jobs, and whether compute and memory are heavy.
GPU_QUADRANTS: Final = {"both": 0.215, "compute": 0.223, "memory": 0.118, "low": 0.444}
HEAVY_ON: Final = {"both": (True, True), "compute": (True, False), "memory": (False, True), "low": (False, False)}
GPU_MEASURED: Final = 0.94  # ours
GPUS_A_JOB: Final[Mapping[int, float]] = {1: 0.62, 2: 0.2, 4: 0.18}  # ours

# Table II: jobs that share with another user's job what the key names. The folder stands apart.
ALIKE: Final = {"command": 246, "submit_line": 1354, "script": 88_588, "template": 619_801, "application": 2_137_001}
SAME_FOLDER: Final = 44_073
FEWEST_ALIKE: Final = 24  # of a small share so many are planted all the same: rows of few people are withheld

# Figure 5b: medians 7.5 and 3.6 days; the spread is ours.
SESSION_DAYS: Final = {AGENT: 7.5, HUMAN: 3.6}
SESSION_SIGMA: Final = {AGENT: 0.9, HUMAN: 0.8}
BETWEEN_DAYS: Final = {AGENT: 0.6, HUMAN: 0.2}  # ours: a mean
SECOND_HARNESS: Final = 0.12  # ours: agent users who have another harness too
