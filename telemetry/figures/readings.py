"""Each selector's answer for one scope, read once and shared by every figure that is made of it."""

import time
from collections.abc import Mapping
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Final

from telemetry import selectors
from telemetry.models import DataGeneration
from telemetry.selectors import Definition, Scope
from telemetry.selectors.commands import Commands, commands
from telemetry.selectors.harness import Telling, telling
from telemetry.selectors.methods import methods
from telemetry.selectors.places import Places, places
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
        return asking(self.scope, loads=self.loads)

    @cached_property
    def methods(self) -> Mapping[str, int]:
        return methods(self.scope)

    @cached_property
    def places(self) -> Places:
        return places(self.scope, loads=self.loads)

    @cached_property
    def commands(self) -> Commands:
        return commands(self.scope)

    @cached_property
    def telling(self) -> Telling:
        return telling(self.scope)

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


KEPT_S: Final = 60  # what depends on more than the data, as names of labs, is that old at most
_MOST_KEPT: Final = 16


class Kept:
    """Readings of whole clusters that were made already, as long as the data are the same.

    Many look at the same page, and a page asks for its pictures one by one. Whoever looks has readings of their own, so
    that nobody sees what another may.
    """

    def __init__(self) -> None:
        self._found: dict[object, tuple[int, float, Readings]] = {}
        self._lock = Lock()

    def readings_of(self, scope: Scope) -> Readings:
        """Return readings of a scope; of a lab's, or where not all may be seen, always new ones."""
        if scope.lab is not None or not scope.actor.sees_facility:
            return Readings(scope)
        asked = (scope.actor.ref.kind, scope.actor.ref.id, scope.cluster.pk, scope.period)
        # Before anything is read: what changes meanwhile is read, and kept under the older number.
        generation, now = DataGeneration.objects.of(scope.cluster), time.monotonic()
        with self._lock:
            known = self._found.pop(asked, None)
            if known is None or known[0] != generation or now - known[1] > KEPT_S:
                known = (generation, now, Readings(scope))
            self._found[asked] = known  # the newest is the last
            while len(self._found) > _MOST_KEPT:
                del self._found[next(iter(self._found))]
        return known[2]

    def forget(self) -> None:
        """Forget all."""
        with self._lock:
            self._found.clear()


KEPT: Final = Kept()
readings_of = KEPT.readings_of
