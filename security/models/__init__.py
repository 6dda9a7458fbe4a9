"""Rows of `security`: what was found, and the incidents people work on."""

from security.models.findings import Finding
from security.models.incidents import Incident, IncidentEvent

__all__ = ["Finding", "Incident", "IncidentEvent"]
