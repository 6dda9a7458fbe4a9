"""Figures of the published measurement that nothing here measures yet. Listed, so that none is left out unnoticed."""

from telemetry.figures.kinds import Figure, Section, Unit

AGENT_USERS = "people with agent sessions, beside people with interactive shells"

LIMIT = ""
FIGURES = [
    Figure(
        "repeated-failures", Section.MEMORY, "People whose agents fail twice the same way",
        "Share of those with failures, and on different days.", AGENT_USERS, Unit.SHARE,
        needs="failure signatures from job output",
    ),
]  # fmt: skip
