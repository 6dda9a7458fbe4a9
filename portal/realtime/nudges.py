"""Nudges: the channel layer's only message. It says "look now" and carries nothing, so losing one costs 100 ms."""

import asyncio
from contextlib import suppress
from typing import Any

import structlog
from channels.layers import get_channel_layer

from portal.core.live import NUDGE_GROUP

log = structlog.get_logger(__name__)

RETRY_S = 5.0
LEAVE_TIMEOUT_S = 1.0


async def hear_nudges(nudged: asyncio.Event) -> None:
    """Set `nudged` at each nudge, until cancelled. A layer that fails is tried again; polling goes on meanwhile."""
    layer: Any = get_channel_layer()
    while layer is not None:
        try:
            await _listen(layer, nudged)
        except Exception:
            log.warning("live_nudges_failed", exc_info=True)
            await asyncio.sleep(RETRY_S)


async def _listen(layer: Any, nudged: asyncio.Event) -> None:
    channel = await layer.new_channel()
    try:
        await layer.group_add(NUDGE_GROUP, channel)
        while True:
            await layer.receive(channel)
            nudged.set()
    finally:
        with suppress(Exception):
            await asyncio.wait_for(layer.group_discard(NUDGE_GROUP, channel), LEAVE_TIMEOUT_S)
