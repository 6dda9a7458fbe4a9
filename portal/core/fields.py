"""Model fields of the kernel."""

from datetime import UTC, datetime
from typing import Any

from django.db import models


class EpochField(models.BigIntegerField):  # type: ignore[type-arg]
    """An instant with a resolution of one second, stored as seconds since 1970 UTC, an aware datetime in Python.

    Slurm's own instants have this resolution. As integers they are eight bytes, compare and subtract the same way
    on SQLite and PostgreSQL (`Least("end", …) - Greatest("start", …)` is plain arithmetic), and load without
    text parsing. Lookups take aware datetimes or integers.
    """

    description = "An instant (seconds since 1970 UTC)"

    def from_db_value(self, value: int | None, *_: Any) -> datetime | None:
        return None if value is None else datetime.fromtimestamp(value, UTC)

    def to_python(self, value: Any) -> datetime | None:
        if value is None or isinstance(value, datetime):
            return value
        return datetime.fromtimestamp(int(value), UTC)

    def get_prep_value(self, value: Any) -> int | None:
        if isinstance(value, datetime):
            return int(value.timestamp())
        prepared: int | None = super().get_prep_value(value)
        return prepared
