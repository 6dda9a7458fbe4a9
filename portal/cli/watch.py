"""What `gatehouse wait` knows of the jobs it waits for, and what of it is new. Pure: no clock, no network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from telemetry.engine.slurm.errors import FieldError
from telemetry.engine.slurm.job_ids import JobId, parse_job_id
from telemetry.engine.slurm.values import ENDED_STATES
from telemetry.engine.transitions import ARRAY, ENDED, SUBMITTED, describe_change, describe_outcome
from telemetry.engine.waiting import (
    MAY_RETURN,
    RETURNS_WITHIN_S,
    Record,
    Standing,
    describe_counts,
    exit_status,
    is_part,
    pick,
    stand,
)

MOST_TOPICS = 100  # that the portal lets one connection name
EVENTS, PORTAL, SACCT = "events", "portal", "sacct"


@dataclass
class Waited:
    """One of those that are waited for. `record_id` and `submit_s` are of its one record, where it has but one."""

    text: str
    asked: JobId
    cluster: str = ""
    state: str = ""  # "": nobody knows of it yet
    counts: dict[str, int] = field(default_factory=dict)
    is_over: bool = False
    status: int | None = None
    record_id: str = ""
    submit_s: int = 0
    seq: int = 0  # of the last event that moved it


class Change(NamedTuple):
    """Something new: of what, in words, from where, and all that was told of it."""

    waited: Waited
    text: str
    source: str
    details: Mapping[str, Any]


class Watch:
    """Takes what the portal and sacct say, in any order and more than once, and returns what of it is new.

    `ask_at` is when the portal is to be asked how things stand, on the caller's clock; None: not before long.
    """

    def __init__(self, asked: Mapping[str, JobId], *, cluster: str = "", any_is_enough: bool = False) -> None:
        self.waited = [Waited(text, job_id, cluster) for text, job_id in asked.items()]
        self.any_is_enough = any_is_enough
        self.ask_at: float | None = None
        self._seq = 0  # what was told up to here is in what the portal said of the present

    @property
    def unknown(self) -> list[Waited]:
        """Those of which nobody has told anything."""
        return [each for each in self.waited if not each.state]

    @property
    def cluster(self) -> str:
        """The cluster, where all are on one that is known."""
        names = {each.cluster for each in self.waited}
        return names.pop() if len(names) == 1 else ""

    @property
    def topics(self) -> str:
        """What tells of all that is not over, and of no other job; "" where that is not known."""
        alone = [each for each in self.waited if not each.is_over]
        is_sure = all(each.record_id.isdecimal() and each.cluster for each in alone)
        is_sure &= len(alone) <= MOST_TOPICS
        return ",".join(f"job:{each.cluster}:{each.record_id}" for each in alone) if is_sure else ""

    @property
    def seq(self) -> int:
        """The event up to which what the portal said of the present holds."""
        return self._seq

    @property
    def status(self) -> int | None:
        """The exit status of the wait, once it is over: that of the first one that is, or the highest of all."""
        over = [each.status or 0 for each in self.waited if each.is_over]
        if self.any_is_enough:
            return over[0] if over else None
        return max(over) if len(over) == len(self.waited) else None

    def take_standing(self, answer: Mapping[str, Any]) -> list[Change]:
        """Take how the portal says that things stand (`GET /jobs/standing`)."""
        self._seq = max(self._seq, answer["seq"])
        changes: list[Change] = []
        by_text = {each.text: each for each in self.waited}
        for told in answer["items"]:
            waited = by_text.get(told["asked"])
            if waited is None or not told["known"] or waited.is_over:
                continue
            if waited.seq > answer["seq"]:  # read before what an event has told since
                continue
            job = told["job"] or {}
            waited.cluster = told["cluster"]
            if job and told["over"] and _seconds(job["submit"]) < waited.submit_s:
                continue  # an older job of that number
            is_one = sum(told["counts"].values()) == 1 and bool(job)
            if is_one and waited.asked.is_plain:  # one task that is known is not the whole array
                is_one = parse_job_id(job["job_id"]).is_plain
            waited.record_id = job["job_id"] if is_one else ""
            waited.submit_s = _seconds(job["submit"]) if is_one else 0
            text = _say_job(told, job) if is_one else _say_several(told, job)
            standing = Standing(told["state"], told["over"], told["exit_status"], told["counts"], None)
            changes += _move(waited, standing, text, PORTAL, job)
        return changes

    def take_records(self, records: Sequence[Record], *, now_s: int) -> list[Change]:
        """Take what accounting says."""
        changes: list[Change] = []
        for waited in self.waited:
            own = pick(waited.asked, records)
            standing = stand(own, now_s=now_s)
            if standing is None or waited.is_over:
                continue
            waited.record_id = own[0].job_id if len(own) == 1 and own[0].tasks == 1 else ""
            waited.submit_s = own[0].submit_s if waited.record_id else 0
            shown = own[0] if waited.record_id else standing.worst
            text = _say_record(own[0]) if waited.record_id else describe_counts(standing.counts)
            changes += _move(waited, standing, text, SACCT, shown._asdict() if shown else {})
        return changes

    def take_event(self, told: Mapping[str, Any], *, now: float) -> list[Change]:
        """Take one event of the stream. What it does not say in full makes `ask_at` due."""
        payload = told["payload"]
        try:
            job_id = parse_job_id(str(payload["job_id"]))
        except (KeyError, FieldError):
            return []
        if told["seq"] <= self._seq or not str(told["name"]).startswith("job."):
            return []
        cluster = str(payload.get("cluster", "")).lower()
        changes: list[Change] = []
        for waited in self.waited:
            is_array = told["name"] == ARRAY and waited.asked.job == job_id.job
            is_its = is_array or is_part(waited.asked, job_id)
            if is_its and not waited.is_over and waited.cluster.lower() in ("", cluster):
                changes += self._hear(waited, told, now, is_array=is_array)
        return changes

    def _hear(self, waited: Waited, told: Mapping[str, Any], now: float, *, is_array: bool) -> list[Change]:
        payload = told["payload"]
        if is_array and waited.asked.is_plain and waited.state:
            waited.seq = told["seq"]
            return self._follow_array(waited, payload, now)
        if not is_array and waited.record_id == payload["job_id"]:
            waited.seq = told["seq"]
            return self._follow(waited, told["name"], payload, now)
        self._ask(now)  # of several, or the first that is heard of it
        return []

    def _follow(self, waited: Waited, name: str, payload: Mapping[str, Any], now: float) -> list[Change]:
        submit_s = _seconds(payload["submit"])
        is_same = submit_s == waited.submit_s
        if submit_s < waited.submit_s or (is_same and (name == SUBMITTED or payload["state"] == waited.state)):
            return []
        state = payload["state"]
        has_ended = state in ENDED_STATES
        is_over = has_ended and state not in MAY_RETURN
        if has_ended and not is_over:
            self._ask(now + RETURNS_WITHIN_S + 1)
        status = exit_status(state, payload["exit_code"] or 0, payload["exit_signal"] or 0) if is_over else None
        waited.submit_s = submit_s
        standing = Standing(state, is_over, status, {state: 1}, None)
        return _move(waited, standing, _say_event(payload, has_ended=has_ended), EVENTS, payload)

    def _follow_array(self, waited: Waited, payload: Mapping[str, Any], now: float) -> list[Change]:
        if payload["over"]:  # the last word is the portal's: a task may have been put back, which counts do not say
            self._ask(now)
            return []
        standing = Standing(payload["state"], False, None, payload["counts"], None)
        return _move(waited, standing, describe_counts(payload["counts"]), EVENTS, payload)

    def _ask(self, at: float) -> None:
        self.ask_at = at if self.ask_at is None else min(at, self.ask_at)


def _move(waited: Waited, standing: Standing, text: str, source: str, details: Mapping[str, Any]) -> list[Change]:
    before, waited.state = (waited.state, waited.counts, waited.is_over), standing.state
    waited.counts, waited.is_over, waited.status = dict(standing.counts), standing.is_over, standing.status
    if before == (waited.state, waited.counts, waited.is_over):
        return []
    return [Change(waited, text, source, details)]


def _say_event(payload: Mapping[str, Any], *, has_ended: bool) -> str:
    """Say a change, with what whoever waits needs next."""
    nodes = payload.get("node_list")
    said = [payload["text"] + (f" ({nodes})" if nodes and not has_ended else ""), payload.get("waits_for") or ""]
    if has_ended:
        said += [f"{name} {payload[name]}" for name in ("stdout", "stderr") if payload.get(name)]
    return "; ".join(filter(None, [*said, payload.get("hint")]))


def _say_job(told: Mapping[str, Any], job: Mapping[str, Any]) -> str:
    if not told["over"]:
        return f"{job['outcome']} ({job['reason']})" if job["reason"] not in ("", "None") else str(job["outcome"])
    return describe_change(ENDED, outcome=job["outcome"], elapsed_s=job["elapsed_s"], nodes=0, cpus=0, gpus=0)


def _say_several(told: Mapping[str, Any], job: Mapping[str, Any]) -> str:
    counts = describe_counts(told["counts"])
    return f"{counts}; worst {job['job_id']}: {job['outcome']}" if told["exit_status"] and job else counts


def _say_record(record: Record) -> str:
    return describe_outcome(record.state, record.exit_code, record.exit_signal)


def _seconds(written: str) -> int:
    return int(datetime.fromisoformat(written).timestamp())
