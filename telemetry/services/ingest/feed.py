"""A feed: one batch on its way in, with what stays the same from chunk to chunk."""

from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from django.utils.crypto import salted_hmac

from principals.models import Cluster
from principals.services import Directory
from telemetry.models import IngestBatch
from telemetry.services.ingest.reading import Place

if TYPE_CHECKING:
    from telemetry.services.ingest.load_rollups import LoadRollups


@lru_cache(maxsize=1)
def redaction_key() -> bytes:
    """Return the site's key for fingerprints of what is redacted at ingest; they are counted here, never stored."""
    return salted_hmac("telemetry.ingest.redaction", "fingerprint", algorithm="sha256").digest()


@dataclass(slots=True)
class Counts:
    """What became of records: each ends in exactly one of these (redactions apart)."""

    created_rows: int = 0
    updated_rows: int = 0
    duplicate_rows: int = 0
    late_rows: int = 0
    rejected_rows: int = 0
    step_rows: int = 0
    redactions: int = 0

    def add(self, outcome: str, number: int) -> None:
        """Count an outcome: created, updated, duplicate, late, rejected or step."""
        name = f"{outcome}_rows"
        setattr(self, name, getattr(self, name) + number)

    def as_dict(self) -> dict[str, int]:
        """Return the counts by the names of the batch's columns."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


# cluster, login name, account, lab
Ids = tuple[int, int, int | None, int]


@dataclass(slots=True)
class Feed:
    """A batch under our lease. `lease` is the end that we wrote: whoever takes over writes another.

    The directory is of this run alone: names that a chunk made and rolled back must not be remembered.
    """

    batch: IngestBatch
    cluster: Cluster
    lease: datetime
    group_is_lab: bool
    directory: Directory = field(init=False)
    _ids: dict[tuple[str, str, str], Ids] = field(default_factory=dict)
    load: "LoadRollups | None" = None  # of a facility's first load
    newest_s: int = 0  # the newest instant that any record speaks of

    def __post_init__(self) -> None:
        self.directory = Directory(self.cluster)

    def advance(self, place: Place, counts: Counts, lease: datetime) -> None:
        """Remember what was committed: the batch's place, what it counts, and our longer lease."""
        batch, self.lease = self.batch, lease
        batch.offset, batch.line, batch.header = place.offset, place.line, place.header
        for name, number in counts.as_dict().items():
            setattr(batch, name, getattr(batch, name) + number)

    def ids_of(self, user: str, account: str, group: str) -> Ids:
        """Return the ids of cluster, login name, account and lab of a record: looked up once, then remembered.

        The lab is that of the account; where the log's group column names the lab (`xdmod`), that one. A record with
        neither belongs to the lab `unassigned`: counted, never lost.
        """
        ids = self._ids.get((user, account, group))
        if ids is None:
            ids = self._ids[user, account, group] = self._find_ids(user, account, group)
        return ids

    def _find_ids(self, user: str, account: str, group: str) -> Ids:
        directory = self.directory
        user_id = directory.user_id(user)
        if self.group_is_lab and group:
            lab_id = directory.lab_id(group)
            account_id = directory.account_ids(account, lab=group)[0] if account else None
            return self.cluster.pk, user_id, account_id, lab_id
        if account:
            account_id, lab_id = directory.account_ids(account)
            return self.cluster.pk, user_id, account_id, lab_id
        return self.cluster.pk, user_id, None, directory.lab_id(group or "unassigned")
