"""Figures of the published measurement that nothing here measures yet. Listed, so that none is left out unnoticed."""

from telemetry.figures.kinds import Figure, Section, Unit

COLLECTOR = "the collector’s process events from login nodes"
AGENT_USERS = "people with agent sessions, beside people with interactive shells"

_MISSING: tuple[tuple[str, Section, str, str, Unit, str], ...] = (
    ("trial-wait", Section.SCHEDULING, "How soon trials start", "Median wait of granted trials.", Unit.SECONDS,
     "trial grants matched to their jobs"),
    ("repeated-failures", Section.MEMORY, "People whose agents fail twice the same way",
     "Share of those with failures, and on different days.", Unit.SHARE, "failure signatures from job output"),
    ("weakened-safeguards", Section.SECURITY, "Safeguards weakened",
     "Open permissions, unchecked certificates, downloads run at once, sandboxes widened.", Unit.CALLS, COLLECTOR),
    ("extensions-run", Section.SECURITY, "Agent users who run extensions", "Skills, plugins, MCP servers, hooks.",
     Unit.SHARE, "extensions reported by harness hooks"),
    ("exposed-keys", Section.SECURITY, "Keys exposed", "Distinct keys seen in arguments, files or output.", Unit.KEYS,
     "findings of the secret detectors, counted by fingerprint"),
    ("open-services", Section.SECURITY, "Services open without a password", "Listening sockets of agent processes.",
     Unit.CALLS, "the collector’s listening sockets"),
)  # fmt: skip

FIGURES = [
    Figure(key, section, title, definition, AGENT_USERS, unit, needs=needs)
    for key, section, title, definition, unit, needs in _MISSING
]
