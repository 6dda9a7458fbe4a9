"""Where the report says what was planted, and how near it must come: the closed loop's table."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isclose
from typing import Any, Final

ACTORS: Final = ("agent", "human", "unknown")
HARNESSES: Final = ("claude-code", "codex", "cursor", "copilot")
MEASURES: Final = {
    "users": "people", "submissions": "submissions", "core_hours": "core-hours", "gpu_hours": "GPU-hours",
}  # fmt: skip
_HARNESS_COLUMNS: Final = {
    "users": "users", "submissions": "submissions", "core_hours": "core_s", "gpu_hours": "gpu_s",
}  # fmt: skip
_DAY_S: Final = 86_400
FEWEST: Final = 5
SHARE, MEDIAN, RATIO, AMOUNT = "share", "median", "ratio", "amount"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a planted number stands: its path in the books, and a cell of the report. `per` is of its unit in ours."""

    planted: tuple[str, ...]
    kind: str
    figure: str
    row: str
    column: str
    per: float = 1.0

    @property
    def name(self) -> str:
        return ".".join(self.planted)

    def holds(self, planted: float, said: float) -> bool:
        """Say whether the report recovers it: shares within 0.1 points, medians 2 %, ratios 3 %, amounts exactly."""
        if self.kind == SHARE:
            return abs(said - planted) <= 0.001
        return isclose(said, planted, rel_tol={MEDIAN: 0.02, RATIO: 0.03, AMOUNT: 1e-9}[self.kind])


def places() -> Iterator[Place]:
    """Yield every planted number that a figure measures today."""
    yield from _loads()
    for actor in ACTORS:
        yield from _behaviour(actor)
    for name in ("test", "gpu", "shared", "bigmem"):
        yield Place(("partitions", name, "agent"), AMOUNT, "partitions", name, "agent_submissions")
        yield Place(("partitions", name, "all"), AMOUNT, "partitions", name, "submissions")
    for who, row in (("agent", "agent"), ("human", "interactive")):
        yield Place(("session_age_median_days", who), MEDIAN, "session-age", row, "median", _DAY_S)
        yield Place(("sessions", who), AMOUNT, "session-age", row, "sessions")
        yield Place(("session_people", who), AMOUNT, "session-age", row, "people")
    for quadrant in ("both", "compute", "memory", "low"):
        yield Place(("gpu_quadrants", quadrant), SHARE, "gpu-utilisation", quadrant, "share")
    yield from _failures()
    yield from _commands()
    yield from _places()
    for row in ("command", "submit_line", "script", "template", "application", "work_dir"):
        yield Place(("alike", row), AMOUNT, "similar-jobs", row, "jobs")


def _loads() -> Iterator[Place]:
    for measure, title in MEASURES.items():
        for actor in ACTORS:
            for key, definition in (("by_account", "account"), ("by_job", "job")):
                figure = f"share-{title}-{definition}"
                yield Place((key, actor, measure), AMOUNT, figure, actor, "amount")
                yield Place((f"shares_{key}", actor, measure), SHARE, figure, actor, "share")
        for harness in HARNESSES:
            yield Place(("harnesses", harness, measure), AMOUNT, "harnesses", harness, _HARNESS_COLUMNS[measure])
    for actor in ACTORS:
        yield Place(("queries_per_job", actor), RATIO, "queries-per-job", actor, "value")


