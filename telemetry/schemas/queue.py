"""What the API says and takes for `gatehouse squeue` and `gatehouse sacct`."""

from datetime import datetime
from typing import Annotated, Literal

from ninja import Field, Schema


class QueueOut(Schema):
    """What squeue printed of the caller's own jobs: `rows` hold a text for each of `fields`, null where it is withheld.

    Times are seconds since 1970; `timeused` is "" where it is the time since `starttime`, "?" where it is not known.
    """

    cluster: str
    logins: list[str]
    shown: datetime
    age_s: float
    retry_after_s: int
    fields: list[str]
    rows: list[list[str | None]]
    ended: list[int]
    open: list[str]


class AccountsOut(Schema):
    """What accounting said of one login name's jobs: `rows` hold a value for each of `fields`, null where withheld.

    Times are seconds since 1970, null where Slurm knows none. `is_sure` is false where accounting did not say it itself
    or the queue says otherwise; `runs` where the elapsed time is that since `start`.
    """

    cluster: str
    login: str
    shown: datetime
    age_s: float
    retry_after_s: int
    fields: list[str]
    rows: list[list[str | int | bool | None]]
    known: list[int]
    behind: list[int]
    since: int | None


class SharedCallIn(Schema):
    """A command line of squeue or sacct, who gave it on the login node, and why it was not answered otherwise."""

    program: Literal["squeue", "sacct"]
    arguments: list[Annotated[str, Field(max_length=1000)]] = Field(default=[], max_length=60)
    login: str = Field(max_length=64)
    cluster: str = Field(default="", max_length=64, pattern=r"^[A-Za-z0-9._-]*$")
    reason: str = Field(default="", max_length=24, pattern=r"^[a-z_]*$")
    zone: str = Field(default="UTC", max_length=64)


class SharedCallOut(Schema):
    """What the command printed (`out` in base64), its exit code, and how old that is."""

    cluster: str
    out: str
    complaint: str
    status: int
    age_s: float
