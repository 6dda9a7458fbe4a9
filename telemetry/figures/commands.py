"""Figures of what agents and people run where collectors watch (paper §III-B, §IV-A, §V-A, §VII; Figures 3
and 5, Tables I and III).

All of them count starts of programs as collectors saw them. People's rows are of the study that they name, or empty.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from principals.engine.harnesses import harness_name
from telemetry.engine import iteration
from telemetry.engine.activity import ALL, CATEGORY, FETCH, TOOL
from telemetry.engine.cells import enough, left_empty
from telemetry.engine.commands import catalogue, traits
from telemetry.engine.medians import Middle, middle_of
from telemetry.figures.kinds import Column, Figure, Measured, Number, Row, Section, Unit
from telemetry.figures.load import LABELS
from telemetry.figures.readings import Readings
from telemetry.models import Actor
from telemetry.selectors import MIN_PEOPLE, ratio
from telemetry.selectors.commands import Commands, Driven

NOT_HEARD: Final = "No collector told of commands in this period."
NO_BASELINE: Final = "People: no baseline, for no study observed their shells."
HIDDEN: Final = f"Rows about fewer than {MIN_PEOPLE} people are left empty."
SEEN: Final = "programs started under a session that a collector saw"
PEOPLE_WORDS: Final = "people with a session that a collector saw"
MANY_FETCHES: Final = 100
_TOOLS: Final = tuple(dict.fromkeys(catalogue().tools.values()))
_EDITORS: Final = ("vim",)  # a tool that waits for a person: Table I keeps it out of its sum
_DESTRUCTIVE: Final = {
    traits.REMOVE: "rm -f", traits.REMOVE_ROOT: "rm -r of a root, as of a variable that is not set",
    traits.KILL: "Processes killed", traits.DISCARD: "git reset --hard, git clean -f",
}  # fmt: skip
_FETCHES: Final = {"code": "Code hosts and registries", "web": "Other pages and downloads", "search": "Searches"}
_FETCHED: Final = tuple(FETCH + kind for kind in _FETCHES)
_HARNESS: Final = "harness-"  # begins the keys of their rows
_DRIVERS: Final = (Actor.AGENT, Actor.HUMAN)

Values = tuple[Number | None, ...]


def _measured(
    readings: Readings, columns: tuple[Column, ...], rows: Iterable[Row], value: Number | None, note: str = ""
) -> Measured:
    """Put a figure together: it says which study people's numbers are from, and what nobody knows."""
    found = readings.commands
    if not any(driven.totals[ALL] for driven in found.by_driver.values()):
        return Measured(None, columns, note=NOT_HEARD)
    notes = filter(None, (note, _study_words(found)))
    return Measured(value, columns, tuple(rows), found.unknown_share, note=" ".join(notes))


def _study_words(found: Commands) -> str:
    if not found.studies:
        return NO_BASELINE
    return f"People: those of the study {', '.join(found.studies)}."


def _groups(found: Commands) -> list[tuple[str, str, Driven]]:
    """Return agents, people, and then agents by harness: key, label, what they did."""
    drivers = [(actor.value, LABELS[actor], found.by_driver[actor]) for actor in _DRIVERS]
    names = sorted(found.by_harness, key=lambda name: (-found.by_harness[name].people, name))
    return drivers + [
        (f"{_HARNESS}{name}", f"Agents, {harness_name(name)}", found.by_harness[name]) for name in names
    ]  # fmt: skip


def _by_group(
    readings: Readings, columns: tuple[Column, ...], values: Callable[[Driven], Values],
    *whose: Callable[[Driven], set[int]],
) -> Measured:  # fmt: skip
    """One row for agents, for people, and for each harness; empty where few people are in it, or any of `whose`.

    Harnesses part the agents' row: of them none is empty alone, nor several of few people together.
    """
    groups = _groups(readings.commands)
    empty: set[str] = set()
    for people_of in (lambda one: one.users, *whose):
        table = {key: people_of(driven) for key, _, driven in groups}
        empty |= left_empty(table, [[key for key in table if key.startswith(_HARNESS)]])
    rows = [Row(key, label, (None,) * len(columns) if key in empty else values(one)) for key, label, one in groups]
    return _measured(readings, columns, rows, rows[0].values[0], HIDDEN if empty else "")


def _middle(title: str, unit: Unit) -> tuple[Column, ...]:
    return (Column("value", title, unit), Column("low", "95 % from", unit), Column("high", "to", unit))


