"""How many cores and GPUs jobs hold, so that agents, people and harnesses come to their shares of the hours."""

from collections.abc import Mapping
from random import Random
from typing import Final

from portal.demo.paper import published
from portal.demo.paper.acts import Act
from portal.demo.paper.drawing import Lot, mean_of, sizes_with_mean
from portal.demo.plan import AGENT, HUMAN, UNKNOWN

_CORES: Final = (1, 2, 4, 8, 16, 32)
_NEVER_RAN: Final = {AGENT: 0.05, HUMAN: 0.01, UNKNOWN: 0.015}  # about: cancelled before they started
_HOUR_S: Final = 3600


class Levels:
    """Choose cores and GPUs for acts; by actor, and for agents by harness.

    `by_hand` is the share of agents' accounts' jobs that their owners submit: the paper's shares are by account.
    """

    def __init__(self, rng: Random, by_hand: float) -> None:
        self._rng, self._by_hand = rng, by_hand
        self._cores: dict[tuple[str, str], Lot[int]] = {}
        self._has_gpus: dict[tuple[str, str], Lot[bool]] = {}
        self._gpus = {actor: Lot(published.GPUS_A_JOB, rng) for actor in published.ACTORS}

    def cpus(self, act: Act) -> int:
        """Choose the cores of each job of an act."""
        return self._lot_of_cores(act).draw(act.size)

    def gpus(self, act: Act, *, few: bool) -> int:
        """Choose the GPUs of each job of an act; none of very many jobs."""
        if self._lot_of_gpus(act).draw(act.size, None if few else (False,)):
            return self._gpus[act.actor].draw(act.size)
        return 0

    def take(self, act: Act, cpus: int, gpus: int) -> None:
        """Count an act that has what another had."""
        self._lot_of_cores(act).take(cpus, act.size)
        self._lot_of_gpus(act).take(gpus > 0, act.size)
        if gpus:
            self._gpus[act.actor].take(gpus, act.size)

    def _lot_of_cores(self, act: Act) -> Lot[int]:
        key = _key_of(act)
        if key not in self._cores:
            hours = self._hours_a_job(key, published.CORE_HOURS, "core_hours")
            self._cores[key] = Lot(sizes_with_mean(_CORES, hours / _run_hours(act.actor)), self._rng)
        return self._cores[key]

    def _lot_of_gpus(self, act: Act) -> Lot[bool]:
        key = _key_of(act)
        if key not in self._has_gpus:
            hours = self._hours_a_job(key, published.GPU_HOURS, "gpu_hours")
            share = hours / _run_hours(act.actor) / _mean(published.GPUS_A_JOB)
            self._has_gpus[key] = Lot({True: share, False: 1 - share}, self._rng)
        return self._has_gpus[key]

    def _hours_a_job(self, key: tuple[str, str], total: int, measure: str) -> float:
        """Return the hours that a job of an actor and harness should hold, in the mean."""
        actor, harness = key
        agents, unseen = _ratio(published.AGENT_SHARES, measure), _ratio(published.UNSEEN, measure)
        jobs = 1 - published.AGENT_SHARES.submissions - published.UNSEEN.submissions
        people = (1 - _share(published.AGENT_SHARES, measure) - _share(published.UNSEEN, measure)) / jobs
        by_agents = (agents - self._by_hand * people) / (1 - self._by_hand)
        mean = {AGENT: by_agents, HUMAN: people, UNKNOWN: unseen}[actor] * total / published.JOBS
        return mean * _ratio(published.HARNESSES[harness], measure) if harness else mean


def _key_of(act: Act) -> tuple[str, str]:
    return act.actor, act.harness if act.actor == AGENT else ""


def _share(shares: published.Shares, measure: str) -> float:
    return float(getattr(shares, measure))


def _ratio(shares: published.Shares, measure: str) -> float:
    return _share(shares, measure) / shares.submissions


def _run_hours(actor: str) -> float:
    return _RUN_HOURS[actor] * (1 - _NEVER_RAN[actor])


def _mean(weights: Mapping[int, float]) -> float:
    return sum(value * weight for value, weight in weights.items()) / sum(weights.values())


_RUN_HOURS: Final = {actor: mean_of(curve) / _HOUR_S for actor, curve in published.RUN_TIMES.items()}
