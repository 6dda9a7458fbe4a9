"""Which commands a driver issues how often, each kind with the measures it counts for besides itself."""

from collections.abc import Mapping
from itertools import accumulate
from random import Random
from typing import Final, TypeAlias

from portal.demo.paper.activity import published
from portal.demo.paper.published import QUERIES_PER_JOB
from portal.demo.plan import AGENT, HUMAN

Kind: TypeAlias = tuple[str, ...]
QUERY: Final[Kind] = ("category:slurm", "scheduler_query")
SUBMISSION: Final[Kind] = ("category:slurm", "submission")
_WALKS: Final[dict[Kind, float]] = {
    ("category:text", "tool:find", "tree_walk"): 0.2, ("category:text", "tree_walk"): 0.8,
}  # fmt: skip
_SEARCH: Final[Kind] = ("category:text", "recursive_search")


class Mix:
    """Draw kinds of commands by weight."""

    def __init__(self, weights: Mapping[Kind, float]) -> None:
        self._kinds, self._cumulative = list(weights), list(accumulate(weights.values()))

    def draw(self, rng: Random, number: int) -> list[Kind]:
        """Draw so many commands."""
        return rng.choices(self._kinds, cum_weights=self._cumulative, k=number)


def mixes(*, commands: Mapping[str, float], jobs: Mapping[str, int], users: Mapping[str, int]) -> dict[str, Mix]:
    """Return the mix of each driver, given about how many commands are coming, for how many jobs, of how many users.

    Errors: `ValueError` where the paper's ratios would need more commands than there are.
    """
    people = {
        "walks": published.WALKS_OF_PEOPLE * commands[HUMAN] / users[HUMAN],
        "searches": published.SEARCHES_OF_PEOPLE * commands[HUMAN] / users[HUMAN],
    }
    found = {}
    for driver in published.DRIVERS:
        times = (published.WALKS_RATIO, published.SEARCHES_RATIO) if driver == AGENT else (1.0, 1.0)
        walks = people["walks"] * times[0] * users[driver]
        weights: dict[Kind, float] = {kind: part * walks for kind, part in _WALKS.items()}
        weights[_SEARCH] = people["searches"] * times[1] * users[driver]
        weights[QUERY] = QUERIES_PER_JOB[driver] * jobs[driver]
        for tool, number in published.TOOLS[driver].items():
            weights |= _tool(tool, number * jobs[driver] / 100)
        rest = commands[driver] - sum(weights.values())
        if rest <= 0:
            raise ValueError(f"{sum(weights.values()):,.0f} of {commands[driver]:,.0f} commands of {driver} are given")
        found[driver] = Mix(
            weights | {(f"category:{name}",): rest * part for name, part in published.REST[driver].items()}
        )
    return found


def _tool(tool: str, number: float) -> dict[Kind, float]:
    name = f"tool:{tool}"
    if tool == "vim":
        return {("category:editors", name, "edit"): number}
    if tool == "sed":  # a third changes files in place
        return {("category:text", name): number * 2 / 3, ("category:text", name, "edit"): number / 3}
    return {("category:text", name): number}