def _bounds(middle: Middle) -> Values:
    return (middle.median, middle.low, middle.high)


def _rate(readings: Readings) -> Measured:
    columns = (
        *_middle("Commands a minute", Unit.CALLS), Column("sessions", "Sessions", Unit.SESSIONS),
        Column("people", "People", Unit.PEOPLE),
    )  # fmt: skip
    return _by_group(
        readings, columns, lambda one: (*_bounds(middle_of(one.rates())), len(one.rates()), one.people)
    )  # fmt: skip


def _classes(readings: Readings) -> Measured:
    found, titles = readings.commands, catalogue().titles
    agents, people = (found.by_driver[actor] for actor in _DRIVERS)
    columns = (
        Column("agent", "Agents, a user", Unit.CALLS), Column("agent_share", "Of agents’", Unit.SHARE),
        Column("human", "People, a user", Unit.CALLS), Column("human_share", "Of people’s", Unit.SHARE),
    )  # fmt: skip
    empty = [_few_did(driven, [CATEGORY + slug for slug in titles]) for driven in (agents, people)]

    def values(measure: str) -> Values:
        shares = (_mean_and_share(agents, measure), _mean_and_share(people, measure))
        return tuple(
            None if measure in few else one for few, two in zip(empty, shares, strict=True) for one in two
        )  # fmt: skip

    rows = [Row(slug, title, values(CATEGORY + slug)) for slug, title in titles.items()]
    hidden = any(empty) or not _all_enough(agents, people)
    return _measured(readings, columns, rows, _mean(agents, ALL), HIDDEN if hidden else "")


def _all_enough(*groups: Driven) -> bool:
    return all(enough(group.people) for group in groups)


def _few_did(driven: Driven, measures: Sequence[str]) -> set[str]:
    """Return which of some measures, whose sum is known, are left empty since few people did that."""
    return left_empty({measure: driven.users_of(measure) for measure in measures}, [measures])


def _mean(driven: Driven, *measures: str) -> float | None:
    """Return the calls a person with a session; None where few have one."""
    return ratio(driven.of(*measures), driven.people) if enough(driven.people) else None


def _mean_and_share(driven: Driven, measure: str) -> Values:
    # Shares are also of what belongs to no session: people's shells without a study are in the totals of nodes.
    share = ratio(driven.totals[measure], driven.totals[ALL])
    few = driven.by_user and not enough(driven.people)
    return (_mean(driven, measure), None if few else share)


def _loop_time(readings: Readings) -> Measured:
    columns = (
        *_middle("Median", Unit.SECONDS), Column("loops", "Loops", Unit.CALLS), Column("people", "People", Unit.PEOPLE)
    )  # fmt: skip
    return _of_loops(
        readings, columns, lambda one: (*_bounds(middle_of(one.loops_s)), len(one.loops_s), len(one.loop_users))
    )  # fmt: skip


def _loops_closed(readings: Readings) -> Measured:
    bounds = iteration.WITHIN_MINUTES
    columns = (
        *(Column(f"within_{minutes}", f"Within {minutes} min", Unit.SHARE) for minutes in bounds),
        Column("loops", "Loops", Unit.CALLS),
    )
    return _of_loops(
        readings, columns,
        lambda one: (
            *(ratio(sum(1 for each in one.loops_s if each <= minutes * 60), len(one.loops_s)) for minutes in bounds),
            len(one.loops_s),
        ),
    )  # fmt: skip


def _of_loops(readings: Readings, columns: tuple[Column, ...], values: Callable[[Driven], Values]) -> Measured:
    return _by_group(readings, columns, values, lambda one: one.loop_users)


def _tools(readings: Readings) -> Measured:
    """Table I: calls for a hundred submissions, agents' and people's, and how many times the one is the other."""
    found = readings.commands
    agents, people = (found.by_driver[actor] for actor in _DRIVERS)
    jobs = [readings.by_actor[actor].submissions for actor in _DRIVERS]
    columns = (
        Column("agent", "Agents", Unit.CALLS), Column("human", "People", Unit.CALLS),
        Column("times", "Agents’ against people’s", Unit.RATIO),
    )  # fmt: skip
    named = [(name, name, (TOOL + name,)) for name in _TOOLS]
    every = tuple(TOOL + name for name in _TOOLS if name not in _EDITORS)
    empty = [_few_did(one, every) | _few_did(one, [TOOL + name for name in _EDITORS]) for one in (agents, people)]

    def values(*measures: str) -> Values:
        calls = [
            None if few.issuperset(measures) else _for_100_jobs(driven, submitted, measures)
            for driven, submitted, few in zip((agents, people), jobs, empty, strict=True)
        ]
        return _against(*calls)

    rows = [Row(key, label, values(*of)) for key, label, of in (*named, ("all", "All but editors", every))]
    hidden = any(empty) or not _all_enough(agents, people)
    return _measured(readings, columns, rows, rows[-1].values[0], HIDDEN if hidden else "")


