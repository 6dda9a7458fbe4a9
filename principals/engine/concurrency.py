"""How many sessions a person may have on one login node: what is warned of, and what is refused."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limit:
    """The site's number; 0 is none. Where it does not bind, more are warned of and let in."""

    number: int
    binds: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of one more session; all empty where nothing is."""

    warning: str = ""
    refusal: str = ""
    remedy: str = ""


def judge(limit: Limit, *, declared: int, seen: int, host: str) -> Verdict:
    """Judge one more session on a node where so many are checked in and so many were seen by a collector.

    A session that a collector saw counts, checked in or not; the new one may be among those.
    """
    number = max(declared + 1, seen)
    if limit.number <= 0 or number < limit.number:
        return Verdict()
    facts = f"{declared} checked in and {seen} seen on {host}; the site’s limit for a person there is {limit.number}"
    remedy = "End another session there, or work on another node or in a job."
    if number == limit.number:
        more = "One more is refused." if limit.binds else "One more is above it."
        return Verdict(warning=f"{facts}. {more}", remedy=remedy) if number > 1 else Verdict()
    if limit.binds:
        return Verdict(refusal=f"This would be one too many: {facts}.", remedy=remedy)
    return Verdict(warning=f"This is above the limit: {facts}.", remedy=remedy)


def judge_all(limits: Iterable[Limit], *, declared: int, seen: int, host: str) -> Verdict:
    """Judge it by several limits, smallest first: the first that refuses says so, else the first that warns."""
    said = [judge(limit, declared=declared, seen=seen, host=host) for limit in limits]
    refused = next((verdict for verdict in said if verdict.refusal), None)
    return refused or next((verdict for verdict in said if verdict.warning), Verdict())
