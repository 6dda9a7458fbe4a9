"""The database connections of a request."""

from django.db import connections


def free_connections() -> None:
    """Give back the request’s database connection: whoever waits has no use for it."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()
