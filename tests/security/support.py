"""Findings and incidents for tests of `security`."""

from datetime import datetime, timedelta
from typing import Any

from portal.core import clock
from principals.actors import SYSTEM_ACTOR
from security.models import Incident
from security.services import FindingOutcome, ReportedFinding, report_findings
from tests.conftest import Cast

# Made up, of the right form; nothing may ever store it.
TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bD1fG3kQ9"


def finding(**said: Any) -> ReportedFinding:
    """An exposed key in the colleague's command line on login03, ten seconds ago."""
    defaults: dict[str, Any] = {
        "kind": "exposed_secret",
        "detector": "github-token",
        "occurred": clock.now() - timedelta(seconds=10),
        "login": "colleague",
        "host": "login03",
        "surface": "argv",
        "evidence": f'curl -H "Authorization: token {TOKEN}" https://api.example.org',
    }
    return ReportedFinding(**(defaults | said))


def report(cast: Cast, *findings: ReportedFinding, at: datetime | None = None) -> list[FindingOutcome]:
    """Report findings of the cast's cluster as the system."""
    return report_findings(actor=SYSTEM_ACTOR, cluster=cast.cluster, findings=findings, at=at)


def make_incident(cast: Cast, *, at: datetime | None = None, **said: Any) -> Incident:
    """An incident about the lab's agent, whose owner is the colleague."""
    outcome = report(cast, finding(**({"agent": cast.agent.name} | said)), at=at)[0]
    return Incident.objects.get(pk=outcome.incident_id)
