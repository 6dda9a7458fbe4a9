"""Reads of trials: limits in force, budgets of a rolling day, and how they are used."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from policies.engine import trials as engine
from policies.models import TrialGrant, TrialPolicy, TrialRefusal
from policies.models.trials import TrialGrantQuerySet
from portal.core import clock
from principals.actors import Actor
from principals.models import Lab, User

WINDOW = timedelta(seconds=engine.WINDOW_S)
REASON_WORDS = {
    "too_long": "Longer than a trial may be",
    "too_many_gpus": "More GPUs than a trial may use",
    "too_many_nodes": "More nodes than a trial may use",
    "trials_spent": "Person’s trials spent",
    "gpu_minutes_spent": "Person’s GPU-hours spent",
    "lab_trials_spent": "Lab’s trials spent",
    "lab_gpu_minutes_spent": "Lab’s GPU-hours spent",
}


def policy_for(lab: Lab | None) -> TrialPolicy:
    """Return the limits in force for a lab: its own, else the facility's, else those that ship (not saved)."""
    return policies_for([lab.pk] if lab else [])[lab.pk if lab else None]


def policies_for(lab_ids: Iterable[int]) -> dict[int | None, TrialPolicy]:
    """Return the limits in force for each lab, in one query; under `None` those of the facility."""
    wanted = list(lab_ids)
    found = {row.lab_id: row for row in TrialPolicy.objects.filter(Q(lab=None) | Q(lab_id__in=wanted))}
    default = found.get(None) or TrialPolicy()
    return {None: default} | {pk: found.get(pk, default) for pk in wanted}


def usage_of(grants: TrialGrantQuerySet, now: datetime) -> list[engine.TrialUsage]:
    """Return the trials that still count at `now`, as the engine takes them."""
    rows = grants.charged().filter(granted_at__gt=now - WINDOW)
    return [
        engine.TrialUsage(granted_at_s=at.timestamp(), gpu_minutes=float(gpu_minutes))
        for at, gpu_minutes in rows.values_list("granted_at", "gpu_minutes")
    ]


