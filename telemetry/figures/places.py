"""Figures of where agents work, and of what a view of login nodes alone would say.

A site that sends agents off its login nodes sees fewer of them there, whatever they do.
"""

from collections.abc import Callable, Sequence
from typing import Final

from telemetry.engine.cells import Group, enough, withheld
from telemetry.figures.kinds import Column, Figure, Measured, Row, Section, Unit
from telemetry.figures.load import JOB_WORDS
from telemetry.figures.readings import Readings
from telemetry.models import Actor
from telemetry.selectors import MIN_PEOPLE, ratio
from telemetry.selectors.places import (
    Place,
    PlaceLoad,
    Places,
    View,
    agent_commands,
    agent_submissions,
    agent_users,
)

NOT_WATCHED: Final = "not watched"
FEW: Final = f"Rows about fewer than {MIN_PEOPLE} people are left empty, and one more where subtraction would tell."
NO_BOUND: Final = (
    f"Agents’ submissions of no place are not told, nor what they could be had from: fewer than {MIN_PEOPLE} people "
    "made them, or those of an empty row."
)
AUTOMATIONS: Final = (
    "Over SSH without a terminal came {:,} pairs of a key and a client, counted anew each day and node, that nothing "
    "says to be agents’: the share that is not known takes each for a session."
)
BLIND: Final = "What agents do where nothing watches is in no number here."
_NO_PLACE: Final = ""  # of submissions in no session that is known
_AGENT, _UNKNOWN = Actor.AGENT.value, Actor.UNKNOWN.value

Values = tuple[int | float | None, ...]


def _off_login(rows: Sequence[Row], found: Places, of: Callable[[PlaceLoad], int]) -> float | None:
    """Return the share of agents' that is not of login nodes; None where the row of these is empty."""
    if rows[0].values[0] is None:
        return None
    whole = sum(of(load) for load in found.loads.values())
    return ratio(whole - of(found.loads[Place.LOGIN]), whole)


def _by_place(
    found: Places, columns: Sequence[Column], people_of: Callable[[PlaceLoad], set[int]],
    values: Callable[[PlaceLoad], Values], is_told: Callable[[PlaceLoad], bool], query: bool = False,
    hidden: set[str] | None = None,
) -> tuple[list[Row], str]:  # fmt: skip
    """Return a row for each place, login nodes first, and what is said of those that are empty.

    `hidden`: the places whose rows are, where the rows alone do not decide that.
    """
    hidden = _hidden(_groups(found, people_of)) if hidden is None else hidden
    rows = []
    for place, load in found.loads.items():
        empty = not is_told(load) or place in hidden
        rows.append(
            Row(
                place, load.title if load.is_watched else f"{load.title}: {NOT_WATCHED}",
                (None,) * len(columns) if empty else values(load),
                {"actor": _AGENT, "place": place} if query and not empty else None,
            )
        )  # fmt: skip
    return rows, " ".join([*_blind(found), *([FEW] if hidden else [])])


def _groups(found: Places, people_of: Callable[[PlaceLoad], set[int]]) -> list[Group]:
    return [Group(load.place, people_of(load)) for load in found.loads.values() if people_of(load)]


def _hidden(groups: Sequence[Group]) -> set[str]:
    """Return the places whose rows are left empty; of login nodes last, for the difference to all tells of them."""
    return withheld(sorted(groups, key=lambda group: (group.key != Place.LOGIN, -group.people)))


def _blind(found: Places) -> list[str]:
    """Say which places nothing told of."""
    names = "; ".join(found.loads[place].title.replace(",", "") for place in found.not_watched)
    return [f"Not watched: {names}. {BLIND}"] if names else []


def _nothing(columns: tuple[Column, ...]) -> Measured:
    return Measured(None, columns, note="Nothing told of agents in this period.")


def _work(readings: Readings) -> Measured:
    found = readings.places
    columns = (
        Column("people", "People with agents", Unit.PEOPLE), Column("people_share", "Of them", Unit.SHARE),
        Column("sessions", "Sessions", Unit.SESSIONS, adds_up=True),
        Column("share", "Of all sessions", Unit.SHARE),
    )  # fmt: skip
    everybody = set.union(*(load.users for load in found.loads.values()))
    sessions = sum(load.sessions for load in found.loads.values())
    if not sessions:
        return _nothing(columns)
    rows, note = _by_place(
        found, columns, lambda load: load.users,
        lambda load: (len(load.users), ratio(len(load.users), len(everybody)), load.sessions,
                      ratio(load.sessions, sessions)),
        lambda load: load.is_watched,
    )  # fmt: skip
    value = _off_login(rows, found, lambda load: load.sessions)
    unknown = found.automations if enough(found.automations) else 0
    if unknown:
        note = f"{AUTOMATIONS.format(unknown)} {note}"
    share = ratio(unknown, sessions + unknown) if unknown else None
    return Measured(value, columns, tuple(rows), share, note.strip())


def _commands(readings: Readings) -> Measured:
    """Count agents' commands by place, with the bounds that commands of nobody leave."""
    found = readings.places
    columns = (
        Column("commands", "Commands", Unit.CALLS, adds_up=True), Column("share", "Of agents’", Unit.SHARE),
        Column("low", "At least", Unit.SHARE), Column("high", "At most", Unit.SHARE),
        Column("unknown", "Of nobody, there", Unit.SHARE),
    )  # fmt: skip
    agents, unknown = found.commands_of(_AGENT), found.commands_of(_UNKNOWN)
    if not agents:
        return _nothing(columns)

    def values(load: PlaceLoad) -> Values:
        own, nobody = load.commands[_AGENT], load.commands[_UNKNOWN]
        return (
            own, ratio(own, agents), ratio(own, agents + unknown - nobody), ratio(own + nobody, agents + nobody),
            ratio(nobody, load.commands.total()),
        )  # fmt: skip

    rows, note = _by_place(found, columns, lambda load: load.commanders, values, lambda load: load.is_heard)
    everything = sum(load.commands.total() for load in found.loads.values())
    value = _off_login(rows, found, lambda load: load.commands[_AGENT])
    gateways = "" if found.loads[Place.GATEWAY].is_heard else "Gateways count requests, and no commands."
    return Measured(value, columns, tuple(rows), ratio(unknown, everything), " ".join(filter(None, (gateways, note))))


