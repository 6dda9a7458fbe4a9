"""What the Overview shows, part by part, each from the readings that the reports use."""

from typing import Any

from portal.dashboard import formats
from portal.dashboard.overview.scope import Asked, period_words
from principals.models import Agent, AgentSession, ClusterUser
from telemetry.engine import cells
from telemetry.figures import readings_of
from telemetry.models import Actor, RollupDay
from telemetry.selectors import Definition, HarnessLoad, Shares, Split
from telemetry.selectors.job_filters import OTHERS

MEASURES = (
    ("users", "People", "people"),
    ("submissions", "Submissions", "submissions"),
    ("core_s", "Core-hours", "core"),
    ("gpu_s", "GPU-hours", "gpu"),
)
HOUR_S = 3600
NUMBER_WORDS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine", 10: "ten"}


def amount(measure: str, value: int) -> float:
    """Return a measure in the unit people read: seconds become hours."""
    return value / HOUR_S if measure.endswith("_s") else value


def headline(asked: Asked) -> str:
    """Say the finding of the headline picture in a sentence."""
    shares = asked.readings.shares[asked.definition]
    of_people, of_jobs = shares.users.share(), shares.submissions.share()
    if of_people is None or of_jobs is None:
        return "No job was submitted in this period"
    if not of_people:
        return "No job was attributed to an agent"
    who = _one_in(of_people)
    return f"{who} runs agents. Together they submit {_portion(of_jobs)} of all jobs."


def _one_in(share: float) -> str:
    if share <= 0:
        return "Nobody"
    number = round(1 / share)
    return f"One person in {NUMBER_WORDS.get(number, formats.count(number))}" if number > 1 else "Nearly everybody"


def _portion(share: float) -> str:
    if 0.5 < share < 0.6:
        return "more than half"
    return formats.percent(share)


def share_rows(asked: Asked) -> list[dict[str, Any]]:
    """Return the rows of the headline picture; each number opens its jobs."""
    shares = asked.readings.shares[asked.definition]
    rows = []
    # The job list knows whose each job is, not which accounts had agents: only one definition can be opened there.
    opens = asked.definition is Definition.JOB
    for measure, label, _ in MEASURES:
        split: Split = getattr(shares, measure)
        if not split.total:
            continue  # `unknown_words` says that there is none
        agents_url = asked.jobs_url(actor=Actor.AGENT) if opens and measure != "users" else ""
        rows.append(
            {
                "label": label,
                "part": formats.short(amount(measure, split.agent)),
                "whole": formats.short(amount(measure, split.total)),
                "share": split.share(),
                "url": agents_url,
                "part_url": agents_url,
                "rest_url": asked.jobs_url(actor=OTHERS) if agents_url else "",
            }
        )
    return rows


def unknown_words(asked: Asked) -> str:
    """Say how much is not attributed, measure by measure, and of which there is none."""
    shares = asked.readings.shares[asked.definition]
    parts, absent = [], []
    for measure, label, _ in MEASURES:
        unknown = getattr(shares, measure).share(Actor.UNKNOWN)
        if unknown is None:
            absent.append(_in_a_sentence(label))
        else:
            parts.append(f"{formats.percent(unknown)} of {_in_a_sentence(label)}")
    said = f"Not attributed: {', '.join(parts)}." if parts else ""
    return f"{said} There are no {' and no '.join(absent)} in this period.".strip() if absent else said


def _in_a_sentence(label: str) -> str:
    return label if label.startswith("GPU") else label.lower()


def kpis(asked: Asked) -> list[dict[str, Any]]:
    """Return the key figures; the change is against as many days before."""
    now = asked.readings.shares[asked.definition]
    before = _before(asked)
    days = asked.readings.days
    found = []
    opens = asked.definition is Definition.JOB
    for measure, label in (("submissions", "submissions"), ("gpu_s", "GPU-hours")):
        split: Split = getattr(now, measure)
        share, earlier = split.share(), getattr(before, measure).share() if before else None
        found.append(
            {
                "label": f"Agents’ share of {label}",
                "value": formats.percent(share),
                "url": asked.jobs_url(actor=Actor.AGENT) if opens else "",
                "of": _of(measure, split) if split.total else f"no {label} in this period",
                "trend": [getattr(day, measure).share() or 0.0 for day in days],
                "change": formats.points(share - earlier) if share is not None and earlier is not None else "",
            }
        )
    return [*found, _registered(asked), _cancelled(asked), _short(asked)]


