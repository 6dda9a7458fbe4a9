"""What the API of `principals` says."""

from datetime import datetime
from typing import Annotated, Literal

from ninja import Schema
from pydantic import AwareDatetime, Field

Name = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9._-]+$")]
TimeOfDay = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
Day = Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


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


class TokenEnded(Schema):
    """The token that ended."""

    key: str


class HoursIn(Schema):
    """Days and times, in the site's time zone; an end before the start goes on into the next day."""

    days: Annotated[list[Day], Field(min_length=1, max_length=7)]
    start: TimeOfDay
    end: TimeOfDay


class HoursOut(HoursIn):
    """The hours an agent declared, with their time zone."""

    zone: str


class Limits(Schema):
    """What this agent is held to."""

    requests_per_minute: int
    hosts: list[str]
    partitions: list[str]
    accounts: list[str]  # that it may charge; empty: any of its lab
    hours: HoursOut | None  # null: any
    registration_ends: datetime


class RegistrationIn(Schema):
    """What is declared of an agent that is to be registered. Left out: any."""

    name: Annotated[str, Field(min_length=3, max_length=40, pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")]
    harness: Annotated[str, Field(max_length=32)]
    harness_version: Annotated[str, Field(max_length=40)] = ""
    purpose: Annotated[str, Field(min_length=1, max_length=2000)]
    autonomy: Literal["supervised", "unattended"] = "supervised"
    hosts: Annotated[list[Name], Field(max_length=50)] = []
    partitions: Annotated[list[Name], Field(max_length=50)] = []
    accounts: Annotated[list[Name], Field(max_length=50)] = []
    hours: HoursIn | None = None
    expires: AwareDatetime


class RegisteredOut(Schema):
    """An agent that was asked for: its risk with reasons, and whose approval it waits for (`lab`, `staff`)."""

    agent: str
    status: str
    acts_for: str
    lab: str
    tier: TierOut
    approvals_missing: list[str]
    page: str
    remedy: str


class Me(Schema):
    """Who the agent is, for whom it acts, what it may do and what it still lacks."""

    agent: str
    harness: str
    harness_version: str
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
