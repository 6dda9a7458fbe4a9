"""Taking what a harness tells: what of it counts goes to the readings of its agent, the rest nowhere."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Final, NamedTuple

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest, Least
from django.utils.crypto import salted_hmac

from portal.core import audit, clock
from portal.core.errors import NotAllowed
from principals.actors import Actor
from principals.models import Agent
from telemetry.engine.activity_batches import CLOCKS_DIFFER
from telemetry.engine.otel import reading, sums
from telemetry.engine.otel.mapping import Mapping, mapping_of
from telemetry.engine.otel.reading import Read, Span, Told
from telemetry.models import HarnessDay, HarnessReading
from telemetry.services.activity.days import oldest_day_kept
from telemetry.services.harness.choice import allowed_since

MOST_SESSIONS: Final = 200  # of an agent's harness on one day
MOST_PARTS: Final = 2000  # of a session in one minute
TOO_MANY: Final = "too_many"
_BILLION: Final = 10**9
_MINUTE_S: Final = 60
_BATCH: Final = 200
_WORDS: Final = {
    reading.OTHER_HARNESS: "are of another harness than the one this agent is registered with",
    reading.NO_COUNTER: "are no counters that only grow",
    reading.NO_NUMBER: "hold no number where one belongs",
    reading.TOO_OLD: "are older than what is taken: the last 30 days, and nothing before telemetry was agreed to",
    reading.FUTURE: "lie in the future: check the host's clock",
    TOO_MANY: f"are more than {MOST_PARTS} in a minute or of more than {MOST_SESSIONS} sessions on a day",
}


@dataclass(frozen=True, slots=True)
class Taken:
    """How many points or records were refused, and why, in words for whoever set the exporter up."""

    refused: int
    words: str


def expect_harness_telemetry(*, actor: Actor) -> Mapping:
    """Return what is known of the harness whose telemetry is taken from an actor, before a body is read.

    Errors: `NotAllowed`: nobody agreed to it, or it is not known what the harness emits.
    """
    agent = actor.agent
    if agent is None:
        raise NotAllowed("Only an agent tells this, of itself.", code="not_an_agent", remedy="Use an agent's token.")
    allowed_since(agent.owner)
    harness = mapping_of(agent.harness)
    if harness is None:
        raise NotAllowed(
            "It is not known here what this agent’s harness emits.", code="harness_emits_nothing_known",
            remedy="Turn its exporter off. A harness is added in telemetry/engine/otel/harnesses.toml.",
        )  # fmt: skip
    return harness


def record_metrics(*, actor: Actor, request: Any) -> Taken:
    """Record the metrics of an agent's own harness (`ExportMetricsServiceRequest`); the same again changes nothing.

    Errors: `NotAllowed`, as above.
    """
    return _record(actor, lambda *how: reading.read_metrics(request, *how))


def record_logs(*, actor: Actor, request: Any) -> Taken:
    """Record the events of an agent's own harness (`ExportLogsServiceRequest`), without those that hold a prompt.

    Errors: `NotAllowed`, as above.
    """
    return _record(actor, lambda *how: reading.read_logs(request, *how))


def _record(actor: Actor, read: Callable[[Mapping, Span, bytes], Read]) -> Taken:
    harness = expect_harness_telemetry(actor=actor)
    agent: Agent = actor.agent  # type: ignore[assignment]  # an agent is expected
    found = read(harness, _span(allowed_since(agent.owner)), _key_of(agent))
    with transaction.atomic():
        Agent.objects.select_for_update(no_key=True).get(pk=agent.pk)
        # Asked again, now that nobody can decline any more before this is stored.
        since_ns = _ns(allowed_since(agent.owner))
        _Store(actor, agent, found.refused).take(each for each in found.told if each.at_ns >= since_ns)
    return Taken(found.refused.total(), _explain(found.refused, harness))


def _span(since: datetime) -> Span:
    """Return what is taken: as old as readings are kept, not before it was agreed to, and hardly from the future."""
    oldest = clock.midnight(oldest_day_kept())
    return Span(_ns(max(since, oldest)), _ns(clock.now() + CLOCKS_DIFFER))


def _ns(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1000


def _key_of(agent: Agent) -> bytes:
    """Return the key of an agent's digests: the same session of two agents is not to be seen as one."""
    return salted_hmac("telemetry.harness", str(agent.pk), algorithm="sha256").digest()


def _explain(refused: Counter[str], harness: Mapping) -> str:
    """Say what was refused, and what to change. Nothing that was sent stands in it."""
    said = []
    if prompts := refused[reading.PROMPT]:
        said.append(f"{prompts} held prompts or contents, and were refused whole. {harness.remedy}")
    said += [f"{number} {_WORDS[reason]}." for reason, number in sorted(refused.items()) if reason in _WORDS]
    return " ".join(said)


