"""The API of `security`: findings come in here."""

from collections import Counter
from dataclasses import asdict

from django.http import HttpRequest
from ninja import Router

from portal.core.errors import Invalid
from portal.core.idempotency import idempotent
from portal.core.problems import answers
from principals.auth import actor_of, requires
from principals.models import Cluster
from security import services
from security.schemas import FindingIn, FindingsIn, FindingsOut, OutcomeOut

router = Router()


@router.post(
    "/ingest/findings", auth=requires("ingest:findings"), response=answers(200, FindingsOut), summary="Send findings"
)
@idempotent
def ingest_findings(request: HttpRequest, body: FindingsIn) -> tuple[int, FindingsOut]:
    """Store findings; each joins or opens an incident. With an Idempotency-Key a retry gets the first answer."""
    cluster = Cluster.objects.named(body.cluster).first()
    if cluster is None:
        raise Invalid("No cluster has this name.", code="cluster_unknown", remedy="Send the name Slurm gives it.")
    outcomes = services.report_findings(
        actor=actor_of(request), cluster=cluster, findings=[_reported(finding) for finding in body.findings]
    )
    return 200, FindingsOut(
        outcomes=[OutcomeOut.model_validate(asdict(outcome)) for outcome in outcomes],
        counts=dict(Counter(outcome.outcome for outcome in outcomes)),
    )


def _reported(finding: FindingIn) -> services.ReportedFinding:
    said = finding.model_dump()
    return services.ReportedFinding(**said | {"reasons": tuple(said["reasons"]), "masked": tuple(said["masked"])})