def _behaviour(actor: str) -> Iterator[Place]:
    def at(name: str, kind: str, figure: str, column: str = "value") -> Place:
        return Place(("behaviour", actor, name), kind, figure, actor, column)

    yield at("outside_office_hours", SHARE, "outside-working-hours")
    yield at("ended", AMOUNT, "cancelled", "jobs")
    yield at("ran", AMOUNT, "runtime-median", "jobs")
    yield at("cancelled", SHARE, "cancelled")
    yield at("within_a_minute", SHARE, "runtime-one-minute")
    yield at("within_five_minutes", SHARE, "runtime-five-minutes")
    yield at("run_time_median_s", MEDIAN, "runtime-median")
    yield at("cancellations", AMOUNT, "cancel-gap", "cancellations")
    yield at("after_cancel_median_s", MEDIAN, "cancel-gap")
    for minutes in ("10", "30", "60", "180"):
        path = ("behaviour", actor, "cancelled_again_within", minutes)
        yield Place(path, SHARE, "resubmitted", f"cancelled-{actor}", f"within_{minutes}")
    yield at("out_of_memory", AMOUNT, "oom-unchanged", "jobs")
    yield at("unchanged", SHARE, "oom-unchanged", "unchanged")


def _failures() -> Iterator[Place]:
    """Yield who fails twice the same way."""
    columns = {
        "share": SHARE, "people": AMOUNT, "repeated": AMOUNT, "again": AMOUNT, "later": SHARE, "other_day": SHARE,
        "median_s": MEDIAN, "untold": SHARE,
    }  # fmt: skip
    for actor in ACTORS:
        for name, kind in columns.items():
            column = name.removesuffix("_s")
            yield Place(("repeated_failures", actor, name), kind, "repeated-failures", actor, column)


_CATEGORIES: Final = ("text", "build", "packages", "versions", "slurm", "editors", "network", "interpreters", "other")
_TOOLS: Final = ("head", "tail", "cat", "sed", "awk", "grep", "find", "wc", "less", "vim", "all")


def _commands() -> Iterator[Place]:
    """Yield what collectors tell of."""
    for who in ("agent", "human"):
        for path, kind, figure, row, column in _of_driver(who):
            yield Place(("activity", who, *path), kind, figure, row or who, column or "value")
    for name, row in (("any", "any"), ("much", "many"), ("code", "code"), ("web", "web"), ("search", "search")):
        yield Place(("activity", "fetching", name), SHARE, "external-fetches", row, "agent")
    yield Place(("activity", "extended"), SHARE, "extensions-run", "any", "agent")


def _of_driver(who: str) -> list[tuple[tuple[str, ...], str, str, str, str]]:
    """List path, kind, figure, row (the driver's where empty) and column (the value) of what a driver did."""
    return [
        (("commands_a_minute",), MEDIAN, "command-rate", "", ""),
        (("sessions",), AMOUNT, "command-rate", "", "sessions"),
        *((("a_user_by_category", name), RATIO, "command-classes", name, who) for name in _CATEGORIES),
        *((("tools_for_100_jobs", name), RATIO, "file-tools", name, who) for name in _TOOLS),
        (("tree_walks_a_user",), RATIO, "tree-walks", "", ""),
        (("searches_a_user",), RATIO, "recursive-searches", "", ""),
        *(((name,), AMOUNT, "query-commands", "", name) for name in ("queries", "submissions")),
        (("loops", "number"), AMOUNT, "loop-time", "", "loops"),
        (("loops", "median_s"), MEDIAN, "loop-time", "", ""),
        *(
            (("loops", "within", minutes), SHARE, "loops-closed", "", f"within_{minutes}")
            for minutes in ("10", "30", "60", "180")
        ),
        (("polling", "number"), AMOUNT, "polling-loops", "", "loops"),
        (("polling", "queries"), AMOUNT, "polling-loops", "", "queries"),
        (("polling", "period_median_s"), MEDIAN, "polling-loops", "", "period"),
        *(
            (("destructive", trait, name), AMOUNT, "destructive-commands", trait, f"{who}_{column}")
            for trait in ("rm_force", "rm_root", "kill", "git_discard")
            for name, column in (("number", "calls"), ("users", "users"))
        ),
    ]


_PLACES: Final = ("login", "job", "ssh", "gateway", "agent_host")
_BOUNDS: Final = (("share", "share"), ("low", "low"), ("high", "high"))


