"""Trials that a kill switch withdraws: read from the holds in force, so that its end gives back exactly what was."""

from collections.abc import Iterable

from policies.models import TrialGrant
from portal.core import clock
from principals import selectors as principal_selectors
from principals.models import Hold


def mark_withdrawn(trials: Iterable[TrialGrant]) -> list[TrialGrant]:
    """Set `withdrawn` of the trials of a page that wait for their job while a switch stops their agent: one query.

    What they were charged stays charged: else the budget would be overspent once the switch ends.
    """
    listed, now = list(trials), clock.now()
    waiting = [trial for trial in listed if trial.agent and trial.state == "granted" and trial.valid_until > now]
    agents = {trial.agent.pk: trial.agent for trial in waiting if trial.agent}
    holds = principal_selectors.holds_on_agents(agents.values()) if agents else {}
    for trial in waiting:
        switches = (hold for hold in holds[trial.agent_id or 0] if hold.kind == Hold.Kind.KILL_SWITCH)
        trial.withdrawn = next(switches, None)
    return listed
