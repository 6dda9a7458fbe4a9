"""Decide whether a trial may run: a pure function of the request, the limits and what was used.

Budgets run over a rolling day, so that they come back trial by trial, 24 hours after each was granted. The
person's budget is shared by all of their agents and lies inside the lab's.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import partial

WINDOW_S = 86_400


@dataclass(frozen=True, slots=True)
class TrialLimits:
    """The limits of a trial policy: sizes of one trial and budgets of a rolling day."""

    max_minutes: int = 15
    max_gpus: int = 1
    max_nodes: int = 1
    person_trials: int = 30
    person_gpu_minutes: float = 360
    lab_trials: int = 120
    lab_gpu_minutes: float = 1440


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """One trial asked for; it is charged its whole walltime."""

    minutes: int
    gpus: int = 0
    nodes: int = 1

    @property
    def gpu_minutes(self) -> float:
        """GPU-minutes it may use at most."""
        return float(self.minutes * self.gpus)


@dataclass(frozen=True, slots=True)
class TrialUsage:
    """Trials granted earlier, at a moment in seconds since the epoch."""

    granted_at_s: float
    trials: int = 1
    gpu_minutes: float = 0.0

    @property
    def returns_at_s(self) -> float:
        """The moment this usage leaves the window."""
        return self.granted_at_s + WINDOW_S


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a trial was refused, and what would make it pass."""

    code: str
    sentence: str
    remedy: str
    value: float
    limit: float


@dataclass(frozen=True, slots=True)
class Remaining:
    """What is left of each budget after the decision."""

    person_trials: int
    person_gpu_minutes: float
    lab_trials: int
    lab_gpu_minutes: float


@dataclass(frozen=True, slots=True)
class Decision:
    """A grant, or a refusal with every reason.

    ``returns_at_s`` is when the same request would pass if nothing else is granted; ``None`` when it is
    granted or when waiting does not help.
    """

    granted: bool
    reasons: tuple[Reason, ...]
    remaining: Remaining
    returns_at_s: float | None


@dataclass(frozen=True, slots=True)
class _Budget:
    """One budget at one moment: what is used, asked, allowed, and when amounts come back."""

    code: str
    noun: str
    owner: str
    is_gpu: bool  # counts GPU-minutes, otherwise trials
    limit: float
    asked: float
    returns: tuple[tuple[float, float], ...]  # (moment, amount), soonest first

    def of(self, request: TrialRequest) -> "_Budget":
        """Give the same budget, asked by another request."""
        return replace(self, asked=request.gpu_minutes if self.is_gpu else 1.0)

    @property
    def scale(self) -> float:
        """Units shown per unit counted: GPU-minutes are shown as hours."""
        return 1 / 60 if self.is_gpu else 1.0

    @property
    def used(self) -> float:
        return sum(amount for _, amount in self.returns)

    @property
    def left(self) -> float:
        return max(0.0, self.limit - self.used)

    @property
    def is_short(self) -> bool:
        return self.asked > 0 and self.used + self.asked > self.limit

    def fits_at(self) -> tuple[float, float] | None:
        """Give the moment a request that is short fits, and how much is back by then; ``None`` for never."""
        used, back = self.used, 0.0
        for moment, amount in self.returns:
            back += amount
            if used - back + self.asked <= self.limit:
                return moment, back
        return None


def _number(amount: float) -> str:
    return f"{amount:.2f}".rstrip("0").rstrip(".")


