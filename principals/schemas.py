"""What the API of `principals` says."""

from datetime import datetime

from ninja import Schema


class Missing(Schema):
    """Something the agent still lacks, and what would give it."""

    code: str
    what: str
    remedy: str


class TierOut(Schema):
    """The risk tier with its reasons."""

    name: str
    score: int
    reasons: list[str]


class TokenOut(Schema):
    """The token in use; never its secret."""

    key: str
    scopes: list[str]
    expires: datetime


class TokenRotated(Schema):
    """A token just made in place of another; `token` is told this once."""

    token: str
    key: str
    scopes: list[str]
    expires: datetime
    old_key: str
    old_ends: datetime


class TokenEnded(Schema):
    """The token that ended."""

    key: str


class Limits(Schema):
    """What this agent is held to."""

    requests_per_minute: int
    hosts: list[str]
    partitions: list[str]
    registration_ends: datetime


class Me(Schema):
    """Who the agent is, for whom it acts, what it may do and what it still lacks."""

    agent: str
    harness: str
    autonomy: str
    status: str
    purpose: str
    acts_for: str
    lab: str
    accounts: list[str]
    tier: TierOut
    token: TokenOut
    limits: Limits
    missing: list[Missing]
