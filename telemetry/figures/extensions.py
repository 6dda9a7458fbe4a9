"""The figure of agent users who run extensions of their harness, as far as commands show it (paper §VII-A)."""

from typing import Final

from telemetry.engine.activity import ALL
from telemetry.engine.cells import enough
from telemetry.engine.commands import traits
from telemetry.figures import commands
from telemetry.figures.commands import HIDDEN, NOT_HEARD
from telemetry.figures.kinds import Column, Figure, Measured, Row, Section, Unit
from telemetry.figures.readings import Readings
from telemetry.models import Actor
from telemetry.selectors import ratio

_KINDS: Final = {
    "any": ("Any", (traits.MCP, traits.PLUGIN)),
    "mcp": ("MCP servers", (traits.MCP,)),
    "plugin": ("Plugins, extensions and skills", (traits.PLUGIN,)),
}


def _extended(readings: Readings) -> Measured:
    found = readings.commands
    agents = found.by_driver[Actor.AGENT]
    columns = (Column("agent", "Of agent users", Unit.SHARE), Column("agent_users", "Agent users", Unit.PEOPLE))
    if not any(driven.totals[ALL] for driven in found.by_driver.values()):
        return Measured(None, columns, note=NOT_HEARD)
    rows, hidden = [], False
    for key, (label, measures) in _KINDS.items():
        users = len(agents.users_of(*measures))
        shown = enough(users) and enough(agents.people)
        hidden |= not shown
        rows.append(Row(key, label, (ratio(users, agents.people), users) if shown else (None, None)))
    return Measured(rows[0].values[0], columns, tuple(rows), found.unknown_share, HIDDEN if hidden else "")


LIMIT = commands.LIMIT
FIGURES = [
    Figure(
        "extensions-run", Section.SECURITY, "Agent users who run extensions",
        "People whose agent sessions started an MCP server, or told a harness of a plugin, an extension or a skill. "
        "Hooks, and what a harness loads without a command, are not seen: a lower bound.",
        "people with an agent session that a collector saw", Unit.SHARE, _extended, facility_only=True,
    ),
]  # fmt: skip