def _for_100_jobs(driven: Driven, submitted: int, measures: tuple[str, ...]) -> float | None:
    return ratio(100 * driven.of(*measures), submitted) if driven.by_user and enough(driven.people) else None


def _against(mine: float | None, theirs: float | None) -> Values:
    return (mine, theirs, ratio(mine, theirs) if mine is not None and theirs else None)


def _calls_a_user(*measures: str) -> Callable[[Readings], Measured]:
    columns = (
        Column("value", "Calls a user", Unit.CALLS), Column("calls", "Calls", Unit.CALLS),
        Column("users", "People who did", Unit.PEOPLE), Column("people", "People", Unit.PEOPLE),
    )  # fmt: skip

    def values(one: Driven) -> Values:
        return (_mean(one, *measures), one.of(*measures), len(one.users_of(*measures)), one.people)

    return lambda readings: _by_group(readings, columns, values, lambda one: one.users_of(*measures))


def _queries(readings: Readings) -> Measured:
    """Queries by command beside submissions by command: the same sessions, whatever was asked by other programs."""
    columns = (
        Column("value", "Queries for each submission", Unit.RATIO), Column("queries", "Queries", Unit.CALLS),
        Column("submissions", "Submissions", Unit.CALLS), Column("people", "People", Unit.PEOPLE),
    )  # fmt: skip

    def values(one: Driven) -> Values:
        asked, submitted = one.of(traits.QUERY), one.of(traits.SUBMISSION)
        return (ratio(asked, submitted), asked, submitted, one.people)

    whose = (lambda one: one.users_of(traits.QUERY), lambda one: one.users_of(traits.SUBMISSION))
    return _by_group(readings, columns, values, *whose)


def _polling(readings: Readings) -> Measured:
    columns = (
        Column("value", "Of all queries", Unit.SHARE), Column("loops", "Loops", Unit.CALLS),
        Column("queries", "Queries in them", Unit.CALLS), Column("period", "Median apart", Unit.SECONDS),
        Column("people", "People", Unit.PEOPLE),
    )  # fmt: skip

    def values(one: Driven) -> Values:
        polled = sum(queries for queries, _ in one.polls)
        apart = middle_of(period for _, period in one.polls).median
        who = len(one.poll_users)
        return (ratio(polled, one.of(traits.QUERY)), len(one.polls), polled, apart, who)

    whose = (lambda one: one.users_of(traits.QUERY), lambda one: one.poll_users)
    return _by_group(readings, columns, values, *whose)


def _destructive(readings: Readings) -> Measured:
    """Table III: calls, people, and calls a person who did it."""
    found = readings.commands
    groups = [found.by_driver[actor] for actor in _DRIVERS]
    columns = tuple(
        Column(f"{actor.value}_{name}", f"{LABELS[actor]}, {words}", unit)
        for actor in _DRIVERS
        for name, words, unit in (
            ("calls", "calls", Unit.CALLS), ("users", "who", Unit.PEOPLE), ("mean", "each", Unit.CALLS)
        )
    )  # fmt: skip
    rows = [
        Row(trait, label, tuple(value for one in groups for value in _did(one, trait)))
        for trait, label in _DESTRUCTIVE.items()
    ]
    hidden = any(not enough(len(one.users_of(trait))) for one in groups for trait in _DESTRUCTIVE)
    few = [trait for trait in _DESTRUCTIVE if not enough(len(groups[0].users_of(trait)))]
    # The sum would tell of a single empty row, or of those of few.
    told = not few or (len(few) > 1 and enough(len(groups[0].users_of(*few))))
    total = sum(groups[0].of(trait) for trait in _DESTRUCTIVE) if told else None
    return _measured(readings, columns, rows, total, HIDDEN if hidden else "")


def _did(driven: Driven, trait: str) -> Values:
    calls, users = driven.of(trait), len(driven.users_of(trait))
    return (calls, users, ratio(calls, users)) if enough(users) else (None, None, None)


