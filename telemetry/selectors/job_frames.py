"""Many jobs at once, in columns, block by block."""

import io
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import polars as pl
from django.db import connection
from django.db.models import QuerySet


def job_frames(
    jobs: "QuerySet[Any, tuple[Any, ...]]", schema: Mapping[str, pl.DataType], *, rows: int
) -> Iterator[pl.DataFrame]:
    """Yield the rows of a `values_list` query, `rows` at once, in the columns of `schema`; texts are never null.

    One query, read as it comes: memory does not grow with the rows.
    """
    sql, params = jobs.query.sql_with_params()
    read = _copied if connection.vendor == "postgresql" else _fetched
    for frame in read(sql, params, schema, rows):
        yield frame.with_columns(pl.col(pl.String).fill_null(""))


def _copied(sql: str, params: tuple[Any, ...], schema: Mapping[str, pl.DataType], rows: int) -> Iterator[pl.DataFrame]:
    """Read by `COPY`, which comes a row at a time."""
    with connection.cursor() as cursor:
        query = cursor.mogrify(sql, params)
        with cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT csv)") as copy:
            lines = iter(copy)
            while text := b"".join(islice(lines, rows)):
                yield pl.read_csv(io.BytesIO(text), has_header=False, schema=dict(schema))


def _fetched(sql: str, params: tuple[Any, ...], schema: Mapping[str, pl.DataType], rows: int) -> Iterator[pl.DataFrame]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        while fetched := cursor.fetchmany(rows):
            columns = zip(schema, zip(*fetched, strict=True), strict=True)
            yield pl.DataFrame(dict(columns), schema=dict(schema))
