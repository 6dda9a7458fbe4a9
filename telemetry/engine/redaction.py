"""Secrets out of job records before anything is stored: one cheap test a record, the full rules on hits only."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from security.engine.redact import may_hold_secret, redact
from telemetry.engine.slurm.records import JobRecord, campaign_of

FREE_FIELDS: Final = ("submit_line", "job_name", "comment", "work_dir", "reason", "partition", "qos", "node_list")
KEPT_OF_RAW: Final = 2000
_WINDOW: Final = 8000  # of a long raw text, as much is looked at; what a cut could have split is dropped


def redact_record(record: JobRecord, *, key: bytes) -> tuple[JobRecord, int]:
    """Return the record with `[REDACTED:kind]` in place of each secret, and how many there were.

    Looked at: the columns that people fill or name, and every column we do not know. Login names, accounts and groups
    become rows of their own: a record whose name is a secret is set aside instead (`is_secretless`).
    """
    extra = record.extra
    joined = "\n".join(
        (record.submit_line, record.job_name, record.comment, record.work_dir, record.reason, record.partition,
         record.qos, record.node_list)
    )  # fmt: skip
    if extra:
        joined = "\n".join((joined, *extra.values()))
    if not may_hold_secret(joined):
        return record, 0
    return _redact_fields(record, key)


def _redact_fields(record: JobRecord, key: bytes) -> tuple[JobRecord, int]:
    found = 0
    changes: dict[str, str | Mapping[str, str]] = {}
    for name in FREE_FIELDS:
        redaction = redact(getattr(record, name), key=key)
        if redaction.findings:
            found += len(redaction.findings)
            changes[name] = redaction.text
    if "comment" in changes:
        # The label was read from the comment as it came: read it again from what is left.
        changes["campaign"] = campaign_of(str(changes["comment"]))
    cleaned = {name: redact(text, key=key) for name, text in record.extra.items()}
    in_extra = sum(len(redaction.findings) for redaction in cleaned.values())
    if in_extra:
        changes["extra"] = {name: redaction.text for name, redaction in cleaned.items()}
    if not found + in_extra:
        return record, 0
    return record._replace(**changes), found + in_extra  # type: ignore[arg-type]


@lru_cache(maxsize=4096)
def is_secretless(text: str) -> bool:
    """Say whether a label may be kept as it is."""
    return not (may_hold_secret(text) and redact(text, key=b"\0" * 32).findings)


def redact_raw(text: str, *, key: bytes, keep: int = KEPT_OF_RAW) -> tuple[str, int]:
    """Redact a text that was set aside and cut it; returns it and how many secrets were taken out.

    A secret that the cut of a very long text split would no longer look like one, so what stands near that cut is
    never kept.
    """
    redaction = redact(text[:_WINDOW], key=key)
    kept = redaction.text if len(text) <= _WINDOW else redaction.text[: max(0, len(redaction.text) - 2000)]
    return kept[:keep], len(redaction.findings)
