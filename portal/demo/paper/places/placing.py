"""Which session runs where, and the bodies of collectors parted by node and place accordingly."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Final
from uuid import UUID

from portal.demo.paper.activity.bodies import id_of
from portal.demo.paper.places import published
from portal.demo.paper.places.books import PlaceBooks
from portal.demo.paper.places.published import AGENT_HOST, JOB, LOGIN, SSH
from portal.demo.paper.plan import Plan
from portal.demo.paper.sessions import Span
from portal.demo.plan import AGENT
from portal.demo.sampling import shuffled

_LISTS: Final = ("sessions", "minutes", "submissions", "polling", "loops")


class Placement:
    """Place the agents of a plan, drawing from numbers of its own: what is planted besides stays as it is."""

    def __init__(self, plan: Plan, books: PlaceBooks) -> None:
        self._rng, self._books = Random(f"{plan.seed}:places"), books
        agents = [number for number, person in sorted(plan.people.items()) if person.kind == AGENT]
        self.of_person = dict(zip(agents, shuffled(self._rng, len(agents), published.PEOPLE), strict=True))
        self._spans = {id_of(number, span): (number, span) for number, span in enumerate(plan.spans)}
        self._runs: dict[str, UUID] = {}
        self._unknown: set[tuple[str, str, str]] = set()

    def of_span(self, span: Span | None) -> str:
        """Return the place of a session; a person's shell is on a login node."""
        return LOGIN if span is None or span.kind != AGENT else self.of_person[span.person]

    def split(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield a login node's body without what runs elsewhere, and then a body for each node where that runs."""
        parts: dict[str, dict[str, list[Any]]] = defaultdict(lambda: {name: [] for name in _LISTS})
        for name in _LISTS:
            for row in body[name]:
                told = self._spans.get(row["id"] if name == "sessions" else row["session"])
                parts[self._host_of(told, body["host"])][name].append(self._placed(name, row, told))
        places = {host: self._places_of(some) for host, some in parts.items()}
        for host in sorted(parts.keys() | {body["host"]}, key=lambda each: (each != body["host"], each)):
            told_of = body | {name: [] for name in _LISTS} | parts[host]
            if host != body["host"]:
                told_of |= {"host": host, "boot": f"boot-{host}", "run": str(self._run(host)), "study": ""}
                told_of["batch"] = str(UUID(int=self._rng.getrandbits(128), version=4))
            self._add_unknown(told_of, sorted(places.get(host, set()) - {LOGIN}))
            events = 3 * sum(row["counts"]["commands"] for row in told_of["minutes"])
            yield told_of | {"health": body["health"] | {"events": events}}

    def _host_of(self, told: tuple[int, Span] | None, host: str) -> str:
        if told is None:
            return host
        number, span = told
        place = self.of_span(span)
        if place == JOB:
            return f"holy7c{1 + number % published.NODES:04}"
        return f"agents{1 + span.person % published.AGENT_HOSTS}" if place == AGENT_HOST else host

    def _placed(self, name: str, row: dict[str, Any], told: tuple[int, Span] | None) -> dict[str, Any]:
        place = self.of_span(told[1]) if told else LOGIN
        if name == "minutes":
            self._books.note_commands(place, row["driver"], row["counts"]["commands"])
        if name != "sessions" or told is None:
            return row
        return row | {"place": place} | ({"job": published.FIRST_JOB + told[0]} if place == JOB else {})

    def _places_of(self, some: Mapping[str, list[Any]]) -> set[str]:
        return {row["place"] for row in some["sessions"] if row["place"] in (JOB, SSH, AGENT_HOST)}

    def _add_unknown(self, body: dict[str, Any], places: list[str]) -> None:
        """Let each place have commands that nobody is known to drive, once in the first minute of a watch."""
        if body["from"] == body["to"]:
            return
        for place in places:
            key = body["host"], body["from"], place
            if key in self._unknown:
                continue
            self._unknown.add(key)
            commands = self._rng.randrange(1, published.UNKNOWN_A_WATCH)
            self._books.note_commands(place, "unknown", commands)
            counts = {"commands": commands, "category:other": commands}
            body["minutes"].append(
                {"session": "", "driver": "unknown", "minute": body["from"], "counts": counts, "place": place}
            )

    def _run(self, host: str) -> UUID:
        if host not in self._runs:
            self._runs[host] = UUID(int=self._rng.getrandbits(128), version=4)
        return self._runs[host]
