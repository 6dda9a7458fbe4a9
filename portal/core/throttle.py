"""Fixed-window limits on the shared cache: so many in a minute for one key, then 429 with the seconds to wait."""

from django.core.cache import cache

from portal.core import clock
from portal.core.errors import TooMany


def check(
    name: str, key: str, *, limit: int, window_s: int = 60, remedy: str = "", uses: int = 1, what: str = "requests",
    code: str = "",
) -> None:  # fmt: skip
    """Count one use, or several (`uses`); raise `TooMany` past `limit` of them in the window."""
    now = clock.now().timestamp()
    window = int(now // window_s)
    counter = f"throttle:{name}:{key}:{window}"
    if cache.add(counter, uses, timeout=window_s * 2):
        return
    try:
        used = cache.incr(counter, uses)
    except ValueError:  # the window ended between the two calls
        cache.set(counter, uses, timeout=window_s * 2)
        return
    if used > limit:
        wait = int((window + 1) * window_s - now) + 1
        raise TooMany(
            f"{limit} {what} in {window_s} s are used.",
            retry_after_s=wait,
            code=code or TooMany.code,
            remedy=remedy or "Wait as long as Retry-After says; subscribe to events instead of asking again.",
        )
