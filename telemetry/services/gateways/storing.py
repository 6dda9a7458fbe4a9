"""Writing the requests of a gateway: seconds that are there already keep the greater number, days are added up anew."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeAlias

from portal.core import clock
from principals.models import Cluster
from telemetry.models import GatewayDay, GatewayMinute

Counts: TypeAlias = list[int]  # requests, submissions, transfers
Seconds: TypeAlias = dict[int, Counts]  # by UTC epoch second
_CHUNK: Final = 500


class Key(NamedTuple):
    """Whose requests: of a login name with a harness, or of a driver in all ("" then)."""

    driver: str
    login: str = ""
    harness: str = ""


@dataclass(frozen=True, slots=True)
class Log:
    """Which gateway a log is of."""

    cluster: Cluster
    host: str
    gateway: str

    @property
    def of(self) -> dict[str, Any]:
        """Return the columns that name it."""
        return {"cluster": self.cluster, "host": self.host, "gateway": self.gateway}


@dataclass(frozen=True, slots=True)
class Unit:
    """What one key asked on one UTC day."""

    key: Key
    day: date
    seconds: Seconds


def store_unit(log: Log, unit: Unit, user_id: int | None) -> int:
    """Store a unit in the caller's transaction, with the cluster locked; return how many requests were news."""
    of = log.of | {"driver": unit.key.driver, "cluster_user_id": user_id, "harness": unit.key.harness}
    midnight = clock.midnight(unit.day)
    rows = GatewayMinute.objects.filter(**of, minute__gte=midnight, minute__lt=midnight + timedelta(days=1))
    stored = {row.minute: row for row in rows}
    new, changed, news = list[GatewayMinute](), list[GatewayMinute](), 0
    for minute, seconds in _by_minute(unit.seconds).items():
        row = stored.get(minute)
        if row is None:
            stored[minute] = row = GatewayMinute(minute=minute, seconds={}, **of)
            new.append(row)
        more = _merge(row.seconds, seconds)
        if more and row.pk is not None:
            changed.append(row)
        news += more
    GatewayMinute.objects.bulk_create(new, batch_size=_CHUNK)
    GatewayMinute.objects.bulk_update(changed, ["seconds"], batch_size=_CHUNK)
    if new or changed:
        _add_up(of, unit.day, stored.values())
    return news


def _by_minute(seconds: Seconds) -> dict[datetime, dict[str, Counts]]:
    found: dict[datetime, dict[str, Counts]] = {}
    for at_s, counts in seconds.items():
        minute = datetime.fromtimestamp(at_s - at_s % 60, UTC)
        found.setdefault(minute, {})[str(at_s % 60)] = counts
    return found


def _merge(known: dict[str, Counts], told: Mapping[str, Counts]) -> int:
    """Keep the greater number of each second; return how many more requests there are.

    Lines of one request are the same in every file, so that acts grow with requests alone.
    """
    more = 0
    for second, counts in told.items():
        old = known.get(second, [0, 0, 0])
        known[second] = [max(pair) for pair in zip(old, counts, strict=True)]
        more += known[second][0] - old[0]
    return more


def _add_up(of: Mapping[str, Any], day: date, minutes: Any) -> None:
    """Write a day's sums anew."""
    sums = [sum(column) for column in zip(*(each for row in minutes for each in row.seconds.values()), strict=True)]
    told = dict(zip(("requests", "submissions", "transfers"), sums, strict=True))
    GatewayDay.objects.update_or_create(**of, day=day, defaults=told)


def units_of(asked: Mapping[Key, Seconds]) -> Sequence[Unit]:
    """Part what was asked by key and UTC day, oldest day first."""
    units: dict[tuple[date, Key], Unit] = {}
    for key, seconds in asked.items():
        for at_s, counts in seconds.items():
            day = datetime.fromtimestamp(at_s, UTC).date()
            units.setdefault((day, key), Unit(key, day, {})).seconds[at_s] = counts
    return [units[each] for each in sorted(units)]