def _places() -> Iterator[Place]:
    """Yield where agents work, and what login nodes alone would say."""
    for place in _PLACES:
        for name in ("people", "sessions"):
            share = "people_share" if name == "people" else "share"
            yield Place(("places", place, name), AMOUNT, "where-agents-work", place, name)
            yield Place(("places", place, f"{name}_share"), SHARE, "where-agents-work", place, share)
        told = (("submissions", "where-agents-submit"), ("commands", "where-agents-run-commands"))
        for name, figure in told if place != "gateway" else told[:1]:
            yield Place(("places", place, name), AMOUNT, figure, place, name)
            for bound, column in _BOUNDS:
                yield Place(("places", place, f"{name}_{bound}"), SHARE, figure, place, column)
    for row in ("people", "submissions", "commands"):
        for column in ("login", "all", "difference"):
            yield Place(("login_view", row, column), SHARE, "login-node-bias", row, column)


# Planted, and measured by no figure yet: each with the figure that is to come. A figure that has come is taken out
# here and gets its place above.
NOT_MEASURED: Final[dict[str, str]] = {}
# What `books` derive others from, which the report says in another form: the path, and why.
DERIVED: Final = {
    "period": "what was asked for",
    "gpu_measured_jobs": "the sum of the quadrants' jobs",
    "on_test": "of partitions.test",
    "commands": "the sum of its categories",
    "active_minutes": "of no figure: minutes with a command",
    "commands_an_active_minute": "of no figure: the paper counts by time",
    "unknown_commands": "a share of all: below",
    "users": "of activity: those who have sessions",
    "untold_people": "of no figure: of them the report says the share of failures, if they are enough",
}


def with_derived(planted: dict[str, Any]) -> dict[str, Any]:
    """Add shares of the loads, and partitions' sums, to what was planted."""
    shares = {
        f"shares_{key}": {
            actor: {name: loads[name] / sum(each[name] for each in planted[key].values()) for name in loads}
            for actor, loads in planted[key].items()
        }
        for key in ("by_account", "by_job")
    }
    partitions = {
        name: {"agent": jobs["agent"], "all": sum(jobs.values())} for name, jobs in planted["partitions"].items()
    }
    return planted | shares | {"partitions": partitions}


def is_of_few(planted: Mapping[str, Any], place: Place) -> bool:
    """Say whether a planted number is about fewer than five people, so that the report withholds it."""
    *path, name = place.planted
    if "destructive" in path:
        who = "users"
    elif "repeated_failures" in path:
        who = {"people": "people", "untold": "untold_people"}.get(name, "repeated")
    else:
        return False
    return 0 < number_at(planted, (*path, who)) < FEWEST


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a report says other than was planted, and what it withholds: rows about few people are not there."""

    off: dict[str, tuple[float, float | None]]
    withheld: tuple[str, ...]
    held: int  # places that were compared and are as planted


def compare(planted: Mapping[str, Any], found: Mapping[tuple[str, str, str], float | None]) -> Comparison:
    """Hold a report's cells to what was planted."""
    off: dict[str, tuple[float, float | None]] = {}
    withheld, held = [], 0
    for place in places():
        wanted, said = number_at(planted, place.planted), found.get((place.figure, place.row, place.column))
        if said is None:
            withheld.append(place.name)
        elif is_of_few(planted, place) or not place.holds(wanted, said / place.per):
            off[place.name] = (wanted, said)
        else:
            held += 1
    return Comparison(off, tuple(withheld), held)


def number_at(planted: Mapping[str, Any], path: tuple[str, ...]) -> float:
    """Return a planted number by its path."""
    found: Any = planted
    for name in path:
        found = found[name]
    return float(found)


def leaves(planted: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every planted number."""
    for name, value in planted.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name)


def cells(content: Mapping[str, Any]) -> dict[tuple[str, str, str], float | None]:
    """Return a report's cells by figure, row and column."""
    return {
        (figure["key"], row["key"], column["key"]): value
        for section in content["sections"]
        for figure in section["figures"]
        for row in figure["rows"]
        for column, value in zip(figure["columns"], row["values"], strict=True)
    }
