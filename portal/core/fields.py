"""Model fields of the kernel."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import models
from django.db.models.expressions import Combinable

_ST = TypeVar("_ST", contravariant=True)
_GT = TypeVar("_GT", covariant=True)

if TYPE_CHECKING:

    class EpochField(models.Field[_ST, _GT]):
        """As below, with the types its attribute takes and gives."""

        _pyi_private_set_type: datetime | int | Combinable
        _pyi_private_get_type: datetime
        _pyi_lookup_exact_type: datetime | int

else:

    class EpochField(models.BigIntegerField):
        """An instant with a resolution of one second: seconds since 1970 UTC in the row, an aware datetime in Python.

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
                if value.tzinfo is None:  # it would be read in the time zone of whatever machine this is
                    raise ValueError(f"{value} has no time zone.")
                return int(value.timestamp())
            return super().get_prep_value(value)
