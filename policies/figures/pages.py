"""Named figures of `policies`: what each is, over whom, in which unit, and where its rows are."""

from collections.abc import Callable
from dataclasses import dataclass

from django.urls import reverse

from policies import selectors
from policies.models import ExtensionRelease
from principals.actors import Actor


@dataclass(frozen=True, slots=True)
class Figure:
    """A named number: what it counts, of what, in which unit, how it is read and where its rows are.

    `read` gives None where it cannot be measured yet.
    """

    name: str
    label: str
    definition: str
    population: str
    unit: str
    read: Callable[[Actor], float | None]
    url: Callable[[], str]


_SEEN = "trials of the last 24 hours that the viewer may see"


def _trial_list(query: str) -> Callable[[], str]:
    return lambda: f"{reverse('trial-requests')}?{query}"


def _waiting(actor: Actor) -> float | None:
    rows = ExtensionRelease.objects.visible_to(actor)
    return rows.filter(state=ExtensionRelease.State.QUEUED).count()


def _budget_used(actor: Actor) -> float | None:
    rows = selectors.budget_rows(actor, by="lab")
    allowed = sum(row.trials_allowed for row in rows)
    return sum(row.trials for row in rows) / allowed if allowed else None


FIGURES = {
    figure.name: figure
    for figure in (
        Figure("trials_granted", "Trials granted", "Trials granted and not given back", _SEEN, "trials",
               lambda actor: selectors.trial_day(actor).granted, _trial_list("outcome=granted&since=day")),
        Figure("trials_refused", "Trials refused", "Requests for a trial that were refused", _SEEN, "requests",
               lambda actor: selectors.trial_day(actor).refused, _trial_list("outcome=refused&since=day")),
        Figure("trial_start_after", "Trials start after", "Median time from submission to start of trials’ jobs",
               "trials whose job is known", "s",
               lambda actor: selectors.trial_day(actor).start_after_s, _trial_list("state=used&since=day")),
        Figure("trial_budget_used", "Trial budget used",
               "Trials used of those allowed, over labs that used or were refused any",
               _SEEN, "share", _budget_used, lambda: reverse("trials")),
        Figure("extensions_waiting", "Extensions waiting",
               "Releases that wait for a review", "releases the viewer may see", "releases",
               _waiting, lambda: f"{reverse('extensions')}?state=queued"),
    )
}  # fmt: skip
