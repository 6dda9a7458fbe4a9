"""Whether what Slurm's hooks tell arrives: eventd and its spool on the controller's host, and what the portal heard."""

import os
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from portal.cli import client
from portal.cli.doctor.findings import Finding
from portal.cli.doctor.node import Node
from portal.cli.eventd import DEFAULT_CONFIG
from portal.cli.eventd.config import Config, read
from portal.cli.files import Unusable

LATE_S: Final = 60  # what lies there for longer is not delivered
BEHIND_S: Final = 300  # so much later than the last hook a job may have ended, whose own hook is on its way
_UNIT: Final = "/etc/systemd/system/gatehouse-eventd.service"
_START: Final = "systemctl enable --now gatehouse-eventd; journalctl -u gatehouse-eventd says why it ended."
_WHERE: Final = "On the controller's host, as root or SlurmUser: gatehouse doctor --tier 2."


def look(node: Node, cluster: str, *, has_hooks: bool) -> Iterator[Finding]:
    """Look at the spool where this host has one, then ask the portal when it heard a hook."""
    yield from _spool(node)
    if has_hooks:
        yield _heard(cluster)


def _spool(node: Node) -> Iterator[Finding]:
    try:
        config = read(node.path(DEFAULT_CONFIG))
    except Unusable:  # there is none, or it is not for us
        config = Config()
    spool = node.path(config.spool)
    if not node.is_there(config.spool):
        if node.is_there(_UNIT):
            yield Finding(2, "eventd", "missing", f"eventd is installed, and there is no {config.spool}.", _START)
        return
    try:
        waiting = [*_times(spool / "new"), *_times(spool / "waiting")]
        bad = len(_times(spool / "bad"))
        lock = (spool / ".lock").stat()
    except FileNotFoundError:
        yield Finding(2, "eventd", "missing", f"No eventd has used {config.spool} yet.", _START)
        return
    except OSError as error:
        said = f"Whether eventd delivers is not known: {config.spool} cannot be looked at ({error.strerror})."
        yield Finding(2, "eventd", "unknown", said, "Run this as SlurmUser or root.")
        return
    yield _eventd(config, waiting, runs=_is_locked(node, lock))
    if bad:
        said = f"{bad} events were set aside in {config.spool}/bad: the portal refused them, or they are none."
        yield Finding(2, "eventd_bad", "missing", said, "journalctl -u gatehouse-eventd says why; remove them then.")


def _eventd(config: Config, waiting: list[float], *, runs: bool) -> Finding:
    lie = f"{len(waiting)} events lie in {config.spool}"
    late_s = time.time() - min(waiting, default=time.time())
    if not runs:
        return Finding(2, "eventd", "missing", f"No eventd runs: {lie}.", _START)
    if late_s > LATE_S:
        said = f"eventd runs and does not deliver: {lie}, the oldest for {_span(late_s)}."
        fix = f"See that {config.portal or 'the portal'} can be reached from here, and its token: {DEFAULT_CONFIG}."
        return Finding(
            2, "eventd", "missing", said, f"{fix}\njournalctl -u gatehouse-eventd says what it was answered."
        )
    return Finding(2, "eventd", "ok", f"eventd runs and delivers: {lie}.")


def _times(folder: Path) -> list[float]:
    with os.scandir(folder) as entries:
        return [entry.stat(follow_symlinks=False).st_mtime for entry in entries]


def _is_locked(node: Node, lock: os.stat_result) -> bool:
    """Say whether somebody holds the lock of the spool, without trying it: proc_locks(5) names its file."""
    number = f"{os.major(lock.st_dev):02x}:{os.minor(lock.st_dev):02x}:{lock.st_ino}"
    words = (line.split() for line in node.read("/proc/locks").splitlines())
    return any(number in line and "FLOCK" in line and "->" not in line for line in words)


def _heard(cluster: str) -> Finding:
    try:
        told = client.get(f"/slurm/sources?cluster={quote(cluster)}")
    except (client.PortalUnreachable, client.PortalRefused) as error:
        said = error.problem.get("detail") if isinstance(error, client.PortalRefused) else str(error).splitlines()[0]
        return Finding(
            2, "hooks_heard", "unknown", f"When the portal heard a hook is not known: {said}", "Mend T1 first."
        )
    heard, ended = _instant(told.get("hook_heard")), _instant(told.get("job_ended"))
    if heard is None:
        return Finding(2, "hooks_heard", "missing", "The portal has not heard any hook of this cluster.", _WHERE)
    ago = _span(max(0.0, time.time() - heard))
    if ended is not None and ended > heard + BEHIND_S:
        said = f"The portal heard a hook {ago} ago, and jobs have ended since."
        return Finding(2, "hooks_heard", "missing", said, _WHERE)
    return Finding(2, "hooks_heard", "ok", f"The portal heard a hook {ago} ago; no job has ended since that it missed.")


def _instant(written: Any) -> float | None:
    return datetime.fromisoformat(written).timestamp() if isinstance(written, str) else None


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
