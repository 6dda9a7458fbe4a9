"""The numbers behind the Overview's pictures, as tables: what "Show the numbers" opens and what is exported."""

from collections.abc import Callable, Iterable
from typing import Any

from portal.dashboard.gpu_use import gpu_table
from portal.dashboard.overview.parts import MEASURES, amount, harness_parts
from portal.dashboard.overview.scope import Asked
from telemetry.models import Actor

Table = tuple[list[str], list[dict[str, Any]]]
ACTORS = (Actor.AGENT, Actor.HUMAN, Actor.UNKNOWN)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def shares(asked: Asked) -> Table:
    """The four measures in three parts, with agents' share."""
    found = asked.readings.shares[asked.definition]
    rows = []
    for measure, label, _ in MEASURES:
        split = getattr(found, measure)
        parts = {actor.value: amount(measure, split.of(actor)) for actor in ACTORS}
        rows.append({"measure": label, **parts, "agent_share": split.share(), "unknown_share": split.share("unknown")})
    return ["measure", "agent", "human", "unknown", "agent_share", "unknown_share"], rows


def hour_of_week(asked: Asked) -> Table:
    """Submissions by weekday and hour, facility time."""
    week = asked.readings.week
    rows = [
        {"day": name, "hour": hour, **{actor.value: week.counts[actor][day][hour] for actor in ACTORS}}
        for day, name in enumerate(DAYS)
        for hour in range(24)
    ]
    return ["day", "hour", "agent", "human", "unknown"], rows


def days(asked: Asked) -> Table:
    """Submissions, core-hours and GPU-hours by UTC day and actor."""
    columns = ["day"]
    for measure, _, word in MEASURES[1:]:
        columns += [f"{word}_{actor.value}" for actor in ACTORS if measure]
    rows = []
    for day in asked.readings.days:
        row: dict[str, Any] = {"day": day.day}
        for measure, _, word in MEASURES[1:]:
            split = getattr(day, measure)
            row |= {f"{word}_{actor.value}": amount(measure, split.of(actor)) for actor in ACTORS}
        rows.append(row)
    return columns, rows


def harnesses(asked: Asked) -> Table:
    """Agents' jobs by harness; harnesses of fewer than five people are in the rest."""
    rows = [
        {"harness": harness, "name": name}
        | {word: amount(measure, sum(getattr(load, measure) for load in loads)) for measure, _, word in MEASURES}
        for harness, name, loads in harness_parts(asked)
    ]
    return ["harness", "name", *(word for _, _, word in MEASURES)], rows


def labs(asked: Asked) -> Table:
    """Labs by agents' submissions; labs of fewer than five people are in the rest."""
    rows = [
        {
            "lab": load.key, "title": load.title, "agent_people": load.agent_people_shown if load.key else None,
            "agent_jobs": load.agent.submissions, "jobs": load.total.submissions, "agent_share": load.share,
            "agent_core_hours": load.agent.core_hours, "agent_gpu_hours": load.agent.gpu_hours,
            "agent_cancelled_share": load.agent.cancelled_share,
        }
        for load in asked.readings.labs.all_rows
    ]  # fmt: skip
    columns = ["lab", "title", "agent_people", "agent_jobs", "jobs", "agent_share", "agent_core_hours",
               "agent_gpu_hours", "agent_cancelled_share"]  # fmt: skip
    return columns, rows


def runtimes(asked: Asked) -> Table:
    """Share of ended jobs that ran at most so many seconds, by actor."""
    curves = {actor.value: dict(asked.readings.runtimes[actor].cumulative()) for actor in ACTORS}
    edges: Iterable[int] = sorted({edge for curve in curves.values() for edge in curve})
    rows = [{"seconds": edge} | {name: curve.get(edge) for name, curve in curves.items()} for edge in edges]
    return ["seconds", "agent", "human", "unknown"], rows


def gpu_use(asked: Asked) -> Table:
    """Jobs with GPUs by actor and by what they used of them, those without a reading too."""
    return gpu_table(asked.readings)


TABLES: dict[str, Callable[[Asked], Table]] = {
    "shares": shares,
    "hour-of-week": hour_of_week,
    "days": days,
    "harnesses": harnesses,
    "labs": labs,
    "runtimes": runtimes,
    "gpu-use": gpu_use,
}
