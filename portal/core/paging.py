"""Pages of a list that is read with a cursor."""

from typing import TypeVar

from django.db.models import Model, QuerySet

M = TypeVar("M", bound=Model)


def cut_page(rows: QuerySet[M], limit: int) -> tuple[list[M], M | None]:
    """Return the first `limit` rows, and the last of them where more follow: the next page starts after it."""
    found = list(rows[: limit + 1])
    return found[:limit], found[limit - 1] if len(found) > limit else None
