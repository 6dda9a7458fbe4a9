"""Figures of the report that are made of trials (paper §IV-A, §IV-B)."""

from collections.abc import Callable
from typing import Final
from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse

from policies.engine import trial_abuse
from policies.selectors import trial_period as selectors
from telemetry.engine.cells import LEFT_OUT, enough
from telemetry.engine.medians import middle_of
from telemetry.figures import Column, Figure, Measured, Readings, Row, Section, Unit
from telemetry.selectors import Scope, ratio

LIMIT: Final = "A job without a receipt in a comment is a trial’s by its QoS, the oldest first: some may be mistaken."
NEEDS: Final = "trials whose jobs are known"


def _trials(what: str) -> Callable[[Scope], str]:
    """Return what leads to the trials whose jobs `started` or `ended` in a scope."""

    def link(scope: Scope) -> str:
        query = {"state": "used", "cluster": scope.cluster.name, what: scope.period.name}
        return f"{reverse('trial-requests')}?{urlencode(query)}"

    return link


def _wait(readings: Readings) -> Measured:
    scope = readings.scope
    if not selectors.has_any(scope):
        return Measured(None, needs=NEEDS)
    columns = (
        Column("value", "Median", Unit.SECONDS), Column("low", "95 % from", Unit.SECONDS),
        Column("high", "to", Unit.SECONDS), Column("trials", "Trials", Unit.JOBS),
        Column("people", "People", Unit.PEOPLE),
    )  # fmt: skip
    waits = selectors.trial_waits(scope)
    people = len({one.person for one in waits})
    if not enough(people):
        return Measured(None, columns, note=LEFT_OUT)
    middle = middle_of(one.wait_s for one in waits)
    row = Row("trials", "Trials", (middle.median, middle.low, middle.high, middle.number, people))
    return Measured(middle.median, columns, (row,))


def _abuse(readings: Readings) -> Measured:
    scope, limit = readings.scope, settings.TRIAL_ABUSE_LIMIT
    criterion = "No share is agreed" if limit is None else f"At most {limit * 100:g} % of trials"
    if not selectors.has_any(scope):
        return Measured(None, needs=NEEDS, criterion=criterion)
    columns = (
        Column("share", "Of trials", Unit.SHARE), Column("trials", "Trials", Unit.JOBS),
        Column("people", "People", Unit.PEOPLE),
    )  # fmt: skip
    runs = selectors.trial_runs(scope)
    found = trial_abuse.find_abuse(runs)
    everybody = enough(len({run.person for run in runs}))

    def row(key: str, label: str, places: frozenset[int]) -> Row:
        people = len({runs[place].person for place in places})
        shown = everybody and enough(people)
        return Row(key, label, (ratio(len(places), len(runs)), len(places), people) if shown else (None, None, None))

    whole = row("any", "Any sign", found.any)
    parts = [
        row("larger", "Larger than what was granted", found.larger),
        row("chained", "One of a chain", found.chained),
    ]
    hidden = any(None in each.values[1:] for each in (whole, *parts))
    if hidden:  # else the one that is left out could be had from the others
        parts = [Row(each.key, each.label, (None,) * len(columns)) for each in parts]
    share = ratio(len(found.any), len(runs))
    return Measured(
        whole.values[0], columns, (whole, *parts), note=LEFT_OUT if hidden else "", criterion=criterion,
        is_met=None if limit is None or share is None else share <= limit,
    )  # fmt: skip


REPORT: Final = [
    Figure(
        "acceptance-trial-abuse", Section.ACCEPTANCE, "Trials that look abused",
        "Trials whose job was larger than what was granted, or that are one of "
        f"{trial_abuse.CHAIN} and more of the same person, lab, job name and folder that each used "
        f"{trial_abuse.FULL:.0%} of the time granted and began within {trial_abuse.PAUSE_S // 60} minutes of the end "
        "of the one before.",
        "trials whose job ended in the period", Unit.SHARE, _abuse, facility_only=True, link=_trials("ended"),
        limit="Signs for a person to look at, no proof: long loops of compiling and testing look like it.",
    ),
    Figure(
        "trial-wait", Section.SCHEDULING, "How soon trials start",
        "Median time from submission to start of trials’ jobs, with the bounds of its 95 % confidence interval.",
        "trials whose job started in the period", Unit.SECONDS, _wait, facility_only=True, limit=LIMIT,
        link=_trials("started"),
    ),
]  # fmt: skip
