"""A read that is written once: Django builds its SQL at the first call, later ones send it with another key and time.

For the one read that is made at every request: to build the SQL of a token with its agent, owner, lab and holds takes
Django more than a millisecond, and the database a small part of one to answer it (`make bench-auth`).
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from django.db import connections
from django.db.models import Model, QuerySet
from django.db.models.query import get_related_populators

from portal.core import clock

M = TypeVar("M", bound=Model)
# They stand where a key and the present belong; no row and no clock has them.
_KEY, _NOW = "\x01 key \x01", datetime(2999, 12, 31, 23, 59, 58, 765432, tzinfo=UTC)


class Prepared(Generic[M]):
    """A queryset of one row by its key, with whatever `select_related` and `annotate` add."""

    def __init__(self, build: Callable[[str], QuerySet[M]]) -> None:
        self._build = build
        self._by_vendor: dict[str, _Statement] = {}

    def first(self, key: str) -> M | None:
        """Return the row of a key, as of now; None where there is none."""
        connection = connections["default"]
        statement = self._by_vendor.get(connection.vendor)
        if statement is None:
            with clock.at(_NOW):
                statement = _Statement(self._build(_KEY))
            self._by_vendor[connection.vendor] = statement
        found: M | None = statement.first(key)
        return found


class _Statement:
    """The SQL of a queryset, and how a row of it becomes a model with its relations."""

    def __init__(self, rows: "QuerySet[Any]") -> None:
        connection = connections["default"]
        compiler = rows.query.get_compiler(using="default")
        self._sql, params = compiler.as_sql()
        now = connection.ops.adapt_datetimefield_value(_NOW)
        self._params = [_KEY if each == _KEY else _NOW if each == now else each for each in params]
        if _KEY not in self._params or _NOW not in self._params:
            raise RuntimeError("A prepared read goes by a key and by the time.")
        info, select = compiler.klass_info, compiler.select
        at = info["select_fields"]
        self._model, self._from, self._to = info["model"], at[0], at[-1] + 1
        self._names = [each[0].target.attname for each in select[self._from : self._to]]
        self._populators = get_related_populators(info, select, "default")  # type: ignore[call-arg]  # stubs of 6.0
        self._annotations = dict(compiler.annotation_col_map or {})
        self._converters = compiler.get_converters([each[0] for each in select])

    def first(self, key: str) -> Any:
        connection = connections["default"]
        now = connection.ops.adapt_datetimefield_value(clock.now())
        params = [key if each is _KEY else now if each is _NOW else each for each in self._params]
        with connection.cursor() as cursor:
            cursor.execute(self._sql, params)
            told = cursor.fetchone()
        if told is None:
            return None
        row = list(told)
        for at, (converters, expression) in self._converters.items():
            for convert in converters:
                row[at] = convert(row[at], expression, connection)
        found = self._model.from_db("default", self._names, row[self._from : self._to])
        for populator in self._populators:
            populator.populate(row, found)
        for name, at in self._annotations.items():
            setattr(found, name, row[at])
        return found
