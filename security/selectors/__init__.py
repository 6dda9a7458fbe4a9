"""Reads of `security`: lists of incidents, and what one incident's page shows."""

from security.selectors.detail import evidence_of, reasons_of, sightings_of, timeline_of
from security.selectors.listing import IncidentFilter, incidents, state_counts

__all__ = [
    "IncidentFilter",
    "evidence_of",
    "incidents",
    "reasons_of",
    "sightings_of",
    "state_counts",
    "timeline_of",
]
