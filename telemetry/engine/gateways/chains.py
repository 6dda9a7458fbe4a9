"""Sessions behind a gateway: requests of one login and harness that are no more than half an hour apart."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

GAP_S: Final = 30 * 60


@dataclass(slots=True)
class Chain:
    """From the first request to the last, UTC epoch seconds; `known` are the ids of sessions that it takes in."""

    start_s: int
    end_s: int
    known: list[int] = field(default_factory=list)
    is_told: bool = False  # of requests that came just now, and not of what is known alone


def chain(seconds: Iterable[int], known: Sequence[tuple[int, int, int]] = ()) -> list[Chain]:
    """Join requests, and sessions that are known as (id, first, last), where they are no further apart than `GAP_S`.

    The order in which logs come changes nothing. Return those with a request of `seconds`; a chain's oldest session is
    the first of its `known`.
    """
    spans = [Chain(at_s, at_s, is_told=True) for at_s in set(seconds)]
    spans += [Chain(first_s, last_s, [pk]) for pk, first_s, last_s in known]
    found: list[Chain] = []
    for one in sorted(spans, key=lambda each: (each.start_s, not each.known)):
        last = found[-1] if found else None
        if last is None or one.start_s - last.end_s > GAP_S:
            found.append(one)
            continue
        last.end_s = max(last.end_s, one.end_s)
        last.known += one.known
        last.is_told |= one.is_told
    return [each for each in found if each.is_told]
