"""What the API of `principals` says."""

from datetime import datetime

from ninja import Field, Schema


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


class MungeAsked(Schema):
    """What a credential needs: the portal's number, who may read it, and how long it should live."""

    nonce: str
    restrict_uid: int
    ttl_s: int


class MungeIn(Schema):
    """A credential as munge(1) prints it."""

    credential: str = Field(max_length=8100)


class LoggedIn(Schema):
    """The token of a login; `token` is told this once. Empty `networks`: it works from anywhere."""

    token: str
    key: str
    agent: str
    acts_for: str
    host: str
    scopes: list[str]
    networks: list[str]
    expires: datetime


class DeviceBegun(Schema):
    """The codes of a login that begins (RFC 8628, 3.2)."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: int
    interval: int


class DeviceToken(Schema):
    """The token of a login (RFC 6749, 5.1), told this once, and whose it is."""

    access_token: str
    token_type: str
    expires_in: int
    scope: str
    agent: str
    acts_for: str
    host: str
    expires: datetime


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