def _of(measure: str, split: Split) -> str:
    return f"{_whole(amount(measure, split.agent))} of {_whole(amount(measure, split.total))}"


def _before(asked: Asked) -> Shares | None:
    """Return the shares of as many days before; None where the log does not reach back to the first of them."""
    scope = asked.scope.within(asked.scope.period.previous())
    if not RollupDay.objects.filter(cluster=scope.cluster, day__lte=scope.period.first).exists():
        return None
    return readings_of(scope).shares[asked.definition]


def _whole(value: float) -> str:
    return formats.count(value, 0)


def _registered(asked: Asked) -> dict[str, Any]:
    scope = asked.scope
    seen = ClusterUser.objects.filter(cluster=scope.cluster).filter(
        pk__in=AgentSession.objects.filter(
            scope.period.meets_session, cluster=scope.cluster, kind=AgentSession.Kind.AGENT
        ).values("cluster_user")
    )
    registered = seen.filter(user__agents__status__in=[Agent.Status.ACTIVE, Agent.Status.SUSPENDED]).distinct().count()
    everybody = seen.count()
    return {
        "label": "Agent users who registered",
        "value": formats.percent(formats.share_of(registered, everybody)),
        "url": "",
        "of": f"{formats.count(registered)} of {formats.count(everybody)} with agent sessions"
        if everybody
        else "no agent session is known yet",
    }


def _cancelled(asked: Asked) -> dict[str, Any]:
    by_actor = asked.readings.by_actor
    return {
        "label": "Agents’ jobs that were cancelled",
        "value": formats.percent(by_actor[Actor.AGENT].cancelled_share),
        "url": asked.jobs_url(actor=Actor.AGENT, state="CANCELLED", by="end"),
        "of": _people(by_actor[Actor.AGENT].cancelled_share, by_actor[Actor.HUMAN].cancelled_share),
    }


def _short(asked: Asked) -> dict[str, Any]:
    runtimes = asked.readings.runtimes
    return {
        "label": "Agents’ jobs over within a minute",
        "value": formats.percent(runtimes[Actor.AGENT].share_within(60)),
        "url": asked.jobs_url(actor=Actor.AGENT, max_elapsed_s="60", by="end"),
        "of": _people(runtimes[Actor.AGENT].share_within(60), runtimes[Actor.HUMAN].share_within(60)),
    }


def _people(agents: float | None, people: float | None) -> str:
    """Return what a figure of agents is compared with, or say that there is nothing yet."""
    if agents is None:
        return "no job of an agent ended in this period"
    return "none of people’s ended" if people is None else f"people {formats.percent(people)}"


def harness_parts(asked: Asked) -> list[tuple[str, str, list[HarnessLoad]]]:
    """Return (slug, name, loads) a row; harnesses of fewer than five people are added up in one without a slug."""
    shown, rest = cells.withhold(
        asked.readings.harnesses, limit=20, people_in=lambda some: sum(load.users for load in some)
    )
    rows = [(load.harness, load.name, [load]) for load in shown]
    if rest:
        rows.append(("", "All others" if shown else "All harnesses", rest))
    return rows


def harness_note(asked: Asked) -> str:
    """Say which harnesses have no row of their own, and why."""
    rows = harness_parts(asked)
    if not rows:
        return ""
    slug, _, loads = rows[-1]
    if slug:
        return "All harnesses are shown"
    if len(rows) == 1:
        together = "shown together" if len(loads) > 1 else "shown without its name"
        return f"Of fewer than {cells.MIN_PEOPLE} people: {together}"
    number = f"{len(loads)} harness{'' if len(loads) == 1 else 'es'} in the last row"
    return f"{number}, so that none of fewer than {cells.MIN_PEOPLE} people stands alone"


