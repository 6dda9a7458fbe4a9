"""Many jobs at once, in columns, block by block."""

import io
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from itertools import islice
from select import POLLIN, poll
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db import connection
from django.db.models import QuerySet

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn


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
    lines = _copy_out(connection.connection.pgconn, f"COPY ({query}) TO STDOUT (FORMAT csv)")
    with closing(lines):
        while text := b"".join(islice(lines, rows)):
            yield pl.read_csv(io.BytesIO(text), has_header=False, schema=dict(schema))


def _copy_out(server: "PGconn", query: str) -> Generator[bytes]:
    """Yield the rows of a `COPY` out, straight from libpq: psycopg's own reader takes three times as long a row.

    Errors: those of psycopg, as its cursor raises them.
    """
    from psycopg import errors
    from psycopg.pq import ExecStatus

    begun = server.exec_(query.encode())
    if begun.status != ExecStatus.COPY_OUT:
        raise errors.error_from_result(begun)
    ended = False
    try:
        yield from _copy_rows(server)
        ended = True
    finally:
        if not ended:  # whoever reads has had enough
            server.get_cancel().cancel()
            deque(_copy_rows(server), maxlen=0)
        said = server.get_result()
        while server.get_result() is not None:
            pass
    if said is not None and said.status == ExecStatus.FATAL_ERROR:
        raise errors.error_from_result(said)


def _copy_rows(server: "PGconn") -> Iterator[bytes]:
    waiting = poll()
    waiting.register(server.socket, POLLIN)
    while True:
        size, row = server.get_copy_data(1)  # 1: it must not wait itself, for that keeps all other threads from running
        if size > 0:
            yield bytes(row)
        elif size == 0:
            waiting.poll()
            server.consume_input()
        else:
            return


def _fetched(sql: str, params: tuple[Any, ...], schema: Mapping[str, pl.DataType], rows: int) -> Iterator[pl.DataFrame]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        while fetched := cursor.fetchmany(rows):
            columns = zip(schema, zip(*fetched, strict=True), strict=True)
            yield pl.DataFrame(dict(columns), schema=dict(schema))
