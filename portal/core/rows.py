"""Writing many rows whose keys are needed at once."""

from collections.abc import Iterable
from typing import TypeVar

from django.db import connection
from django.db.models import Model

M = TypeVar("M", bound=Model)


def create_rows(model: type[M], rows: Iterable[M]) -> list[M]:
    """Insert rows and return them with their primary keys.

    SQLite before 3.35 (RHEL 9 has 3.34) returns no keys from a bulk insert: there each row is inserted by itself.
    """
    made = list(rows)
    if connection.features.can_return_rows_from_bulk_insert:
        return model._default_manager.bulk_create(made)
    for row in made:
        row.save(force_insert=True)
    return made
