"""The normal form that every adapter yields: one job record, one rejected row, or one step seen."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

NEVER_ASSIGNED = "None assigned"
# What a counted record may say: instants since Slurm began, counts of 32 bits, a run time where no span is told.
EARLIEST_S = 946_684_800  # 2000-01-01 UTC
LARGEST_COUNT = 2**31 - 1
LONGEST_S = 10**9
_LABEL = re.compile(r"[A-Za-z0-9._-]{1,64}")
_CAMPAIGN = re.compile(r"(?:^|[\s,;])campaign[=:]([A-Za-z0-9._-]{1,64})(?=$|[\s,;])")


class JobRecord(NamedTuple):
    """One accounting record of one job (of one stretch of it, if it was requeued). Times: UTC epoch seconds.

    `raw_job_id` and `submit_s` are its key inside a cluster. `array_tasks` is how many tasks a pending range
    stands for. `gpus`, `cpus`, `nodes` are what was allocated, or what was asked for while nothing is.
    `end_s` is None until the record is closed. `started` is false for jobs that never got a node.
    `campaign` comes from the comment, see `campaign_of`. `extra` holds the non-empty values of columns that
    have no place here. A tuple, because a frozen dataclass of this size takes ten times as long to make.
    """

    raw_job_id: int
    job_id: str
    user: str
    state: str
    submit_s: int
    eligible_s: int | None = None
    start_s: int | None = None
    end_s: int | None = None
    elapsed_s: int = 0
    timelimit_s: int | None = None
    array_job_id: int | None = None
    array_task: int | None = None
    array_tasks: int = 1
    het_job_id: int | None = None
    het_offset: int | None = None
    nodes: int = 0
    cpus: int = 0
    req_cpus: int = 0
    gpus: int = 0
    gpu_types: tuple[str, ...] = ()
    mem_bytes: int | None = None
    uid: int | None = None
    cancelled_by_uid: int | None = None
    exit_code: int = 0
    exit_signal: int = 0
    restarts: int = 0
    started: bool = False
    campaign: str = ""
    account: str = ""
    group: str = ""
    cluster: str = ""
    partition: str = ""
    qos: str = ""
    node_list: str = ""
    job_name: str = ""
    submit_line: str = ""
    work_dir: str = ""
    reason: str = ""
    comment: str = ""
    extra: Mapping[str, str] = MappingProxyType({})


_ALL = "\x1f".join(["%s"] * (len(JobRecord._fields) - 1))


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that was not taken, why, and its text; `line_no` is its first line, counted from 1."""

    line_no: int
    reason_code: str
    detail: str
    raw: str
    lines: int = 1


@dataclass(frozen=True, slots=True)
class StepSeen:
    """A row of a job step: recognised and counted, never a job."""

    raw_job_id: int
    step: str


Outcome: TypeAlias = JobRecord | Rejected | StepSeen


def content_digest(record: JobRecord) -> int:
    """Digest everything a record says into a signed 64-bit number: equal records, equal digests."""
    told = _ALL % record[:-1] + told_extra(record.extra)
    return int.from_bytes(digest_bytes(told.encode(errors="surrogatepass")), "big", signed=True)


def digest_bytes(told: bytes) -> bytes:
    """Digest the text of a record: its fields in their order as `str` writes them, "\x1f" between them, what is extra.

    Eight bytes, the first one the highest. For "did anything change?" only; 64 bits are too few to stand up to
    somebody who wants a collision.
    """
    return blake2b(told, digest_size=8).digest()


def told_extra(extra: Mapping[str, str]) -> str:
    """Return the part of `digest_bytes`'s text for columns without a place, "" without any."""
    return str(sorted(extra.items())) if extra else ""


def is_label(text: str) -> bool:
    """Say whether a text is a plain word of at most 64 letters, digits, `.`, `_`, `-`."""
    return _LABEL.fullmatch(text) is not None


def campaign_of(comment: str) -> str:
    """Read the campaign label of a job comment: JSON `{"campaign": "x"}` or a word `campaign=x`.

    Returns "" where there is none or it is not a plain word of at most 64 letters, digits, `.`, `_`, `-`.
    """
    if "campaign" not in comment:
        return ""
    if comment.startswith("{"):
        try:
            value = json.loads(comment).get("campaign", "")
        except (ValueError, RecursionError):
            return ""
        return value if isinstance(value, str) and is_label(value) else ""
    match = _CAMPAIGN.search(comment)
    return match[1] if match else ""
