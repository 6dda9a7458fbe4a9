"""Anchors: the audit chain's head, noted hourly outside the database (a file, and syslog where a site asks for it)."""

import json
import logging
import logging.handlers
import os
from pathlib import Path

import structlog
from django.conf import settings

from portal.core import audit, clock

log = structlog.get_logger(__name__)


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
    # A line torn by a full disk or a crash must not swallow the next one.
    torn = path.exists() and not path.read_bytes().endswith(b"\n")
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" * torn + line + "\n")
        file.flush()
        os.fsync(file.fileno())
    if settings.AUDIT_ANCHOR_SYSLOG:
        _to_syslog(line)
    return seq


def read_anchors() -> dict[int, str]:
    """Return the anchored heads as seq → hash. A line that cannot be read is logged and left out."""
    path = anchor_file()
    if not path.exists():
        return {}
    anchored: dict[int, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        try:
            row = json.loads(line)
            anchored[int(row["seq"])] = str(row["hash"])
        except (ValueError, KeyError, TypeError):
            log.warning("audit_anchor_unreadable", line=number)
    return anchored


def _to_syslog(line: str) -> None:
    handler = logging.handlers.SysLogHandler(address=_syslog_address(settings.AUDIT_ANCHOR_SYSLOG))
    try:
        handler.emit(logging.LogRecord("gatehouse.audit", logging.INFO, "", 0, f"gatehouse-audit {line}", None, None))
    finally:
        handler.close()


def _syslog_address(text: str) -> str | tuple[str, int]:
    """Read a socket's path, or `host:port` (UDP)."""
    host, colon, port = text.rpartition(":")
    return (host, int(port)) if colon and port.isdigit() and not text.startswith("/") else text