@dataclass(frozen=True, slots=True)
class Budget:
    """What is used and left of a person's trial budget in a lab, now. `full_again` is when all of it is back."""

    lab: Lab
    policy: TrialPolicy
    trials_used: int
    gpu_minutes_used: float
    lab_trials_left: int
    lab_gpu_minutes_left: float
    returns_at: datetime | None  # the next amount
    full_again: datetime | None

    @property
    def trials_left(self) -> int:
        """Trials left to the person, the lab's budget counted."""
        return min(max(0, self.policy.person_trials - self.trials_used), self.lab_trials_left)

    @property
    def gpu_minutes_left(self) -> float:
        """GPU-minutes left to the person, the lab's budget counted."""
        return min(max(0.0, self.policy.person_gpu_minutes - self.gpu_minutes_used), self.lab_gpu_minutes_left)

    @property
    def full_trials_left(self) -> int:
        """GPU trials of the full length and one GPU that still fit."""
        return min(self.trials_left, int(self.gpu_minutes_left // self.policy.max_minutes))

    @property
    def lab_is_short(self) -> bool:
        """Whether the lab's budget leaves the person less than their own."""
        policy = self.policy
        return (
            self.lab_trials_left < policy.person_trials - self.trials_used
            or self.lab_gpu_minutes_left < policy.person_gpu_minutes - self.gpu_minutes_used
        )

    @property
    def gpu_hours_used(self) -> float:
        return self.gpu_minutes_used / 60

    @property
    def gpu_hours_allowed(self) -> float:
        return self.policy.person_gpu_minutes / 60


def trial_budget(user: User, lab: Lab, *, now: datetime | None = None) -> Budget:
    """Return a person's trial budget in a lab; all of their agents there share it. Three queries."""
    now = now or clock.now()
    policy = policy_for(lab)
    own = usage_of(TrialGrant.objects.filter(user=user, lab=lab), now)
    whole = usage_of(TrialGrant.objects.filter(lab=lab), now)
    back = sorted(row.returns_at_s for row in own)
    return Budget(
        lab=lab,
        policy=policy,
        trials_used=len(own),
        gpu_minutes_used=sum(row.gpu_minutes for row in own),
        lab_trials_left=max(0, policy.lab_trials - len(whole)),
        lab_gpu_minutes_left=max(0.0, policy.lab_gpu_minutes - sum(row.gpu_minutes for row in whole)),
        returns_at=datetime.fromtimestamp(back[0], now.tzinfo) if back else None,
        full_again=datetime.fromtimestamp(back[-1], now.tzinfo) if back else None,
    )


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """One line of the table of budgets: a lab, or a person in a lab."""

    lab: str
    title: str
    person: str
    people: int
    trials: int
    trials_allowed: int
    gpu_minutes: float
    gpu_minutes_allowed: int
    refused: int
    top_reason: str
    start_after_s: float | None  # median wait of its trials; None where no job of one is known

    @property
    def reason_words(self) -> str:
        return REASON_WORDS.get(self.top_reason, self.top_reason)

    @property
    def trials_label(self) -> str:
        return f"{self.trials} of {self.trials_allowed} trials"

    @property
    def gpu_label(self) -> str:
        return f"{self.gpu_hours:.1f} of {self.gpu_hours_allowed:.1f} GPU-hours"

    @property
    def gpu_hours(self) -> float:
        return self.gpu_minutes / 60

    @property
    def gpu_hours_allowed(self) -> float:
        return self.gpu_minutes_allowed / 60

    @property
    def share(self) -> float:
        """The fuller of the two budgets, 0 to 1 and beyond where limits were lowered."""
        pairs = ((self.trials, self.trials_allowed), (self.gpu_minutes, self.gpu_minutes_allowed))
        return max((used / allowed for used, allowed in pairs if allowed), default=0.0)


def budget_rows(actor: Actor, *, by: str, lab: str = "", now: datetime | None = None) -> list[BudgetRow]:
    """Return budgets of the rolling day by lab or by person, fullest first, as far as `actor` may see them.

    `by="lab"` gives labs whose every trial the actor may see; `by="person"` people in labs, with any use or refusal.
    """
    now = now or clock.now()
    grants = TrialGrant.objects.visible_to(actor).filter(granted_at__gt=now - WINDOW)
    refusals = TrialRefusal.objects.visible_to(actor).filter(at__gt=now - WINDOW)
    if lab:
        grants, refusals = grants.filter(lab__name=lab), refusals.filter(lab__name=lab)
    if by == "lab" and not actor.sees_facility:
        grants = grants.filter(lab_id__in=actor.visible_lab_ids)
        refusals = refusals.filter(lab_id__in=actor.visible_lab_ids)
    keys = ("lab_id",) if by == "lab" else ("lab_id", "user_id")
    return _rows(grants, refusals, keys)


def _rows(grants: TrialGrantQuerySet, refusals: QuerySet[TrialRefusal], keys: tuple[str, ...]) -> list[BudgetRow]:
    used = {
        tuple(row[key] for key in keys): row
        for row in grants.charged()
        .order_by()
        .values(*keys)
        .annotate(trials=Count("pk"), gpu=Sum("gpu_minutes"), people=Count("user", distinct=True))
    }
    waits = _waits(grants, keys)
    refused = _reasons(refusals, keys)
    found = list({*used, *refused})
    labs = Lab.objects.in_bulk({key[0] for key in found})
    people = User.objects.in_bulk({key[1] for key in found if len(key) > 1})
    limits = policies_for(labs)
    rows = [
        _row(
            labs[key[0]],
            people[key[1]].username if len(key) > 1 else "",
            limits[key[0]],
            used.get(key, {}),
            refused.get(key, {}),
            median(waits.get(key, [])),
        )
        for key in found
    ]
    return sorted(rows, key=lambda each: (-each.share, each.title, each.person))


def _row(
    lab: Lab, person: str, policy: TrialPolicy, used: dict[str, Any], codes: dict[str, int], wait_s: float | None
) -> BudgetRow:
    return BudgetRow(
        lab=lab.name,
        title=lab.title,
        person=person,
        people=used.get("people", 0),
        trials=used.get("trials", 0),
        trials_allowed=policy.person_trials if person else policy.lab_trials,
        gpu_minutes=float(used.get("gpu") or 0),
        gpu_minutes_allowed=policy.person_gpu_minutes if person else policy.lab_gpu_minutes,
        refused=sum(codes.values()),
        top_reason=max(codes, key=lambda code: (codes[code], code), default=""),
        start_after_s=wait_s,
    )


def _reasons(refusals: QuerySet[TrialRefusal], keys: tuple[str, ...]) -> dict[tuple[int, ...], dict[str, int]]:
    counted: dict[tuple[int, ...], dict[str, int]] = {}
    for row in refusals.order_by().values(*keys, "code").annotate(number=Count("pk")):
        counted.setdefault(tuple(row[key] for key in keys), {})[row["code"]] = row["number"]
    return counted


def _waits(grants: TrialGrantQuerySet, keys: tuple[str, ...]) -> dict[tuple[int, ...], list[float]]:
    waits: dict[tuple[int, ...], list[float]] = {}
    started = grants.filter(job__start__isnull=False)
    for row in started.order_by().values(*keys, "job__start", "job__submit"):
        wait = (row["job__start"] - row["job__submit"]).total_seconds()
        waits.setdefault(tuple(row[key] for key in keys), []).append(wait)
    return waits


def median(values: list[float]) -> float | None:
    """Return the middle value; `None` of nothing."""
    ordered = sorted(values)
    if not ordered:
        return None
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def labs_out_of_budget(user: Any) -> int | None:
    """Count the labs whose trial budget is spent now, for the rail; only staff can change that."""
    if not getattr(user, "is_research_computing", False):
        return None
    rows = (
        TrialGrant.objects.charged()
        .filter(granted_at__gt=clock.now() - WINDOW)
        .order_by()
        .values("lab_id")
        .annotate(trials=Count("pk"), gpu=Sum("gpu_minutes"))
    )
    used = {row["lab_id"]: row for row in rows}
    limits = policies_for(used)
    full = (
        row["trials"] >= limits[pk].lab_trials or (row["gpu"] or 0) >= limits[pk].lab_gpu_minutes > 0
        for pk, row in used.items()
    )
    return sum(map(int, full))
