"""Risk tier of an agent: a sum of signed reasons that anyone can add up.

The points are house policy, as printed on an agent's page: 3 points make it elevated, 6 restricted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum


class Tier(Enum):
    """Risk tier, from light to strict."""

    STANDARD = "standard"
    ELEVATED = "elevated"
    RESTRICTED = "restricted"


class Autonomy(Enum):
    """How much an agent does alone."""

    SUPERVISED = "supervised"
    UNATTENDED = "unattended"


ELEVATED_FROM = 3
RESTRICTED_FROM = 6
MANY_HOSTS = 3
MANY_ACCOUNTS = 3
LONG_LIFE_DAYS = 184
SEVERITY_POINTS = {"low": 0, "medium": 1, "high": 2, "critical": 4}


@dataclass(frozen=True, slots=True)
class RiskInputs:
    """What is known of an agent when its tier is decided."""

    autonomy: Autonomy
    uses_gpu: bool = False
    any_partition: bool = False  # none is named, so GPUs are not left out
    hosts: int = 1
    accounts: int = 0  # Slurm accounts that it names; 0: its lab's, whichever
    hours: str = ""  # in words; empty: any hour
    life_days: int = 0  # from its registration to its end
    extensions: tuple[str, ...] = ()
    open_findings: Mapping[str, int] = field(default_factory=dict)  # severity to number
    sandboxed: bool = False


@dataclass(frozen=True, slots=True)
class Reason:
    """One signed part of the score; a reason of 0 explains why nothing was added."""

    points: int
    text: str


@dataclass(frozen=True, slots=True)
class RiskAssessment:
    """A tier with every reason for it; the points of the reasons sum to the score."""

    tier: Tier
    score: int
    reasons: tuple[Reason, ...]

    @property
    def sentence(self) -> str:
        """State the score and the span of the tier."""
        unit = "point" if self.score == 1 else "points"
        spans = {
            Tier.STANDARD: f"Standard is under {ELEVATED_FROM}",
            Tier.ELEVATED: f"Elevated is {ELEVATED_FROM} to {RESTRICTED_FROM - 1}",
            Tier.RESTRICTED: f"Restricted is {RESTRICTED_FROM} or more",
        }
        return f"{str(self.score).replace('-', '−')} {unit}: {spans[self.tier]}."


def max_token_life_days(tier: Tier, by_tier: Sequence[int]) -> int:
    """Give the longest life of a token, in days; `by_tier`: what the site set, from the lightest tier on."""
    return by_tier[list(Tier).index(tier)]


def tier_of(score: int) -> Tier:
    """Give the tier a score falls in."""
    if score >= RESTRICTED_FROM:
        return Tier.RESTRICTED
    return Tier.ELEVATED if score >= ELEVATED_FROM else Tier.STANDARD


def _autonomy_reason(autonomy: Autonomy) -> Reason:
    if autonomy is Autonomy.UNATTENDED:
        return Reason(2, "Runs unattended: it submits and waits with nobody watching")
    return Reason(0, "Supervised; unattended would add 2")


def _declared_reasons(inputs: RiskInputs) -> list[Reason]:
    """Weigh what a registration declares beside the autonomy."""
    unattended = inputs.autonomy is Autonomy.UNATTENDED
    checks = (
        (inputs.uses_gpu, 1, "May submit to GPU partitions"),
        (inputs.any_partition and not inputs.uses_gpu, 1, "Names no partition, so it may submit to those with GPUs"),
        (inputs.hosts >= MANY_HOSTS, 1, f"Its tokens work from {inputs.hosts} hosts"),
        (inputs.accounts >= MANY_ACCOUNTS, 1, f"May charge {inputs.accounts} Slurm accounts"),
        (unattended and inputs.life_days > LONG_LIFE_DAYS, 1, "Unattended for more than half a year before a renewal"),
        (unattended and bool(inputs.hours), 0, f"Works only {inputs.hours}"),
    )
    return [Reason(points, text) for applies, points, text in checks if applies]


def _extension_reason(names: tuple[str, ...]) -> Reason:
    if len(names) == 1:
        return Reason(1, f"Runs one extension, {names[0]}")
    points = 2 if len(names) > 3 else 1
    return Reason(points, f"Runs {len(names)} extensions: {', '.join(names)}")


def _finding_reasons(counts: Mapping[str, int]) -> list[Reason]:
    unknown = set(counts) - set(SEVERITY_POINTS)
    if unknown:
        raise ValueError(f"Unknown severity: {', '.join(sorted(unknown))}.")
    reasons = []
    for severity, points in SEVERITY_POINTS.items():
        number = counts.get(severity, 0)
        if number > 0:
            noun = "finding" if number == 1 else "findings"
            reasons.append(Reason(points, f"{number} open {severity} {noun}"))
    return reasons


def assess_risk(inputs: RiskInputs) -> RiskAssessment:
    """Assess the risk tier of an agent.

    Raises ``ValueError`` for a severity that is not low, medium, high or critical. More open findings of
    one severity do not add more: a flood of small findings must not restrict an agent by itself.
    """
    reasons = [_autonomy_reason(inputs.autonomy)]
    reasons.extend(_declared_reasons(inputs))
    if inputs.extensions:
        reasons.append(_extension_reason(inputs.extensions))
    reasons.extend(_finding_reasons(inputs.open_findings))
    if inputs.sandboxed:
        reasons.append(Reason(-1, "Sandboxed on login nodes"))
    score = sum(reason.points for reason in reasons)
    return RiskAssessment(tier_of(score), score, tuple(reasons))
