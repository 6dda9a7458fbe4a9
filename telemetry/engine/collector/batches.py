"""What a collector sends: bodies of `POST /api/v1/ingest/activity`, each whole in itself."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from telemetry.engine.collector.logins import SshDay
from telemetry.engine.collector.processes import Place
from telemetry.engine.collector.sessions import Session, id_of
from telemetry.engine.collector.watch import Health, Parts

MOST_BYTES: Final = 1 << 20  # of a body, as the portal takes it
_ROOM: Final = 1024  # of it for what stands around the parts


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sends: the cluster and the node, as they call themselves; this start of the node and of the collector."""

    cluster: str
    host: str
    boot: str
    run: str
    collector: str
    study: str = ""


class Batch(NamedTuple):
    """A body with the id that makes sending it twice change nothing. `events` were looked at for it."""

    id: str
    events: int
    body: bytes


def make(
    parts: Parts, *, sender: Sender, mode: str, login: Callable[[int], str], new_id: Callable[[], str]
) -> Iterator[Batch]:
    """Yield the batches that parts come to: one, or as many as keep each below `MOST_BYTES`.

    `login` names a person by uid, `new_id` makes ids that are never made again.
    """
    lists = _lists(parts, login)
    health = parts.health
    for piece in _pieces(lists):
        told = {
            "cluster": sender.cluster, "host": sender.host, "boot": sender.boot, "run": sender.run, "batch": new_id(),
            "collector": sender.collector, "mode": mode, "study": sender.study,
            "from": iso(parts.from_s), "to": iso(parts.to_s), **piece, "health": _health(health),
        }  # fmt: skip
        yield Batch(str(told["batch"]), health.events, _text(told))
        # What was seen is told once, however many bodies it takes.
        health = replace(
            Health(), memory_bytes=health.memory_bytes, processes=health.processes, clock_ahead_s=health.clock_ahead_s
        )


def iso(at_s: float) -> str:
    """Return a time as the portal reads it, in whole seconds."""
    return datetime.fromtimestamp(int(at_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _lists(parts: Parts, login: Callable[[int], str]) -> dict[str, list[dict[str, Any]]]:
    return {
        "sessions": [
            {
                "id": id_of(each.root), "kind": each.kind, "harness": each.harness, "user": login(each.uid),
                "start": iso(each.start_s), "last": iso(each.last_s),
                "end": None if each.end_s is None else iso(each.end_s), **_place(each.where.place),
                **({"job": each.where.job} if each.where.job else {}), **_evidence(each),
            }
            for each in parts.sessions
        ],
        "minutes": [
            {
                "session": each.session, "driver": each.driver, "minute": iso(each.minute_s), "counts": each.counts,
                **({} if each.session else _place(each.place)),
            }
            for each in parts.minutes
        ],
        "submissions": [{"session": each.session, "at": iso(each.at_s)} for each in parts.submissions],
        "polling": [
            {
                "session": id_of(each.root), "first": iso(each.first_s), "last": iso(each.last_s),
                "queries": each.queries, "period_s": round(each.period_s, 3),
            }
            for each in parts.polling
        ],
        "loops": [
            {"session": id_of(each.root), "submitted": iso(each.submitted_s), "again": iso(each.again_s)}
            for each in parts.loops
        ],
        **({"ssh": [_ssh(each) for each in parts.ssh]} if parts.ssh else {}),
    }  # fmt: skip


def _evidence(session: Session) -> dict[str, str]:
    told = {"evidence": session.evidence, "agent": session.agent}
    return {name: text for name, text in told.items() if text}


def _ssh(day: SshDay) -> dict[str, Any]:
    return {
        "day": datetime.fromtimestamp(day.day_s, UTC).date().isoformat(), "connections": day.connections,
        "untold": day.untold, "keys": day.keys, "clients": day.clients, "pairs": day.pairs,
    }  # fmt: skip


def _place(place: Place) -> dict[str, str]:
    return {} if place == "login" else {"place": place}


def _health(health: Health) -> dict[str, float]:
    return {
        "events": health.events, "lost": health.lost, "argv_missed": health.argv_missed, "vanished": health.vanished,
        "sampled_share": health.sampled_share, "cpu_s": round(health.cpu_s, 3), "memory_bytes": health.memory_bytes,
        "processes": health.processes, "clock_ahead_s": health.clock_ahead_s,
    }  # fmt: skip


def _pieces(lists: dict[str, list[dict[str, Any]]]) -> Iterator[dict[str, Sequence[dict[str, Any]]]]:
    """Cut lists into such as fit into a body, in their order: sessions come before their minutes."""
    piece: dict[str, list[dict[str, Any]]] = {name: [] for name in lists}
    size = 0
    for name, rows in lists.items():
        for row in rows:
            length = len(_text(row)) + 1
            if size + length > MOST_BYTES - _ROOM:
                yield dict(piece)
                piece, size = {each: [] for each in lists}, 0
            piece[name].append(row)
            size += length
    yield dict(piece)


def _text(told: dict[str, Any]) -> bytes:
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
