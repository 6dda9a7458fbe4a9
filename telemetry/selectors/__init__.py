"""Reads of `telemetry` that span models: sums over rollups, scoped by who asks, a cluster and a period."""

from telemetry.engine.cells import MIN_PEOPLE
from telemetry.selectors.agents import AgentLoad, by_agent
from telemetry.selectors.gpu import (
    GpuGroup,
    GpuGroups,
    GpuSplit,
    GpuSum,
    gpu_by_lab,
    gpu_by_partition,
    gpu_fits,
    gpu_split,
)
from telemetry.selectors.groups import GroupLoad, GroupLoads, by_lab, by_partition, over_representation
from telemetry.selectors.held import find_stale, held_now
from telemetry.selectors.job_filters import JobFilter
from telemetry.selectors.job_lists import (
    MOST_COUNTED,
    JobTotals,
    StateCount,
    choices_in,
    clusters,
    count_states,
    find_by_id,
    live_jobs,
    newest_by_raw_id,
    total,
)
from telemetry.selectors.loads import Loads, totals_by_actor
from telemetry.selectors.ordered import OrderedJobs, newest_first, ranges_of
from telemetry.selectors.rhythm import HourOfWeek, Runtimes, hour_of_week, runtimes
from telemetry.selectors.scope import Definition, Period, Scope
from telemetry.selectors.sessions import SessionAges, session_ages
from telemetry.selectors.shares import DayLoad, HarnessLoad, Shares, Split, by_day, by_harness, shares
from telemetry.selectors.standing import JobStanding, find_standing
from telemetry.selectors.totals import Totals, daily_totals, ratio, totals

__all__ = [
    "MIN_PEOPLE",
    "MOST_COUNTED",
    "AgentLoad",
    "DayLoad",
    "Definition",
    "GpuGroup",
    "GpuGroups",
    "GpuSplit",
    "GpuSum",
    "GroupLoad",
    "GroupLoads",
    "HarnessLoad",
    "HourOfWeek",
    "JobFilter",
    "JobStanding",
    "JobTotals",
    "Loads",
    "OrderedJobs",
    "Period",
    "Runtimes",
    "Scope",
    "SessionAges",
    "Shares",
    "Split",
    "StateCount",
    "Totals",
    "by_agent",
    "by_day",
    "by_harness",
    "by_lab",
    "by_partition",
    "choices_in",
    "clusters",
    "count_states",
    "daily_totals",
    "find_by_id",
    "find_stale",
    "find_standing",
    "gpu_by_lab",
    "gpu_by_partition",
    "gpu_fits",
    "gpu_split",
    "held_now",
    "hour_of_week",
    "live_jobs",
    "newest_by_raw_id",
    "newest_first",
    "over_representation",
    "ranges_of",
    "ratio",
    "runtimes",
    "session_ages",
    "shares",
    "total",
    "totals",
    "totals_by_actor",
]  # fmt: skip
