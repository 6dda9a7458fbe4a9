"""Figures of the report that are made of findings and incidents (paper §VII)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse

from portal.core import clock
from security.models.choices import Kind, Surface
from security.selectors import period as selectors
from security.selectors.period import Found
from telemetry.engine.cells import LEFT_OUT, Group, enough, withheld
from telemetry.figures import Column, Figure, Measured, Readings, Row, Section, Unit
from telemetry.selectors import Scope, ratio

OLD: Final = timedelta(days=7)
REPORTED: Final = "findings of the period, as far as detectors reported them; those of false alarms are left out"
_LIMIT: Final = "What no detector looks at is not found."
_NEEDS: Final = "a detector that reports such findings (POST /api/v1/ingest/findings)"


def _incidents(scope: Scope, **query: str) -> str:
    return f"{reverse('incidents')}?{urlencode(query | {'cluster': scope.cluster.name})}"


def _seen(*kinds: Kind) -> Callable[[Scope], str]:
    """Return the address of the incidents with a finding in the period."""
    kind = {"kind": kinds[0].value} if len(kinds) == 1 else {}
    return lambda scope: _incidents(
        scope, state="all", **kind, **{"from": str(scope.period.first), "to": str(scope.period.last)}
    )


def _keys(readings: Readings) -> Measured:
    scope = readings.scope
    if not selectors.has_any(scope, Kind.EXPOSED_SECRET):
        return Measured(None, needs=_NEEDS)
    found = selectors.found_in(scope, Kind.EXPOSED_SECRET, by="surface")
    whole = found.pop("", Found())
    columns = (
        Column("keys", "Keys", Unit.KEYS), Column("findings", "Sightings", Unit.FINDINGS),
        Column("people", "People", Unit.PEOPLE),
    )  # fmt: skip
    groups = sorted((Group(key, one.people) for key, one in found.items()), key=lambda group: -group.people)
    hidden = withheld(groups)
    rows = [
        Row(key, str(Surface(key).label), (len(one.keys), one.findings, len(one.people)))
        for key, one in ((group.key, found[group.key]) for group in groups if group.key not in hidden)
    ]
    if not enough(len(whole.people)):
        return Measured(None, columns, note=LEFT_OUT)
    unknown = ratio(len(whole.unknown), len(whole.keys))
    return Measured(len(whole.keys), columns, tuple(rows), unknown, note=LEFT_OUT if hidden else "")


def _by_kind(*kinds: Kind) -> Callable[[Readings], Measured]:
    columns = (
        Column("incidents", "Incidents", Unit.INCIDENTS), Column("findings", "Sightings", Unit.FINDINGS),
        Column("people", "People", Unit.PEOPLE),
    )  # fmt: skip

    def values(found: Found) -> tuple[int | None, ...]:
        counts = (len(found.incidents), found.findings, len(found.people))
        return counts if enough(len(found.people)) else (None,) * len(columns)

    def measured(readings: Readings) -> Measured:
        if not selectors.has_any(readings.scope, *kinds):
            return Measured(None, needs=_NEEDS)
        found = selectors.found_in(readings.scope, *kinds, by="kind")
        rows = tuple(Row(kind, str(kind.label), values(found.get(kind, Found()))) for kind in kinds)
        whole = values(found.get("", Found()))[0]
        hidden = whole is None or any(None in row.values for row in rows)
        if hidden and len(kinds) > 1:
            whole = None  # else the one that is left out could be had from it and the others
        return Measured(whole, columns, rows, note=LEFT_OUT if hidden else "")

    return measured


def _unresolved(readings: Readings) -> Measured:
    scope = readings.scope
    criterion = f"None older than {OLD.days} days"
    if not selectors.has_any(scope, Kind.EXPOSED_SECRET):
        return Measured(None, needs=_NEEDS, criterion=criterion)
    at = min(scope.period.ends, clock.now())
    found = selectors.unresolved(scope, Kind.EXPOSED_SECRET, at=at, older_than=OLD)
    shown = enough(len(found.people))
    return Measured(
        len(found.keys) if shown else None, note="" if shown else LEFT_OUT, criterion=criterion, is_met=not found.keys
    )  # fmt: skip


REPORT: Final = [
    Figure(
        "acceptance-keys", Section.ACCEPTANCE, "Unresolved exposed keys older than seven days",
        "Distinct keys whose incident was open at the end of the period (now, while it goes on), and had been for "
        f"{OLD.days} days and more since it opened, or opened again.",
        "incidents of exposed keys on the cluster", Unit.KEYS, _unresolved, facility_only=True, limit=_LIMIT,
        link=lambda scope: _incidents(scope, state="open", kind=Kind.EXPOSED_SECRET.value),
    ),
    Figure(
        "exposed-keys", Section.SECURITY, "Keys exposed",
        "Distinct keys that a detector saw in arguments, files or output, told apart by a keyed fingerprint; one that "
        "was seen at several places counts at each.",
        REPORTED, Unit.KEYS, _keys, facility_only=True, limit=_LIMIT, link=_seen(Kind.EXPOSED_SECRET),
    ),
    Figure(
        "weakened-safeguards", Section.SECURITY, "Safeguards weakened",
        "Incidents of commands that weaken a safeguard: open permissions, unchecked certificates, downloads that are "
        "run at once, a sandbox that is widened.",
        REPORTED, Unit.INCIDENTS, _by_kind(Kind.UNSAFE_COMMAND, Kind.SANDBOX_WIDENING), facility_only=True,
        limit=_LIMIT, link=_seen(Kind.UNSAFE_COMMAND, Kind.SANDBOX_WIDENING),
    ),
    Figure(
        "open-services", Section.SECURITY, "Services open to others",
        "Incidents of services that listen for other hosts, as notebooks without a password.",
        REPORTED, Unit.INCIDENTS, _by_kind(Kind.EXPOSED_SERVICE), facility_only=True, limit=_LIMIT,
        link=_seen(Kind.EXPOSED_SERVICE),
    ),
]  # fmt: skip
