"""Verbs of `security`: report findings, work on incidents, contain agents."""

from security.services.containment import contain_agent, release_agent
from security.services.findings import MAX_FINDINGS, FindingOutcome, report_findings
from security.services.incidents import ASK, add_note, assign, move_incident
from security.services.reports import ReportedFinding

__all__ = [
    "ASK",
    "MAX_FINDINGS",
    "FindingOutcome",
    "ReportedFinding",
    "add_note",
    "assign",
    "contain_agent",
    "move_incident",
    "release_agent",
    "report_findings",
]
