"""Reminding people of a version that they have not accepted for their agents: once a stage, in the way they chose."""

from collections.abc import Mapping
from typing import Final

from django.db import transaction
from django.urls import reverse

from policies import selectors
from policies.selectors import Due, Stage
from portal.core import clock
from principals.models import Agent
from principals.services.notices.telling import local_time
from principals.services.notices.writing import notify

_NAMED: Final = 5
_TITLES: Final = {
    Stage.PUBLISHED: "AUP {version} is new: accept it for {agents} by {end}",
    Stage.WEEK_LEFT: "AUP {version} waits for {agents} until {end}",
    Stage.DAY_LEFT: "AUP {version}: {agents} will be held from {end} on",
    Stage.HELD: "Held until you accept AUP {version}: {agents}",
}


def remind_of_aup() -> int:
    """Tell everybody who owns agents without the newest version, once for each stage of its grace; return how many."""
    told = 0
    due = selectors.people_due(clock.now())
    names = dict(Agent.objects.filter(pk__in={pk for one in due for pk in one.agent_ids}).values_list("pk", "name"))
    for one in due:
        kind = "hold_placed" if one.stage is Stage.HELD else "aup_due"
        with transaction.atomic():
            told += notify(
                people=[one.user_id], kind=kind, key=one.key, url=reverse("aup"), title=_title(one, names),
                text=f"It is for {', '.join(names[pk] for pk in one.agent_ids if pk in names)}.\n"
                "One click on the page accepts it for all of them; their jobs in Slurm go on either way.",
            )  # fmt: skip
    return told


def _title(one: Due, names: Mapping[int, str]) -> str:
    known = [names[pk] for pk in one.agent_ids if pk in names]
    more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    agents = ", ".join(known[:_NAMED]) + more
    return _TITLES[one.stage].format(version=one.version, agents=agents, end=local_time(one.holds_from))