def _submissions(readings: Readings) -> Measured:
    """Count agents' submissions by the place of their session, with the bounds that those of nobody leave."""
    found = readings.places
    columns = (
        Column("submissions", "Submissions", Unit.SUBMISSIONS, adds_up=True),
        Column("share", "Of agents’", Unit.SHARE), Column("low", "At least", Unit.SHARE),
        Column("high", "At most", Unit.SHARE), Column("people", "People", Unit.PEOPLE),
    )  # fmt: skip
    agents, nobody, placeless = found.submissions, found.unattributed, found.placeless
    if not agents:
        return _nothing(columns)
    groups = _groups(found, lambda load: load.submitters)
    hidden = _hidden([*groups, Group(_NO_PLACE, found.placeless_submitters)] if placeless else groups)
    bounded = _NO_PLACE not in hidden  # else the difference of the bounds would tell what no place has
    rows, note = _by_place(
        found, columns, lambda load: load.submitters,
        lambda load: (
            load.submissions, ratio(load.submissions, agents), ratio(load.submissions, agents + nobody),
            ratio(load.submissions + placeless + nobody, agents + nobody) if bounded else None, len(load.submitters),
        ),
        lambda load: load.is_watched, query=True, hidden=hidden,
    )  # fmt: skip
    unknown = ratio(nobody, found.submitted)
    if not bounded:  # as would the share off login nodes: it is of those that have a place
        return Measured(None, columns, tuple(rows), unknown, note=f"{note} {NO_BOUND}".strip())
    if placeless:
        share = ratio(placeless, agents)
        note = f"{note} {share:.1%} are agents’ by receipt or label alone, in no known session: they are of no place."
    value = _off_login(rows, found, lambda load: load.submissions)
    return Measured(value, columns, tuple(rows), unknown, note.strip())


def _bias(readings: Readings) -> Measured:
    """Put the headline shares side by side: of login nodes alone, and of every place that anything tells of."""
    found = readings.places
    columns = (
        Column("login", "Login nodes alone", Unit.SHARE), Column("all", "All places", Unit.SHARE),
        Column("difference", "Not seen from login nodes", Unit.SHARE),
    )  # fmt: skip
    views = {
        "people": ("Agents’ share of people", agent_users(found)),
        "submissions": ("Agents’ share of submissions", agent_submissions(found)),
        "commands": ("Agents’ share of commands", agent_commands(found)),
    }
    rows = tuple(Row(key, label, _compared(view)) for key, (label, view) in views.items())
    hidden = any(not _may_be_shown(view) for _, view in views.values())
    notes = _blind(found)
    notes += [f"Rows in which fewer than {MIN_PEOPLE} people make the difference are left empty."] if hidden else []
    return Measured(
        rows[1].values[2], columns, rows, ratio(found.unattributed, found.submitted), " ".join(notes)
    )  # fmt: skip


def _may_be_shown(view: View) -> bool:
    return all(enough(len(some)) for some in (view.login_people, view.elsewhere))


def _compared(view: View) -> Values:
    if not _may_be_shown(view):
        return (None, None, None)
    missing = None if view.login is None or view.everywhere is None else view.everywhere - view.login
    return (view.login, view.everywhere, missing)


LIMIT = (
    "What nothing watches is in no number, so each share is of what was seen. A gateway knows an agent by what its "
    "program calls itself; who hides it is among programs of nobody."
)
FIGURES = [
    Figure(
        "where-agents-work", Section.LOAD, "Agents’ sessions off login nodes",
        "Sessions of agents that were open in the period, by where they ran: a login node, a job, a shell over SSH "
        "without a terminal, a gateway (requests no more than half an hour apart), a host for agents. The headline is "
        "the share that ran elsewhere than on login nodes. One person may be at several places.",
        "sessions of agents that a collector or a gateway’s log told of, or that a harness declared", Unit.SHARE, _work,
        facility_only=True,
    ),
    Figure(
        "where-agents-run-commands", Section.LOAD, "Agents’ commands off login nodes",
        "Programs that agents’ sessions started, by where. At least and at most: if all commands of which nobody knows "
        "who drives them were agents’, elsewhere or there. The headline is the share off login nodes.",
        "programs started where a collector watched", Unit.SHARE, _commands, facility_only=True,
    ),
    Figure(
        "where-agents-submit", Section.LOAD, "Agents’ submissions off login nodes",
        "Jobs attributed to an agent’s session, by where that session ran. At least and at most: if all submissions "
        "that are not attributed, or of no place, were agents’, elsewhere or from there. The headline is the share off "
        "login nodes.", JOB_WORDS, Unit.SHARE, _submissions, facility_only=True,
    ),
    Figure(
        "login-node-bias", Section.LOAD, "Agents’ share of submissions that login nodes alone do not show",
        "The report’s headline shares as they would be if login nodes alone were watched, beside those of all places. "
        "People are agents’ by account. Commands are shares of what started where was looked.", JOB_WORDS, Unit.SHARE,
        _bias, facility_only=True,
    ),
]  # fmt: skip
