"""Figures of the published measurement that nothing here measures yet. Listed, so that none is left out unnoticed."""

from telemetry.figures.kinds import Figure, Section, Unit

COLLECTOR = "the collector’s process events from login nodes"
AGENT_USERS = "people with agent sessions, beside people with interactive shells"

_MISSING: tuple[tuple[str, Section, str, str, Unit, str], ...] = (
    ("command-rate", Section.RHYTHM, "Commands a minute", "Median over sessions.", Unit.CALLS, COLLECTOR),
    ("command-classes", Section.RHYTHM, "Commands by class", "Mean calls a user, by class of command.", Unit.CALLS,
     COLLECTOR),
    ("loop-time", Section.RHYTHM, "Time between submissions of one experiment",
     "Median from a submission, through inspection and an edit, to the next in the same session.", Unit.SECONDS,
     f"{COLLECTOR}, with inspections and edits classified"),
    ("loops-closed", Section.RHYTHM, "Experiments resubmitted within 10, 30, 60 and 180 minutes",
     "Share of all such loops.", Unit.SHARE, f"{COLLECTOR}, with inspections and edits classified"),
    ("trial-wait", Section.SCHEDULING, "How soon trials start", "Median wait of granted trials.", Unit.SECONDS,
     "trial grants matched to their jobs"),
    ("file-tools", Section.STORAGE, "File reads and edits for 100 submissions",
     "Calls of head, tail, cat, sed, grep and editors.", Unit.CALLS, COLLECTOR),
    ("tree-walks", Section.STORAGE, "Directory walks a user", "Calls of find, ls -R, du and the like.", Unit.CALLS,
     COLLECTOR),
    ("recursive-searches", Section.STORAGE, "Recursive searches a user", "Calls of grep -r, rg and the like.",
     Unit.CALLS, COLLECTOR),
    ("repeated-failures", Section.MEMORY, "People whose agents fail twice the same way",
     "Share of those with failures, and on different days.", Unit.SHARE, "failure signatures from job output"),
    ("destructive-commands", Section.SECURITY, "Destructive commands", "rm -f, kills, git reset --hard and clean.",
     Unit.CALLS, COLLECTOR),
    ("weakened-safeguards", Section.SECURITY, "Safeguards weakened",
     "Open permissions, unchecked certificates, downloads run at once, sandboxes widened.", Unit.CALLS, COLLECTOR),
    ("external-fetches", Section.SECURITY, "Agent users who fetch from outside",
     "By destination: code hosts and registries, other pages, searches.", Unit.SHARE, COLLECTOR),
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
