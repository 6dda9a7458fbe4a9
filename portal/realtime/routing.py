"""The WebSocket addresses and how each caller is let in."""

from collections.abc import Awaitable, Callable
from typing import Any

from channels.routing import URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from channels.sessions import SessionMiddlewareStack
from django.urls import path, re_path

from portal.realtime.consumer import EventsConsumer

Asgi = Callable[[dict[str, Any], Any, Any], Awaitable[None]]
_events = EventsConsumer.as_asgi()
_events_of_session: Asgi = AllowedHostsOriginValidator(SessionMiddlewareStack(_events))


async def events(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Let a bearer token in by itself, a browser by session cookie from our own pages only.

    A page of another site cannot set the Authorization header, and where the header is sent no cookie is read.
    """
    has_token = any(name == b"authorization" for name, _ in scope["headers"])
    await (_events if has_token else _events_of_session)(scope, receive, send)


async def nothing(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Refuse a WebSocket at an address where there is none."""
    await receive()
    await send({"type": "websocket.close", "code": 4404})


# Django's types know views alone; Channels puts ASGI applications in their place.
websocket = URLRouter([path("ws/events/", events), re_path(r"", nothing)])  # type: ignore[arg-type]
