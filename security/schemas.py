"""What the API of `security` takes and says."""

from datetime import datetime
from typing import Annotated

from ninja import Field, Schema
from pydantic import ConfigDict

from security.services import MAX_FINDINGS

# Lengths and words are checked finding by finding, so that one bad finding does not stop the others; these only bound
# the size of what is read.
Short = Annotated[str, Field(max_length=1000)]


class FindingIn(Schema):
    """What a detector saw. The evidence is redacted before it is sent; it is redacted again here."""

    model_config = ConfigDict(extra="forbid")

    kind: Short = Field(examples=["exposed_secret"])
    detector: Short = Field(examples=["github-token"])
    occurred: datetime
    title: Short = ""
    severity: Short = ""
    reasons: list[Short] = Field([], max_length=20)
    login: Short = ""
    agent: Short = ""
    host: Short = ""
    surface: Short = "other"
    place: Short = ""
    readable_by: Short = ""
    evidence: Annotated[str, Field(max_length=20_000)] = ""
    masked: list[Short] = Field([], max_length=40)
    preview: Short = ""
    fingerprint: Short = ""
    method: Short = ""
    confidence: float | None = None


class FindingsIn(Schema):
    """Findings of one cluster, at most 500."""

    model_config = ConfigDict(extra="forbid")

    cluster: Annotated[str, Field(min_length=1, max_length=40)]
    findings: Annotated[list[FindingIn], Field(min_length=1, max_length=MAX_FINDINGS)]


class OutcomeOut(Schema):
    """What became of one finding, in the order they were sent."""

    outcome: str = Field(description="opened, joined, reopened, duplicate or rejected")
    incident: str = ""
    code: str = ""
    reason: str = ""
    remedy: str = ""


class FindingsOut(Schema):
    """An outcome for each finding, and how many there are of each."""

    outcomes: list[OutcomeOut]
    counts: dict[str, int]
