"""Pages of a list that is read with a cursor."""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from django.db.models import Model

M = TypeVar("M", bound=Model)
M_co = TypeVar("M_co", bound=Model, covariant=True)


class Sliceable(Protocol[M_co]):
    """Rows that are read a slice at a time: a queryset, or what reads like one."""

    def __getitem__(self, span: slice, /) -> Iterable[M_co]: ...


def cut_page(rows: Sliceable[M], limit: int) -> tuple[list[M], M | None]:
    """Return the first `limit` rows, and the last of them where more follow: the next page starts after it."""
    found = list(rows[: limit + 1])
    return found[:limit], found[limit - 1] if len(found) > limit else None