def _moment(at_s: float, now_s: float, tz: tzinfo) -> str:
    """Write a moment as people read it: the time, and the day when it is not today."""
    at, now = datetime.fromtimestamp(at_s, tz), datetime.fromtimestamp(now_s, tz)
    if at.second or at.microsecond:
        at = datetime.fromtimestamp((at_s // 60 + 1) * 60, tz)  # never promise a minute too early
    day = "" if at.date() == now.date() else f" on {at.day} {at:%b}"
    zone = " UTC" if tz is UTC else ""
    return f"{at:%H:%M}{zone}{day}"


def _budgets(
    request: TrialRequest, limits: TrialLimits, person: Sequence[TrialUsage], lab: Sequence[TrialUsage]
) -> tuple[_Budget, ...]:
    def budget(code: str, rows: Sequence[TrialUsage], owner: str, limit: float, *, gpu: bool) -> _Budget:
        amounts = ((row.returns_at_s, row.gpu_minutes if gpu else float(row.trials)) for row in rows)
        return _Budget(
            code=code,
            noun="trial GPU-hours" if gpu else "trials",
            owner=owner,
            is_gpu=gpu,
            limit=limit,
            asked=request.gpu_minutes if gpu else 1.0,
            returns=tuple(sorted(amounts)),
        )

    return (
        budget("trials_spent", person, "", limits.person_trials, gpu=False),
        budget("gpu_minutes_spent", person, "", limits.person_gpu_minutes, gpu=True),
        budget("lab_trials_spent", lab, "the lab’s ", limits.lab_trials, gpu=False),
        budget("lab_gpu_minutes_spent", lab, "the lab’s ", limits.lab_gpu_minutes, gpu=True),
    )


def _size_reasons(request: TrialRequest, limits: TrialLimits) -> list[Reason]:
    sizes = (
        ("too_long", request.minutes, limits.max_minutes, "minute"),
        ("too_many_gpus", request.gpus, limits.max_gpus, "GPU"),
        ("too_many_nodes", request.nodes, limits.max_nodes, "node"),
    )
    reasons = []
    for code, value, limit, unit in sizes:
        if value > limit:
            units = unit if limit == 1 else f"{unit}s"
            sentence = f"A trial may use {limit} {units}; this one asks for {value}."
            remedy = f"Ask for {limit} {units} or fewer, or submit an ordinary job."
            reasons.append(Reason(code, sentence, remedy, value, limit))
    return reasons


def _longest(request: TrialRequest, limits: TrialLimits, budgets: Sequence[_Budget]) -> int:
    """Give the minutes of the longest trial, otherwise the same, that all limits grant now; 0 where none is."""

    def is_refused(minutes: int) -> bool:
        shorter = replace(request, minutes=minutes)
        return any(budget.of(shorter).is_short for budget in budgets)

    if request.gpus > limits.max_gpus or request.nodes > limits.max_nodes:
        return 0
    # What is short for one length is short for every longer one.
    return bisect_left(range(1, min(request.minutes, limits.max_minutes) + 1), True, key=is_refused)


def _budget_reason(
    budget: _Budget, request: TrialRequest, *, longest: int, returns_at_s: float | None, now_s: float, tz: tzinfo
) -> Reason:
    scale = budget.scale
    spent, limit = _number(budget.used * scale), _number(budget.limit * scale)
    head = f"{spent} of {budget.owner}{limit} {budget.noun} are used."
    fits = budget.fits_at()
    if fits is None:
        sentence = f"{head} This trial asks for {_number(budget.asked * scale)}, more than a whole day’s budget."
    else:
        verb = "comes" if fits[1] * scale == 1 else "come"
        sentence = f"{head} {_number(fits[1] * scale)} {verb} back at {_moment(fits[0], now_s, tz)}."
        shortest = budget.of(replace(request, minutes=1))
        if budget.is_gpu and shortest.is_short and shortest.fits_at() == fits:
            sentence += " Shorter trials do not help until then."
    if returns_at_s is not None:
        remedy = f"Ask again at {_moment(returns_at_s, now_s, tz)}, or submit an ordinary job."
    else:
        remedy = "Waiting alone does not help: ask for a smaller trial or submit an ordinary job."
    if longest:
        remedy = f"A trial of {longest} min fits now. {remedy}"
    return Reason(budget.code, sentence, remedy, budget.used + budget.asked, budget.limit)


def _active(rows: Iterable[TrialUsage], now_s: float) -> list[TrialUsage]:
    return [row for row in rows if row.returns_at_s > now_s]


def _remaining(budgets: Sequence[_Budget], *, granted: bool) -> Remaining:
    left = [max(0.0, each.left - (each.asked if granted else 0.0)) for each in budgets]
    return Remaining(int(left[0]), left[1], int(left[2]), left[3])


def decide_trial(
    request: TrialRequest,
    limits: TrialLimits,
    *,
    person_usage: Iterable[TrialUsage],
    lab_usage: Iterable[TrialUsage],
    now_s: float,
    tz: tzinfo = UTC,
) -> Decision:
    """Decide on a trial.

    ``lab_usage`` holds every member's usage, the person's own included; rows older than a day are ignored.
    ``tz`` is the zone the sentences are written in. Raises ``ValueError`` for a request of no minutes or no
    nodes, or negative GPUs.
    """
    if request.minutes < 1 or request.nodes < 1 or request.gpus < 0:
        raise ValueError("A trial needs at least one minute and one node, and no negative GPUs.")
    budgets = _budgets(request, limits, _active(person_usage, now_s), _active(lab_usage, now_s))
    sizes = _size_reasons(request, limits)
    short = [budget for budget in budgets if budget.is_short]
    moments = [budget.fits_at() for budget in short]
    waiting = [moment[0] for moment in moments if moment is not None]
    helps = bool(waiting) and not sizes and len(waiting) == len(short)
    returns_at_s = max(waiting) if helps else None
    explain = partial(
        _budget_reason, request=request, longest=_longest(request, limits, budgets) if short else 0,
        returns_at_s=returns_at_s, now_s=now_s, tz=tz,
    )  # fmt: skip
    reasons = (*sizes, *map(explain, short))
    granted = not reasons
    return Decision(granted, reasons, _remaining(budgets, granted=granted), returns_at_s)
