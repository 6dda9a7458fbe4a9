"""Anchors: the audit chain's head, noted hourly outside the database (a file, and syslog where a site asks for it)."""

import json
import logging
import logging.handlers
import os
from pathlib import Path

from django.conf import settings

from portal.core import audit, clock


def anchor_file() -> Path:
    """Return the file that holds the anchors, one JSON object a line."""
    return Path(settings.AUDIT_ANCHOR_FILE)


def write_anchor() -> int:
    """Seal what is left, note the head outside the database, and return its seq. Notes nothing twice."""
    audit.seal_all()
    seq, hashed = audit.head()
    if seq == 0 or seq in read_anchors():
        return seq
    line = json.dumps({"at": clock.now().isoformat(timespec="seconds"), "seq": seq, "hash": hashed})
    path = anchor_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())
    if settings.AUDIT_ANCHOR_SYSLOG:
        _to_syslog(line)
    return seq


def read_anchors() -> dict[int, str]:
    """Return the anchored heads as seq → hash."""
    path = anchor_file()
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return {row["seq"]: row["hash"] for row in rows}


def _to_syslog(line: str) -> None:
    handler = logging.handlers.SysLogHandler(address=settings.AUDIT_ANCHOR_SYSLOG)
    try:
        handler.emit(logging.LogRecord("gatehouse.audit", logging.INFO, "", 0, f"gatehouse-audit {line}", None, None))
    finally:
        handler.close()
