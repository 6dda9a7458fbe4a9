"""Each selector's answer for one scope, read once and shared by every figure that is made of it."""

from functools import cached_property
from typing import TYPE_CHECKING

from telemetry import selectors
from telemetry.selectors import Definition, Scope
from telemetry.selectors.scheduler import Asking, asking

if TYPE_CHECKING:
    from telemetry.engine.period_study import Study


class Readings:
    """Read lazily; all figures of one page or report take the same instance, so that they agree."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    @cached_property
    def loads(self) -> selectors.Loads:
        return selectors.Loads(self.scope)

    @cached_property
    def totals(self) -> selectors.Totals:
        return self.loads.whole

    @cached_property
    def by_actor(self) -> dict[str, selectors.Totals]:
        return selectors.totals_by_actor(self.scope, loads=self.loads)

    @cached_property
    def shares(self) -> dict[Definition, selectors.Shares]:
        return {each: selectors.shares(self.scope, each, loads=self.loads) for each in Definition}

    @cached_property
    def harnesses(self) -> list[selectors.HarnessLoad]:
        return selectors.by_harness(self.scope, loads=self.loads)

    @cached_property
    def labs(self) -> selectors.GroupLoads:
        return selectors.by_lab(self.scope, loads=self.loads)

    @cached_property
    def partitions(self) -> selectors.GroupLoads:
        return selectors.by_partition(self.scope)

    @cached_property
    def days(self) -> list[selectors.DayLoad]:
        return selectors.by_day(self.scope)

    @cached_property
    def week(self) -> selectors.HourOfWeek:
        return selectors.hour_of_week(self.scope)

    @cached_property
    def runtimes(self) -> dict[str, selectors.Runtimes]:
        return selectors.runtimes(self.scope)

    @cached_property
    def ages(self) -> dict[str, selectors.SessionAges]:
        return selectors.session_ages(self.scope)

    @cached_property
    def study(self) -> "Study":
        from telemetry.selectors.period_study import study  # columns: nothing that a page loads

        return study(self.scope)

    @cached_property
    def asking(self) -> list[Asking]:
        return asking(self.scope)

    @cached_property
    def gpus(self) -> selectors.GpuSplit:
        return selectors.gpu_split(self.scope)

    @cached_property
    def gpu_fits(self) -> dict[str, selectors.GpuSum]:
        return selectors.gpu_fits(self.scope)

    @cached_property
    def gpu_partitions(self) -> selectors.GpuGroups:
        return selectors.gpu_by_partition(self.scope)

    @cached_property
    def gpu_labs(self) -> selectors.GpuGroups:
        return selectors.gpu_by_lab(self.scope)