def harness_rows(asked: Asked) -> list[dict[str, Any]]:
    """Return one row a harness: its part of agents' total, measure by measure."""
    loads = asked.readings.harnesses
    wholes = {measure: sum(getattr(load, measure) for load in loads) for measure, _, _ in MEASURES}
    return [
        {
            "name": name,
            "url": asked.jobs_url(actor=Actor.AGENT, harness=harness) if harness else "",
            "cells": [_harness_cell(some, measure, label, wholes[measure]) for measure, label, _ in MEASURES],
        }
        for harness, name, some in harness_parts(asked)
    ]


def _harness_cell(loads: list[HarnessLoad], measure: str, label: str, whole: int) -> dict[str, Any]:
    part = sum(getattr(load, measure) for load in loads)
    return {"label": label, "share": formats.share_of(part, whole), "amount": formats.short(amount(measure, part))}


def harness_title(asked: Asked) -> str:
    """Say which harness leads."""
    loads = asked.readings.harnesses
    if not loads:
        return "No agent submitted a job in this period"
    if not harness_parts(asked)[0][0]:
        return "Agents’ jobs by harness"  # whose name its few people would be known by
    if len(loads) == 1:
        return f"{loads[0].name} submits all of agents’ jobs"
    leads = all(max(loads, key=lambda load: getattr(load, measure)) is loads[0] for measure, _, _ in MEASURES)
    return f"{loads[0].name} leads every measure" if leads else f"{loads[0].name} submits most"


def lab_rows(asked: Asked) -> list[dict[str, Any]]:
    """Return the labs with most agents' submissions, and the rest in one row."""
    return [
        {
            "load": load,
            "url": asked.jobs_url(lab=load.key) if load.key else "",
            "agents_url": asked.jobs_url(lab=load.key, actor=Actor.AGENT) if load.key else "",
        }
        for load in asked.readings.labs.all_rows
    ]


def lab_title(asked: Asked) -> str:
    """Say how concentrated agents' jobs are."""
    loads = asked.readings.labs.all_rows
    whole = sum(load.agent.submissions for load in loads)
    running, needed = 0, 0
    for load in loads:
        running, needed = running + load.agent.submissions, needed + 1
        if whole and running * 2 >= whole:
            number = NUMBER_WORDS.get(needed, str(needed)).capitalize()
            return (
                f"{number} labs submit half of agents’ jobs" if needed > 1 else "One lab submits half of agents’ jobs"
            )
    return "Labs by agents’ submissions"


def week_words(asked: Asked) -> dict[str, str]:
    """Return the finding about working hours, and its two shares."""
    week = asked.readings.week
    agents, people = week.outside_share(Actor.AGENT), week.outside_share(Actor.HUMAN)
    more = agents is not None and people is not None and agents > people + 0.1
    said = [f"{formats.percent(agents)} of agents’ submissions fall outside it"] if agents is not None else []
    if people is not None:
        said.append(f"{formats.percent(people)} of people’s{'' if said else ' submissions fall outside it'}")
    return {
        "title": "Agents keep working through nights and weekends" if more else "When agents and people submit",
        "agents": formats.percent(agents),
        "people": formats.percent(people),
        "said": ", against ".join(said) or "no submission of an agent or a person is known yet",
    }


def deck(asked: Asked) -> dict[str, str]:
    """Return the facts of the page's context line."""
    totals = asked.readings.totals
    return {
        "cluster": asked.scope.cluster.name,
        "period": period_words(asked.scope.period),
        "people": "1 person" if totals.people == 1 else f"{formats.count(totals.people)} people",
        "jobs": formats.counted(totals.submissions, "job"),
        "jobs_url": asked.jobs_url(),
        "core_hours": formats.counted(totals.core_hours, "core-hour", formats.short),
        "gpu_hours": formats.counted(totals.gpu_hours, "GPU-hour", formats.short),
    }
