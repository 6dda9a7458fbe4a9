"""Database work of coroutines: in a few threads of its own, so that sockets and pages never wait for each other."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
T = TypeVar("T")
THREADS = 4
_pool = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="realtime")


async def in_database(act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `act` in one of the threads and return what it returns; connections past their age are closed.

    In the thread's own context, not in the caller's: Django keeps its client of the cache there, and each socket would
    hold a connection to Redis for as long as it lives.
    """
    return await asyncio.get_running_loop().run_in_executor(_pool, partial(_act, act, *args, **kwargs))


def _act(act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    close_old_connections()
    try:
        return act(*args, **kwargs)
    finally:
        close_old_connections()
