"""The panel of GPU use that the Overview and My lab share: the four-way split, what is stranded, what is not known."""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from portal.dashboard import formats
from portal.dashboard.components.library import width
from telemetry.engine.gpu_use import SPLIT_WORDS, STRANDED_WORDS, Quadrant
from telemetry.figures import Readings
from telemetry.figures.gpu import coverage
from telemetry.figures.load import LABELS
from telemetry.models import Actor, JobGpuUse
from telemetry.selectors import GpuSplit, GpuSum, ratio
from telemetry.selectors.job_filters import MEASURED, UNMEASURED

QUADRANTS: Final = {one.value: str(one.label) for one in JobGpuUse.Quadrant}
STRENGTHS: Final = ("1", ".68", ".4", ".16")  # of the split's parts, as the report draws them
KEYS: Final = tuple(zip(QUADRANTS.values(), STRENGTHS, strict=True))
_FILLS: Final = {"": "f-ink", Actor.AGENT: "f-agent", Actor.HUMAN: "f-human", Actor.UNKNOWN: "f-mute"}
_ALL: Final = "All jobs"
_NOBODY: Final = "Nobody measured what jobs did with their GPUs"
_LIGHT: Final = "use neither compute nor memory of their GPUs heavily"
SUB: Final = f"Jobs with GPUs that ended after having started; shares are of those that were measured. {SPLIT_WORDS}"


@dataclass(frozen=True, slots=True)
class GpuPanel:
    """What the panel says; `rows` one an actor, and one of all where there are several."""

    title: str
    rows: list[dict[str, Any]]
    foot: str
    keys = KEYS
    sub = SUB


def gpu_panel(readings: Readings) -> GpuPanel | None:
    """Return the panel of a scope; None where no job with GPUs ended in the period. One query."""
    split = readings.gpus
    whole = split.of()
    if not whole.jobs:
        return None
    actors = [actor for actor in LABELS if split.of(actor=actor).jobs]
    rows = [_row(readings, split, actor, LABELS[actor]) for actor in actors]
    if len(rows) > 1:
        rows.append(_row(readings, split, "", _ALL))
    return GpuPanel(_title(split), rows, f"{coverage(whole)} Stranded: {STRANDED_WORDS}")


def _title(split: GpuSplit) -> str:
    """Say the finding: how many are heavy on neither."""
    agents, people, everybody = (split.share(Quadrant.LOW, actor) for actor in (Actor.AGENT, Actor.HUMAN, ""))
    if everybody is None:
        return _NOBODY
    if agents is None or people is None:
        return f"{formats.percent(everybody, 0)} of measured jobs {_LIGHT}"
    return f"{formats.percent(agents, 0)} of agents’ jobs {_LIGHT}, {formats.percent(people, 0)} of people’s"


def _row(readings: Readings, split: GpuSplit, actor: str, label: str) -> dict[str, Any]:
    own = split.of(actor=actor)
    shares = {quadrant: split.share(quadrant, actor) for quadrant in QUADRANTS}
    words = ", ".join(f"{QUADRANTS[key].lower()} {formats.percent(share)}" for key, share in shares.items())
    return {
        "kind": actor, "label": label, "fill": _FILLS[actor], "parts": _parts(list(shares.values())),
        "bar_label": f"{label}: {words}",
        "jobs": formats.counted(own.jobs, "job"),
        "cells": [
            _cell(QUADRANTS[key], share, split.of(actor=actor, quadrant=key).jobs, _url(readings, actor, key))
            for key, share in shares.items()
        ],
        "unmeasured": _cell(
            "No reading", ratio(own.unmeasured_jobs, own.jobs), own.unmeasured_jobs, _url(readings, actor, UNMEASURED)
        ),
        "stranded": _stranded(own, _url(readings, actor, MEASURED)),
    }  # fmt: skip


def _parts(shares: list[float | None]) -> list[dict[str, str]]:
    """Return the parts of a bar, one after the other; none where nothing was measured."""
    at, parts = 0.0, []
    for share, strength in zip(shares, STRENGTHS, strict=True):
        if share:
            parts.append({"x": width(at), "width": width(share), "strength": strength})
        at += share or 0.0
    return parts


def _cell(label: str, share: float | None, jobs: int, url: str) -> dict[str, str]:
    return {"label": label, "share": formats.percent(share), "sub": formats.counted(jobs, "job"), "url": url}


def _stranded(own: GpuSum, url: str) -> dict[str, str]:
    hours = formats.count(own.stranded_hours, 0) if own.measured_jobs else formats.ABSENT
    return {"label": "Stranded hours", "hours": hours, "share": formats.percent(own.stranded_share), "url": url}


def _url(readings: Readings, actor: str, gpu_use: str) -> str:
    """Return the job list's address of the jobs behind a number; by their end, as they count here."""
    own = {"actor": actor} if actor else {}
    return f"/jobs/?{urlencode(readings.scope.query | {'gpu_use': gpu_use} | own)}"


def gpu_table(readings: Readings) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the panel's numbers as columns and rows for an export: always every actor."""
    split = readings.gpus
    rows = []
    for actor in LABELS:
        own = split.of(actor=actor)
        counts = {f"{key}_jobs": split.of(actor=actor, quadrant=key).jobs for key in QUADRANTS}
        hours = {name: getattr(own, name) for name in ("held_hours", "measured_hours", "stranded_hours")}
        rows.append({"actor": actor, "jobs": own.jobs, **counts, "unmeasured_jobs": own.unmeasured_jobs, **hours})
    return list(rows[0]), rows
