"""Keeping what squeue printed of those for whom agents work, so that it can be printed again without asking Slurm."""

import pwd
import time
from collections.abc import Callable, Mapping
from typing import Final

from django.db import transaction

from portal.core import clock
from principals.models import Agent, Cluster, ClusterUser
from telemetry.engine.redaction import is_secretless
from telemetry.engine.slurm.queue_texts import Texts, sheets_of
from telemetry.models import QueueSheet, SlurmReader

MOST_ROWS: Final = 2000  # of one login name: more is no answer to be read
REMEMBERED_S: Final = 3600.0  # after a longer rest what is stored is read again: some of it may have been pruned
Rows = list[list[str | None]]


def is_known_here(login: str) -> bool:
    """Say whether this host knows a login name: of one that it does not, squeue prints the jobs under another name."""
    try:
        pwd.getpwnam(login)
    except KeyError:
        return False
    return True


class Sheets:
    """The sheets of one cluster. It remembers what is stored, and writes what differs.

    There is one, if an empty one, of each owner of a working agent whose name the host that asks knows.
    """

    def __init__(self, cluster: Cluster, *, knows: Callable[[str], bool] = is_known_here) -> None:
        self.cluster, self.knows = cluster, knows
        self._stored: dict[int, Rows | None] | None = None  # by login name's key; None: not read yet
        self._kept_s = 0.0  # when it was last true, on a clock that nobody sets

    def keep(self, texts: Texts | None) -> None:
        """Make the sheets what squeue printed, in one transaction; None where it printed no such thing."""
        owners = self._owners() if texts is not None else {}
        told = sheets_of(texts, owners.keys()) if texts is not None else {}
        wanted = {key: _guarded(told.get(login, [])) for login, key in owners.items()}
        is_old = time.monotonic() - self._kept_s > REMEMBERED_S
        stored = self._read() if self._stored is None or is_old else self._stored
        changed = {key: rows for key, rows in wanted.items() if key not in stored or stored[key] != rows}
        gone = stored.keys() - wanted.keys()
        shown = texts.asked_s if texts is not None else None
        self._stored = None  # until it is written
        with transaction.atomic():
            if gone:
                QueueSheet.objects.filter(cluster_user_id__in=gone).delete()
            if changed:
                self._write(changed)
            SlurmReader.objects.filter(cluster=self.cluster).update(shown=shown)
        self._stored, self._kept_s = wanted, time.monotonic()

    def _owners(self) -> dict[str, int]:
        """Return the login names of owners of working agents, with their keys."""
        working = Agent.objects.active().values("owner")
        names = ClusterUser.objects.filter(cluster=self.cluster, user__in=working)
        return {login: key for login, key in names.values_list("login", "pk") if self.knows(login)}

    def _read(self) -> dict[int, Rows | None]:
        sheets = QueueSheet.objects.filter(cluster_user__cluster=self.cluster)
        return dict(sheets.values_list("cluster_user_id", "rows"))

    def _write(self, changed: Mapping[int, Rows | None]) -> None:
        now = clock.now().replace(microsecond=0)
        QueueSheet.objects.bulk_create(
            [QueueSheet(cluster_user_id=key, rows=rows, changed=now) for key, rows in changed.items()],
            update_conflicts=True, unique_fields=["cluster_user"], update_fields=["rows", "changed"],
        )  # fmt: skip


def _guarded(rows: Rows) -> Rows | None:
    """Return what may be stored: no secret that stands in a name or a path, and not too much."""
    if len(rows) > MOST_ROWS:
        return None
    return [[text if text is None or is_secretless(text) else None for text in row] for row in rows]
