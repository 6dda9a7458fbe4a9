"""The period that the Reports page is asked for: in its address, so that it can be sent to somebody."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from urllib.parse import urlencode

from portal.core.errors import Invalid
from principals.models import Cluster
from telemetry.selectors import Period


@dataclass(frozen=True, slots=True)
class Preset:
    """A period that many ask for."""

    title: str
    query: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was asked for: nothing, days of a cluster, or something that is no period (`fault` says why)."""

    cluster: str = ""
    first: str = ""
    last: str = ""
    period: Period | None = None
    fault: str = ""
    presets: tuple[Preset, ...] = ()


def choose(query: Mapping[str, str], clusters: Sequence[Cluster], *, today: date) -> Chosen:
    """Read `cluster`, `from` and `to` of an address; a cluster that is not known is the first one."""
    names = [cluster.name for cluster in clusters]
    cluster = query.get("cluster", "")
    cluster = cluster if cluster in names else names[0]
    first, last = query.get("from", ""), query.get("to", "")
    period, fault = None, ""
    if first or last:
        try:
            period = Period.between(first, last)
        except Invalid as error:
            fault = error.words
    month = Period.month(today.year, today.month)
    usual = (
        ("Last week", Period.week(today).previous()), ("Last month", month.previous()), ("This month", month),
    )  # fmt: skip
    presets = tuple(Preset(title, _query(cluster, days), days == period) for title, days in usual)
    shown = period or month.previous()
    return Chosen(cluster, first or str(shown.first), last or str(shown.last), period, fault, presets)


def _query(cluster: str, period: Period) -> str:
    return urlencode({"cluster": cluster, "from": period.first, "to": period.last})