def _fetches(readings: Readings) -> Measured:
    found = readings.commands
    agents, people = (found.by_driver[actor] for actor in _DRIVERS)
    columns = (
        Column("agent", "Of agent users", Unit.SHARE), Column("agent_users", "Agent users", Unit.PEOPLE),
        Column("human", "Of people", Unit.SHARE), Column("human_users", "People", Unit.PEOPLE),
    )  # fmt: skip
    asked = [("any", "Anything", _FETCHED, 0), ("many", f"More than {MANY_FETCHES} times", _FETCHED, MANY_FETCHES)]
    asked += [(kind, label, (FETCH + kind,), 0) for kind, label in _FETCHES.items()]
    rows = [
        Row(key, label, (*_users(agents, measures, above), *_users(people, measures, above)))
        for key, label, measures, above in asked
    ]
    return _measured(readings, columns, rows, rows[0].values[0])


def _users(driven: Driven, measures: tuple[str, ...], above: int) -> Values:
    users = len(driven.users_of(*measures, above=above))
    return (ratio(users, driven.people), users) if enough(users) and enough(driven.people) else (None, None)


LIMIT = (
    "Of nodes with a collector alone: agents on others and behind gateways are not seen, nor are the words of some "
    "very short programs."
)
FIGURES = [
    Figure(
        "command-rate", Section.RHYTHM, "Commands a minute",
        "Programs that a session started, over the minutes in which it was open in the period while a collector "
        "watched its node; the median over sessions with the bounds of its 95 % confidence interval.",
        SEEN, Unit.CALLS, _rate, facility_only=True,
    ),
    Figure(
        "command-classes", Section.RHYTHM, "Commands by class",
        "Programs started, by what they are for: the mean for each person with a session, and the share of all that "
        "agents, or people, started. The headline is of all classes, agents’.",
        SEEN, Unit.CALLS, _classes, facility_only=True,
    ),
    Figure(
        "loop-time", Section.RHYTHM, "Time between submissions of one experiment",
        "Median from a submission, through a look or an edit, to the next one of the same session, with the bounds of "
        "its 95 % confidence interval.", "such loops that ended in the period", Unit.SECONDS, _loop_time,
        facility_only=True,
    ),
    Figure(
        "loops-closed", Section.RHYTHM, "Experiments resubmitted within 10, 30, 60 and 180 minutes",
        "Share of all such loops. The headline is agents’ within ten minutes.", "such loops that ended in the period",
        Unit.SHARE, _loops_closed, facility_only=True,
    ),
    Figure(
        "query-commands", Section.SCHEDULING, "Scheduler queries by command for each submission",
        "Starts of squeue, sacct, sinfo and the like, over starts of sbatch, srun and salloc, of the same sessions. "
        "What programs ask by a library is in the controller’s counts alone, which the figure beside has.",
        SEEN, Unit.RATIO, _queries, facility_only=True,
    ),
    Figure(
        "polling-loops", Section.SCHEDULING, "Queries asked in tight loops",
        "The same query from one place, three times and more, no further apart than the site wants queries to be.",
        "queries by command", Unit.SHARE, _polling, facility_only=True,
    ),
    Figure(
        "file-tools", Section.STORAGE, "File reads and edits for 100 submissions",
        "Starts of tools that read or edit files under agents’, and people’s, sessions over the submissions attributed "
        "to them in accounting.", SEEN, Unit.CALLS, _tools, facility_only=True,
    ),
    Figure(
        "tree-walks", Section.STORAGE, "Directory walks a user", "Starts of find, ls -R, du, tree and the like.",
        PEOPLE_WORDS, Unit.CALLS, _calls_a_user(traits.TREE_WALK), facility_only=True,
    ),
    Figure(
        "recursive-searches", Section.STORAGE, "Recursive searches a user", "Starts of grep -r, rg and the like.",
        PEOPLE_WORDS, Unit.CALLS, _calls_a_user(traits.RECURSIVE_SEARCH), facility_only=True,
    ),
    Figure(
        "destructive-commands", Section.SECURITY, "Destructive commands",
        "Starts of commands that remove or end without asking. Most are meant so: the count says how often nobody "
        "could have been asked. The headline is agents’.", SEEN, Unit.CALLS, _destructive, facility_only=True,
    ),
    Figure(
        "external-fetches", Section.SECURITY, "Agent users who fetch from outside",
        "People whose sessions started a program that brings something in from another host, by destination; one may "
        "use several.", PEOPLE_WORDS, Unit.SHARE, _fetches, facility_only=True,
    ),
]  # fmt: skip
