"""Database work of coroutines runs in a few threads, which keep what they opened to themselves."""

import asyncio
from contextvars import Context

from django.core.cache import caches

from portal.realtime.threads import THREADS, in_database


async def test_no_socket_holds_a_client_of_the_cache_of_its_own() -> None:
    """With Redis, each client is a connection: thousands of sockets would hold thousands of them."""
    opened = [asyncio.create_task(in_database(lambda: caches["default"]), context=Context()) for _ in range(20)]
    assert len({id(client) for client in await asyncio.gather(*opened)}) <= THREADS
