"""Database work of coroutines: in a few threads of its own, so that sockets and pages never wait for each other."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from channels.db import database_sync_to_async

P = ParamSpec("P")
T = TypeVar("T")
THREADS = 4
_pool = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="realtime")


async def in_database(act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `act` in one of the threads and return what it returns; connections past their age are closed."""
    result: T = await database_sync_to_async(act, thread_sensitive=False, executor=_pool)(*args, **kwargs)
    return result