class _Key(NamedTuple):
    session: str
    at_s: int
    source: str


@dataclass(slots=True)
class _Store:
    """Readings of one agent, in the caller's transaction and with its row locked."""

    actor: Actor
    agent: Agent
    refused: Counter[str]
    rows: dict[_Key, HarnessReading] = field(default_factory=dict)
    new: set[_Key] = field(default_factory=set)
    changed: set[_Key] = field(default_factory=set)
    sessions: dict[date, set[str]] = field(default_factory=dict)  # of each day, those of this body too
    # Of the days that change: the instants of the first and the last that was told.
    touched: dict[tuple[date, str], tuple[int, int]] = field(default_factory=dict)

    def take(self, told: Iterable[Told]) -> None:
        """Store what was told and mark its days."""
        sent = sorted(told, key=lambda each: each.at_ns)
        if not sent:
            return
        days = self._known_days(sent)
        self._load(sent)
        for each in sent:
            self._take_one(each, days)
        HarnessReading.objects.bulk_create([self.rows[key] for key in self.new], batch_size=_BATCH)
        again = [self.rows[key] for key in self.changed - self.new]
        HarnessReading.objects.bulk_update(again, ["parts"], batch_size=_BATCH)
        self._mark(days)

    def _known_days(self, sent: list[Told]) -> dict[date, set[str]]:
        first, last = _day(sent[0].at_ns), _day(sent[-1].at_ns)
        days: dict[date, set[str]] = {}
        known = HarnessDay.objects.filter(agent=self.agent, day__gte=first, day__lte=last)
        for day, session in known.values_list("day", "session_key"):
            days.setdefault(day, set()).add(session)
        return days

    def _load(self, sent: list[Told]) -> None:
        keys = {_key(each) for each in sent}
        at = [key.at_s for key in keys]
        known = HarnessReading.objects.filter(
            agent=self.agent, session_key__in={key.session for key in keys}, at__gte=min(at), at__lte=max(at)
        )
        self.rows = {_Key(row.session_key, int(row.at.timestamp()), row.source): row for row in known}

    def _take_one(self, told: Told, days: dict[date, set[str]]) -> None:
        key, day = _key(told), _day(told.at_ns)
        sessions = self.sessions.setdefault(day, set(days.get(day, ())))
        if told.session not in sessions and len(sessions) >= MOST_SESSIONS:
            self.refused[TOO_MANY] += 1
            return
        sessions.add(told.session)
        row = self.rows.get(key)
        if row is None:
            row = self.rows[key] = HarnessReading(
                agent=self.agent, session_key=told.session, source=told.source, at=key.at_s, parts={}
            )
            self.new.add(key)
        if len(row.parts) >= MOST_PARTS and told.key not in row.parts:
            self.refused[TOO_MANY] += 1
        elif sums.merge(row.parts, told):
            self.changed.add(key)
            at_s = told.at_ns // _BILLION
            first, last = self.touched.get((day, told.session), (at_s, at_s))
            self.touched[day, told.session] = (min(first, at_s), max(last, at_s))

    def _mark(self, days: dict[date, set[str]]) -> None:
        """Mark the days to be added up anew; of a cumulative series also those after it, which count on from it."""
        new = []
        for (day, session), (first, last) in self.touched.items():
            ours = HarnessDay.objects.filter(agent=self.agent, session_key=session)
            if session in days.get(day, ()):
                ours.filter(day=day).update(first=Least("first", first), last=Greatest("last", last))
            else:
                row = HarnessDay(agent=self.agent, day=day, session_key=session, first=first, last=last)
                row.harness = self.agent.harness
                new.append(row)
            ours.filter(day__gte=day).update(stamp=F("stamp") + 1, stale=True)
        HarnessDay.objects.bulk_create(new, batch_size=_BATCH)
        if new:  # an export comes every few seconds: one row of the audit for each day of a session says enough
            audit.record(
                actor=self.actor.ref, verb="harness_telemetry.begin", object_kind="agent", object_id=self.agent.pk,
                object_label=self.agent.name, lab_id=self.agent.lab_id,
                after={"session_days": len(new), "days": sorted({str(row.day) for row in new})},
            )  # fmt: skip


def _key(told: Told) -> _Key:
    at_s = told.at_ns // _BILLION
    if told.source == reading.CUMULATIVE:
        return _Key(told.session, int(clock.midnight(_day(told.at_ns)).timestamp()), told.source)
    return _Key(told.session, at_s - at_s % _MINUTE_S, told.source)


def _day(at_ns: int) -> date:
    return datetime.fromtimestamp(at_ns // _BILLION, UTC).date()
